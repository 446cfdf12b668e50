#include "harness/exec/runner.hpp"

#include <chrono>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/launch.hpp"

namespace dcpcheck {
namespace {

std::string digest_input(const TensorPlan& tensor, Bytes storage) {
  Sha256 sha;
  sha.add(tensor.name).add("|").add(name_of(tensor.dtype));
  for (const std::int64_t n : tensor.shape) sha.add(n);
  for (const std::int64_t n : tensor.strides) sha.add(n);
  sha.add(tensor.offset);
  canonicalise_nans(storage, tensor.dtype);
  return sha.add(storage).hex();
}

std::string digest_inputs(const Plan& plan, const Inputs& inputs) {
  std::map<std::string, std::string> digests;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in) continue;
    if (!tensor.spec->per_rank) {
      digests[tensor.name] = digest_input(tensor, inputs.get(tensor.name, 0));
      continue;
    }
    for (std::int64_t rank = 0; rank < plan.value.geometry.tp; ++rank) {
      digests["rank" + std::to_string(rank) + "/" + tensor.name] = digest_input(tensor, inputs.get(tensor.name, rank));
    }
  }
  for (const auto& [name, ranks] : inputs.prefix) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      Sha256 sha;
      for (const auto& [slot, record] : ranks[rank]) sha.add(slot).add(record);
      digests["rank" + std::to_string(rank) + "/" + name + " before"] = sha.hex();
    }
  }
  return combine_digests(digests);
}

class CaseRun {
 public:
  CaseRun(Prepared& prepared, const Kernel& kernel, Backend& backend, const RunOptions& options)
      : prepared_(prepared),
        plan_(prepared.plan),
        kernel_(kernel),
        backend_(backend),
        options_(options),
        arena_(arena_layout(plan_)),
        memory_(backend) {}

  CaseResult run() {
    const auto start = std::chrono::steady_clock::now();
    CaseResult result;
    result.inputs_digest = prepared_.inputs_digest;
    for (std::int64_t rank = 0; rank < plan_.value.geometry.tp; ++rank) {
      check_interrupted(options_);
      if (!run_rank(rank, result)) break;
    }
    if (result.verdict.status == Status::skipped) {
      result.outputs.clear();
      result.portable.clear();
    }
    if (result.verdict.status != Status::skipped) result.all_digest = combine_digests(result.outputs);
    conclude(result.verdict);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  // False where the launch left nothing to judge: then no further rank is tried.
  bool run_rank(std::int64_t rank, CaseResult& result) {
    Verdict& verdict = result.verdict;
    RankLaunch launch(plan_, arena_, kernel_, backend_, memory_, rank, rank, options_.threads);
    const Side side{&prepared_.inputs, {}};
    if (const LaunchError error = launch.run(side, side); !error.empty()) {
      end_at(error, "rank " + std::to_string(rank), verdict);
      return false;
    }
    check_interrupted(options_);
    const Expected& expected = expected_on(prepared_, rank, kernel_.lanes, options_.threads);
    LaunchFindings findings = launch.judge(expected, {}, options_.consumed);
    const std::string prefix = "rank" + std::to_string(rank) + "/";
    if (options_.portable)
      for (auto& [name, digest] : launch.portable_digests(expected)) result.portable[prefix + name] = digest;
    for (auto& [name, digest] : findings.digests) result.outputs[prefix + name] = std::move(digest);
    for (auto& [name, digest] : findings.consumed) result.consumed[prefix + name] = std::move(digest);
    add_findings(std::move(findings), verdict);
    return true;
  }

  Prepared& prepared_;
  const Plan& plan_;
  const Kernel& kernel_;
  Backend& backend_;
  const RunOptions& options_;
  ArenaLayout arena_;
  LaunchMemory memory_;
};

}  // namespace

void check_interrupted(const RunOptions& options) {
  if (options.interrupted && options.interrupted->load() != 0) throw Interrupted(options.interrupted->load());
}

void conclude(Verdict& verdict) {
  if (verdict.status != Status::not_run) return;
  verdict.status = verdict.violations.empty() ? Status::pass : Status::fail;
  if (!verdict.violations.empty()) verdict.reason = verdict.violations.front().reason;
  if (verdict.violations.empty() && verdict.compared == 0 && verdict.guarded == 0) {
    verdict.status = Status::fail;
    verdict.reason = Reason::nothing_compared;
    verdict.detail = "no output and no must-not-write byte was there to look at";
  }
}

Prepared prepare(const Op& op, const Reference& reference, const Case& value, std::int64_t memory_budget, int threads,
                 const std::string& source) {
  Prepared prepared;
  prepared.plan = make_plan(op, value, memory_budget, source);
  prepared.inputs = make_inputs(prepared.plan, threads);
  prepared.inputs_digest = digest_inputs(prepared.plan, prepared.inputs);
  prepared.reference = reference;
  return prepared;
}

const Expected& expected_on(Prepared& prepared, std::int64_t rank, int lanes, int threads) {
  std::vector<Expected>& ranks = prepared.expected[lanes];
  const std::int64_t own = prepared.plan.op->rank_reference ? rank : 0;
  for (std::int64_t next = std::ssize(ranks); next <= own; ++next)
    ranks.push_back(prepared.reference(prepared.plan, prepared.inputs, next, {threads, lanes}));
  return ranks[static_cast<std::size_t>(own)];
}

CaseResult run_case(Prepared& prepared, const Kernel& kernel, Backend& backend, const RunOptions& options) {
  return CaseRun(prepared, kernel, backend, options).run();
}

}  // namespace dcpcheck
