#include "properties/law.hpp"

#include <algorithm>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {

Trial::Trial(const Workbench& bench, const Op& op, const Kernel& kernel, const Case& value)
    : bench_(bench),
      op_(op),
      kernel_(kernel),
      prepared_(prepare(op, bench.references->at(op.name), value, bench.memory, bench.threads)) {}

const Setting& Trial::setting() {
  if (!setting_) setting_ = Setting{prepared_.plan, prepared_.inputs};
  return *setting_;
}

CaseResult Trial::judge_prepared(Prepared& prepared) const {
  RunOptions options;
  options.threads = bench_.threads;
  options.interrupted = bench_.interrupted;
  return judge(bench_, prepared, kernel_, options, memory_);
}

const CaseResult& Trial::judged() {
  if (!judged_) judged_ = judge_prepared(prepared_);
  return *judged_;
}

const Observation& Trial::observed() {
  if (!observed_) observed_ = observe(setting());
  return *observed_;
}

Observation Trial::observe(const Setting& setting) const {
  return dcpcheck::observe(setting, kernel_, *bench_.backend, bench_.threads);
}

CaseResult Trial::judge_other(const Case& value) const {
  Prepared other = prepare(op_, bench_.references->at(op_.name), value, bench_.memory, bench_.threads);
  return judge_prepared(other);
}

const Law* find_law(const std::string& name) {
  const auto found = std::find_if(all_laws().begin(), all_laws().end(), [&](const Law& law) { return law.name == name; });
  return found == all_laws().end() ? nullptr : &*found;
}

bool obeys(const Op& op, const Law& law) {
  return law.of_every_op || std::find(op.laws.begin(), op.laws.end(), law.name) != op.laws.end();
}

void check_laws_of(const Op& op) {
  for (const std::string& name : op.laws) {
    if (find_law(name) == nullptr)
      throw InputError("the op " + op.name + " names the law \"" + name + "\", which there is not");
  }
}

LawFindings apply(const Law& law, Trial& trial) {
  LawFindings findings;
  if (!obeys(trial.op(), law)) {
    findings.silent = "it is no law of " + trial.op().name;
    return findings;
  }
  try {
    return law.check(trial);
  } catch (const InputError& error) {
    findings.silent = "its other launch cannot be: " + std::string(error.what());
    return findings;
  }
}

Verdict verdict_of(const Law& law, LawFindings findings) {
  Verdict verdict;
  if (!findings.silent.empty()) {
    verdict.status = Status::skipped;
    verdict.detail = law.name + ": " + findings.silent;
    return verdict;
  }
  verdict.compared = findings.compared;
  verdict.violations = std::move(findings.violations);
  verdict.detail = std::move(findings.detail);
  if (!verdict.violations.empty()) {
    verdict.status = Status::fail;
    verdict.reason = verdict.violations.front().reason;
  } else if (!verdict.detail.empty()) {
    verdict.status = Status::fail;
    verdict.reason = Reason::law;
  } else if (verdict.compared == 0) {
    verdict.status = Status::skipped;
    verdict.detail = law.name + ": nothing that it speaks of is in this case";
  } else {
    verdict.status = Status::pass;
  }
  return verdict;
}

}  // namespace dcpcheck
