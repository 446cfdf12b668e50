#include "properties/probe.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "properties/generators.hpp"
#include "properties/probe_questions.hpp"
#include "properties/settle.hpp"

namespace dcpcheck {
namespace {

constexpr std::uint64_t kSeed = 54907;
constexpr std::uint64_t kFirst = 32;  // cases under the default contract
constexpr std::uint64_t kEach = 3;  // further ones for each other value of each option, under which something else is asked …
constexpr std::uint64_t kLooked = 48;     // … of so many
constexpr std::uint64_t kFurther = 64;    // drawn at the most to see whether a proposal holds …
constexpr std::int64_t kConfirming = 24;  // … until so many that it is for have passed
constexpr int kRounds = 4;                // of looking for better values, and of further cases
constexpr std::size_t kTried = 12;        // cases that are changed to see whether a condition mends them
constexpr std::int64_t kLeast = 4;        // cases that must pass within what is required
constexpr std::size_t kUnexplained = 3;
constexpr std::int64_t kCost = 100'000;

using Contract = std::map<std::string, std::string>;

// What came of a case under some options.
struct Outcome {
  bool asked = false;  // there is such a case
  Verdict verdict;
  double wrong = 0;    // how much of what was looked at, 0 to 1
  std::string answer;  // what was to be right, and how memory was laid out, as a digest
  std::int64_t live = 0;

  bool passed() const { return asked && verdict.status == Status::pass; }
  bool skipped() const { return asked && verdict.status == Status::skipped; }
  bool failed() const { return asked && !passed() && !skipped(); }
};

void add(Sha256& sha, std::span<const std::byte> bytes) { sha.add(static_cast<std::int64_t>(bytes.size())).add(bytes); }

// Whether codes of e4m3 are asked of what is no number, and of what is past the largest: what is right is then an option of the
// contract.
struct Narrowed {
  bool nan = false, past = false;

  void look(const Admissible& told, std::int64_t rows, double scale) {
    if (told.exact) return;
    for (std::int64_t i = 0; i < std::min(rows, told.rows) * told.columns; ++i) {
      const auto at = static_cast<std::size_t>(i);
      nan = nan || std::isnan(told.value[at]);
      past = past || (std::abs(told.value[at]) + told.error[at]) / scale > 448;
    }
  }
};

// The scale that a field is divided by: an input of one number; infinity where each tile has one that follows from its values,
// and only an infinite value is past it.
double scale_of(const Plan& plan, const Inputs& inputs, const FieldPlan& field) {
  if (field.scaled_by.empty()) return 1;
  const TensorPlan* const tensor = plan.find(field.scaled_by);
  if (tensor == nullptr || tensor->dtype != DType::fp32) return std::numeric_limits<double>::max();
  float scale = 1;
  const Bytes& bytes = inputs.get(tensor->name, 0);
  std::memcpy(&scale, bytes.data() + tensor->offset * size_of(tensor->dtype), sizeof scale);
  return scale;
}

Narrowed narrowed(const Plan& plan, const Inputs& inputs, const std::vector<Expected>& ranks) {
  Narrowed out;
  for (const Expected& expected : ranks) {
    for (const TensorPlan& tensor : plan.tensors) {
      const auto look = [&](const std::string& name, double scale) {
        const auto found = expected.find(name);
        if (found != expected.end()) out.look(found->second, plan.live, scale);
      };
      if (tensor.role == Role::out && tensor.dtype == DType::e4m3) look(tensor.name, 1);
      if (tensor.role != Role::cache || tensor.slot_mapping.empty()) continue;
      for (const FieldPlan& field : tensor.cache.fields)
        if (field.dtype == DType::e4m3) look(tensor.name + "." + field.name, scale_of(plan, inputs, field));
    }
  }
  return out;
}

std::string answer_of(const Plan& plan, const Inputs& inputs, const std::vector<Expected>& ranks) {
  Sha256 sha;
  const Narrowed codes = narrowed(plan, inputs, ranks);
  const auto add_option = [&](const std::string& name) {
    const auto found = plan.value.contract.find(name);
    if (found != plan.value.contract.end()) sha.add(name).add(found->second);
  };
  if (codes.nan) add_option("nan");
  if (codes.past) add_option("e4m3_overflow");
  for (const TensorPlan& tensor : plan.tensors) sha.add(tensor.name).add(tensor.in_place_of).add(std::int64_t{tensor.unjudged});
  for (const Expected& expected : ranks) {
    for (const auto& [name, admissible] : expected) {
      sha.add(name).add(std::int64_t{admissible.exact});
      add(sha, admissible.codes);
      add(sha, std::as_bytes(std::span(admissible.value)));
      add(sha, std::as_bytes(std::span(admissible.error)));
      for (const Alternative& other : admissible.alternatives)
        sha.add(std::bit_cast<std::int64_t>(other.value)).add(std::bit_cast<std::int64_t>(other.error));
    }
  }
  return sha.hex();
}

double wrong_part(const Verdict& verdict) {
  if (verdict.status == Status::pass) return 0;
  std::int64_t wrong = 0;
  for (const Violation& violation : verdict.violations) wrong += violation.count;
  if (wrong == 0) return 1;
  return static_cast<double>(wrong) / static_cast<double>(wrong + verdict.compared + 1);
}

class Prober {
 public:
  Prober(const Workbench& bench, const Op& op, const Kernel& kernel) : bench_(bench), op_(op), kernel_(kernel) {
    kernel_.declared.reset();
    for (const Option& option : op.contract) contract_[option.name] = option.values.front();
  }

  Probe run() {
    draw();
    choose_options();
    for (int round = 0; round < kRounds; ++round) {
      choose_requirements();
      if (!unexplained().empty() || !a_further_case_failed()) break;
    }
    return report();
  }

 private:
  // --- cases

  GenerateOptions options_for(const Contract& contract) const {
    GenerateOptions options;
    options.cost = kCost;
    options.large_every = 0;
    options.memory = std::min(options.memory, bench_.memory);
    options.only["graph"] = {"off"};
    for (const Option& option : op_.contract)
      if (option.values.size() > 1) options.only["contract." + option.name] = {contract.at(option.name)};
    return options;
  }

  void draw() {
    generator_.emplace(op_, options_for(contract_));
    for (; drawn_from_ < kFirst; ++drawn_from_) cases_.push_back((*generator_)(kSeed, drawn_from_));
    for (const Option& option : op_.contract) {
      for (std::size_t i = 1; i < option.values.size(); ++i) {
        Contract contract = contract_;
        contract[option.name] = option.values[i];
        GenerateOptions options = options_for(contract);
        options.trials = 0;
        try {
          const Generator generator(op_, options);
          std::uint64_t found = 0;
          for (std::uint64_t index = 0; index < kLooked && found < kEach; ++index) {
            const Case value = generator(kSeed, index);
            if (asked_of(value) == asked_of(under(value, contract_))) continue;
            cases_.push_back(value);
            ++found;
          }
        } catch (const InputError&) {
          continue;  // no case has that value alone: the report says that none tells it
        }
      }
    }
  }

  // What is asked in the case, as Outcome::answer; "" where there is no such case.
  std::string asked_of(const Case& value) const {
    try {
      const Prepared prepared = prepare(op_, bench_.references->at(op_.name), value, bench_.memory, bench_.threads);
      std::vector<Expected> ranks;
      for (std::int64_t rank = 0; rank < (op_.rank_reference ? value.geometry.tp : 1); ++rank)
        ranks.push_back(prepared.reference(prepared.plan, prepared.inputs, rank, {bench_.threads, kernel_.lanes}));
      return answer_of(prepared.plan, prepared.inputs, ranks);
    } catch (const InputError&) {
      return "";
    }
  }

  // The case under other options; what its other fields then cannot be, gives way.
  Case under(const Case& value, const Contract& contract) const {
    Case out = value;
    out.contract = contract;
    settle(op_, out);
    return out;
  }

  const Outcome& outcome(const Case& value) {
    const std::string id = case_id(op_, value);
    const auto known = outcomes_.find(id);
    if (known != outcomes_.end()) return known->second;
    if (bench_.interrupted != nullptr && bench_.interrupted->load() != 0) throw Interrupted(bench_.interrupted->load());
    Outcome out;
    std::optional<Prepared> prepared;
    try {
      prepared = prepare(op_, bench_.references->at(op_.name), value, bench_.memory, bench_.threads);
    } catch (const InputError&) {
      return outcomes_.emplace(id, out).first->second;
    }
    out.asked = true;
    out.live = prepared->plan.live;
    RunOptions options;
    options.threads = bench_.threads;
    options.interrupted = bench_.interrupted;
    out.verdict = run_case(*prepared, kernel_, *bench_.backend, options).verdict;
    out.wrong = wrong_part(out.verdict);
    const auto expected = prepared->expected.find(kernel_.lanes);
    if (expected != prepared->expected.end()) out.answer = answer_of(prepared->plan, prepared->inputs, expected->second);
    ++runs_;
    return outcomes_.emplace(id, std::move(out)).first->second;
  }
  const Outcome& outcome(const Case& value, const Contract& contract) { return outcome(under(value, contract)); }

  // --- options

  // How much better the cases that there are under both come out under `other`.
  std::pair<std::int64_t, double> gain(const Contract& other) {
    std::pair<std::int64_t, double> gain{0, 0};
    for (const Case& value : cases_) {
      const Outcome& now = outcome(value, contract_);
      const Outcome& then = outcome(value, other);
      if (!now.asked || !then.asked) continue;
      gain.first += std::int64_t{then.passed()} - std::int64_t{now.passed()};
      gain.second += now.wrong - then.wrong;
    }
    return gain;
  }

  static bool better(const std::pair<std::int64_t, double>& gain, const std::pair<std::int64_t, double>& best) {
    if (gain.first != best.first) return gain.first > best.first;
    return gain.second > best.second + 1e-9;
  }

  // Option by option the value under which most cases pass and the least is wrong, until none is better.
  void descend() {
    for (int round = 0; round < kRounds; ++round) {
      bool changed = false;
      for (const Option& option : op_.contract) {
        Contract best = contract_;
        std::pair<std::int64_t, double> best_gain{0, 0};
        for (const std::string& value : option.values) {
          Contract other = contract_;
          other[option.name] = value;
          if (other == contract_) continue;
          const auto found = gain(other);
          if (!better(found, best_gain)) continue;
          best_gain = found;
          best = other;
        }
        changed = changed || best != contract_;
        contract_ = best;
      }
      if (!changed) return;
    }
  }

  void choose_options() {
    descend();
    // Two options that hide each other: neither alone is better.
    const auto fails = [&](const Case& value) { return outcome(value, contract_).failed(); };
    if (std::none_of(cases_.begin(), cases_.end(), fails)) return;
    std::vector<Case> failing;
    for (const Case& value : cases_)
      if (fails(value) && failing.size() < kTried) failing.push_back(value);
    for (std::size_t a = 0; a < op_.contract.size(); ++a) {
      for (std::size_t b = a + 1; b < op_.contract.size(); ++b) {
        for (const std::string& first : op_.contract[a].values) {
          for (const std::string& second : op_.contract[b].values) {
            Contract other = contract_;
            other[op_.contract[a].name] = first;
            other[op_.contract[b].name] = second;
            const auto mended = [&](const Case& value) { return outcome(value, other).passed(); };
            if (std::none_of(failing.begin(), failing.end(), mended) || !better(gain(other), {0, 0})) continue;
            contract_ = other;
            return descend();
          }
        }
      }
    }
  }

  // --- requirements

  bool breaks(const Case& value, const Requirement& requirement) const {
    try {
      return !requirement.that.truth(with_layout(make_plan(op_, value, bench_.memory)));
    } catch (const InputError&) {
      return false;
    }
  }
  bool breaks_any(const Case& value) const {
    return std::any_of(requirements_.begin(), requirements_.end(),
                       [&](const ProbedRequirement& each) { return breaks(value, each.requirement); });
  }

  // The cases under the options chosen that fail, and break nothing that is required.
  std::vector<Case> unexplained() {
    std::vector<Case> out;
    for (const Case& value : cases_) {
      const Case now = under(value, contract_);
      if (outcome(now).failed() && !breaks_any(now)) out.push_back(now);
    }
    return out;
  }

  bool mends(const Question& question, const Case& value) {
    return std::any_of(question.mends.begin(), question.mends.end(), [&](const auto& mend) {
      Case changed = value;
      mend(changed);
      settle(op_, changed);
      const Outcome& then = outcome(changed);
      return then.passed() && then.live > 0;
    });
  }

  // What speaks for a question, among the cases that break nothing yet; absent where too little does.
  std::optional<ProbedRequirement> weigh(const Question& question, const std::vector<Case>& open) {
    ProbedRequirement found{question.that, 0, 0, 0, {}, {}};
    std::int64_t within = 0;
    std::vector<const Case*> broken;
    for (const Case& value : open) {
      const Outcome& now = outcome(value);
      if (now.live == 0 || now.skipped()) continue;
      if (!breaks(value, question.that)) {
        within += std::int64_t{now.passed()};
        continue;
      }
      (now.passed() ? found.broken_passed : found.broken_failed) += 1;
      if (!now.passed()) broken.push_back(&value);
    }
    if (broken.empty() || within < kLeast) return std::nullopt;
    if (question.always ? found.broken_passed > 0 : 2 * found.broken_failed < found.broken_passed) return std::nullopt;
    const std::size_t tried = std::min(broken.size(), kTried);
    for (std::size_t i = 0; i < tried; ++i) found.mended += std::int64_t{mends(question, *broken[i])};
    // Some may break another requirement as well.
    if (4 * found.mended < static_cast<std::int64_t>(tried) || found.mended == 0) return std::nullopt;
    found.first = {*broken.front(), outcome(*broken.front()).verdict};
    return found;
  }

  void choose_requirements() {
    while (!unexplained().empty()) {
      std::vector<Case> open;
      for (const Case& value : cases_) {
        Case now = under(value, contract_);
        if (outcome(now).asked && !breaks_any(now)) open.push_back(std::move(now));
      }
      std::optional<ProbedRequirement> best;
      for (const Question& question : questions_) {
        std::optional<ProbedRequirement> found = weigh(question, open);
        if (!found) continue;
        const auto broken = [](const ProbedRequirement& each) { return each.broken_failed + each.broken_passed; };
        // The one that explains most; of these the weakest.
        if (best && (found->mended < best->mended || (found->mended == best->mended && broken(*found) >= broken(*best)))) {
          if (found->mended == best->mended && same_cases(*found, *best, open))
            best->alike.push_back(found->requirement.that.text());
          continue;
        }
        best = std::move(found);
      }
      if (!best) return;
      requirements_.push_back(std::move(*best));
    }
  }

  bool same_cases(const ProbedRequirement& a, const ProbedRequirement& b, const std::vector<Case>& open) const {
    return std::all_of(open.begin(), open.end(),
                       [&](const Case& value) { return breaks(value, a.requirement) == breaks(value, b.requirement); });
  }

  // Whether what was found out does not hold of cases that it was not found out from; those are looked at from now on, too.
  bool a_further_case_failed() {
    std::int64_t confirming = 0;
    bool failed = false;
    for (const std::uint64_t end = drawn_from_ + kFurther; drawn_from_ < end && confirming < kConfirming; ++drawn_from_) {
      const Case value = (*generator_)(kSeed, drawn_from_);
      const Case now = under(value, contract_);
      const Outcome& came = outcome(now);
      if (!came.asked || came.skipped() || breaks_any(now)) continue;
      cases_.push_back(value);
      failed = failed || came.failed();
      ++confirming;
    }
    return failed;
  }

  // --- what is said of it

  ProbedValue probed(const std::string& option, const std::string& value) {
    ProbedValue out;
    out.value = value;
    Contract other = contract_;
    other[option] = value;
    for (const Case& each : cases_) {
      const Case now = under(each, other);
      const Outcome& came = outcome(now);
      if (!came.asked || came.skipped() || breaks_any(now)) continue;
      const Outcome& proposed = outcome(each, contract_);
      // A case that fails whatever the options are says nothing of them.
      if (came.failed() && proposed.failed()) continue;
      (came.passed() ? out.passed : out.failed) += 1;
      if (came.failed() && !out.first) out.first = {now, came.verdict};
      if (came.passed() && (!proposed.asked || proposed.answer != came.answer)) ++out.telling;
    }
    return out;
  }

  ProbedOption probed(const Option& option) {
    ProbedOption out;
    out.name = option.name;
    for (const std::string& value : option.values) {
      out.values.push_back(probed(option.name, value));
      const ProbedValue& found = out.values.back();
      const bool chosen = value == contract_.at(option.name);
      if (chosen || (found.failed == 0 && found.telling > 0)) out.followed.push_back(value);
      if (!chosen && found.failed == 0 && found.telling == 0) out.alike.push_back(value);
    }
    return out;
  }

  std::string preset_of(const Probe& probe) const {
    std::set<std::string> required;
    for (const ProbedRequirement& each : probe.requirements) required.insert(each.requirement.that.text());
    std::string best;
    std::size_t most = 0;
    for (const Preset& preset : op_.presets) {
      std::set<std::string> its;
      for (const Requirement& each : preset.requirements) its.insert(each.that.text());
      const bool fits = std::all_of(probe.options.begin(), probe.options.end(), [&](const ProbedOption& option) {
        const auto said = preset.options.find(option.name);
        if (said == preset.options.end() || said->second == option.followed) return true;
        // Where it is known by what it requires, it may follow further values: those are said besides.
        return !required.empty() && std::all_of(said->second.begin(), said->second.end(), [&](const std::string& value) {
          return std::find(option.followed.begin(), option.followed.end(), value) != option.followed.end();
        });
      });
      if (its != required || !fits || preset.options.size() <= most) continue;
      best = preset.name;
      most = preset.options.size();
    }
    return best;
  }

  Probe report() {
    Probe out;
    for (const Case& value : cases_) {
      const Case now = under(value, contract_);
      const Outcome& came = outcome(now);
      if (!came.asked) continue;
      ++out.cases;
      const bool broken = breaks_any(now);
      if (came.skipped()) ++out.skipped;
      if (came.passed() && !broken) ++out.passed;
      if (!came.skipped() && broken) ++out.left_out;
      if (!came.failed() || broken) continue;
      ++out.unexplained_cases;
      if (out.unexplained.size() < kUnexplained) out.unexplained.push_back({now, came.verdict});
    }
    for (const Option& option : op_.contract) out.options.push_back(probed(option));
    out.requirements = requirements_;
    out.preset = preset_of(out);
    out.runs = runs_;
    return out;
  }

  const Workbench& bench_;
  const Op& op_;
  Kernel kernel_;
  const std::vector<Question> questions_ = questions_of(op_);
  std::optional<Generator> generator_;
  std::uint64_t drawn_from_ = 0;
  std::vector<Case> cases_;  // as they were drawn
  Contract contract_;        // chosen so far
  std::vector<ProbedRequirement> requirements_;
  std::map<std::string, Outcome> outcomes_;  // by case
  std::int64_t runs_ = 0;
};

}  // namespace

Probe probe(const Workbench& bench, const Op& op, const Kernel& kernel) { return Prober(bench, op, kernel).run(); }

Declaration proposal_of(const Probe& probe, const Op& op) {
  Declaration out;
  out.preset = probe.preset;
  const Preset* const preset = op.preset(probe.preset);
  for (const ProbedOption& option : probe.options) {
    const bool said = preset != nullptr && preset->options.contains(option.name);
    const std::vector<std::string> otherwise =
        said ? preset->options.at(option.name) : std::vector<std::string>{op.option(option.name)->values.front()};
    if (option.followed != otherwise) out.options.emplace(option.name, option.followed);
  }
  if (preset != nullptr) return out;
  for (const ProbedRequirement& each : probe.requirements) out.requirements.push_back(each.requirement);
  return out;
}

}  // namespace dcpcheck
