#include "properties/generators.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/philox.hpp"
#include "properties/draft.hpp"
#include "properties/settle.hpp"

namespace dcpcheck {
namespace {

constexpr int kRepairs = 24;     // changes made to a draft that breaks a rule or costs too much
constexpr int kRowTrials = 4;    // drafts for a row of the covering array, before its witness is taken
constexpr int kFreeTrials = 16;  // drafts of a case that is free, before the plain one is taken

// Integers that a rule compares with: values that are worth trying where it is broken.
std::vector<std::int64_t> literals_in(const Expression& expression) {
  const std::string& text = expression.text();
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto word = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '\'';
    };
    std::size_t end = at;
    while (end < text.size() && word(text[end])) ++end;
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (end > at && error == std::errc{} && stop == text.data() + end) out.push_back(value);
    at = std::max(end, at + 1);
  }
  return out;
}

// What a token costs in an op that is made of launches of others: its own tensors do not tell.
constexpr std::int64_t kPipelineToken = 16000;

// What of a tensor there is; of a sparse cache its windows, which overlap.
std::int64_t held_elements(const TensorPlan& tensor) {
  return tensor.cache.sparse ? tensor.cache.resident / 8 : tensor.storage_elements;
}

}  // namespace

std::int64_t cost_of(const Plan& plan) {
  const Geometry& geometry = plan.value.geometry;
  std::int64_t elements = 0, query = 1, output = 0;
  for (const TensorPlan& tensor : plan.tensors) {
    // Storage of caches is counted in bytes: as bf16.
    elements += tensor.spec->cache.empty() ? held_elements(tensor) : held_elements(tensor) / 2;
    if (tensor.spec->shape.empty() || tensor.spec->shape.front().text() != "T") continue;
    std::int64_t& widest = tensor.role == Role::in ? query : output;
    widest = std::max(widest, tensor.columns());
  }
  const bool pipeline = runs_pipeline(*plan.op);
  for (const Request& request : geometry.batch) {
    const std::int64_t total = request.cached + request.uncached;
    if (meets_keys(*plan.op)) elements += (request.uncached + 1) * total * (query + output);
    elements += total;  // references go through the positions, and tables hold their blocks
    if (pipeline) elements += kPipelineToken * total;
  }
  for (const TensorPlan& tensor : plan.tensors) {
    if (pipeline && tensor.role == Role::out) elements += kPipelineToken * tensor.storage_elements;
  }
  return elements * geometry.tp;
}

Case plain_case(const Op& op) {
  const std::vector<std::string> groups = groups_of(op);
  for (const bool plainest : {false, true}) {
    for (unsigned chosen = 0; chosen < (1U << std::min<std::size_t>(groups.size(), 4)); ++chosen) {
      Case value;
      value.op = op.name;
      for (const Param& param : op.params) value.params[param.name] = plainest ? param.plainest : param.value;
      for (const Option& option : op.contract) value.contract[option.name] = option.values.front();
      if (uses(op, "batch")) value.geometry.batch = {{has_context(op) && !launches_tokens(op) ? 1 : 0, 1}};
      for (std::size_t i = 0; i < groups.size(); ++i) {
        if ((chosen >> i & 1U) != 0) value.geometry.caches[groups[i]] = {};
      }
      if (takes_any_groups(op) && chosen == 0) continue;  // a launch about no group does nothing
      try {
        static_cast<void>(make_plan(op, value, std::numeric_limits<std::int64_t>::max()));
        return value;
      } catch (const InputError&) {
        continue;  // the next plainest
      }
    }
  }
  throw InputError("no plain case of the op " + op.name + " is valid: its defaults break its own rules");
}

class Generator::Implementation {
 public:
  Implementation(const Op& op, GenerateOptions options)
      : op_(op),
        options_(std::move(options)),
        large_every_(uses(op, "batch") && !runs_pipeline(op) ? static_cast<std::uint64_t>(options_.large_every) : 0),
        dimensions_(dimensions_of(op)),
        covering_{{}, PairSet(sizes_of(dimensions_)), PairSet(sizes_of(dimensions_)), 0} {
    const std::vector<int> sizes = sizes_of(dimensions_);
    for (const int size : sizes) allowed_.emplace_back(static_cast<std::size_t>(size), true);
    for (const auto& [name, buckets] : options_.only) allow_only(name, buckets);
    const Numbers numbers(dimensions_);
    // Tables may be narrow only where the contract says what then comes of it: that is drawn first.
    add_steps(contract_steps(op_, numbers));
    add_steps(geometry_steps(op_, numbers));
    geometry_end_ = steps_.size();
    add_steps(param_steps(op_, numbers));
    add_steps(launch_steps(numbers));
    tensor_steps_ = tensor_steps(op_, numbers);
    for (const GeometryDimension& dimension : geometry_dimensions(op_)) {
      if (numbers(dimension.name) >= 0) geometry_.emplace_back(numbers(dimension.name), dimension);
    }
    add_rules(numbers);
    for (const std::string& group : groups_of(op_)) {
      if (const int sparse = numbers(group + ".sparse"); sparse >= 0 && large_every_ > 2) sparse_.push_back(sparse);
    }
    find_fallback();
    if (options_.trials <= 0) return;
    // Its own stream: the array is the same for every seed.
    covering_ = make_covering_array(
        sizes,
        [&, drawn = std::uint64_t{0}](const Wishes& wishes, int) mutable {
          Dice dice(rc::Random({0, drawn++, Stream(0, op_.name).word(0), 1}));
          return draw(wishes, 0, dice);
        },
        options_.trials);
  }

  Case at(std::uint64_t seed, std::uint64_t index) const {
    const Stream stream(seed, "case of " + op_.name);
    Dice dice(rc::Random({seed, index, stream.word(index), 0}));
    Case value = draw_at(index, dice);
    value.seed = stream.block(index)[2] | static_cast<std::uint64_t>(stream.block(index)[3]) << 32;
    return value;
  }

  const Op& op() const { return op_; }
  const GenerateOptions& options() const { return options_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  const CoveringArray& covering() const { return covering_; }

  std::uint64_t covering_cases() const {
    const std::uint64_t rows = covering_.rows.size();
    const std::uint64_t every = large_every_;
    return every > 1 ? rows + quotas() * ((rows - std::min<std::uint64_t>(rows, 1)) / (every - quotas())) : rows;
  }

 private:
  // Of each large_every_ indices the last is a large launch's, and the one before it a sparse cache's, where the op has any.
  std::uint64_t quotas() const { return sparse_.empty() ? 1 : 2; }

  Case draw_at(std::uint64_t index, Dice& dice) const {
    const Buckets none(dimensions_.size(), -1);
    std::uint64_t row = index;
    if (const std::uint64_t every = large_every_; every > 1) {
      if (!sparse_.empty() && index % every == every - 2) {
        Buckets sparse = none;
        const int dimension = sparse_[index / every % sparse_.size()];
        if (allowed_[static_cast<std::size_t>(dimension)][1]) sparse[static_cast<std::size_t>(dimension)] = 1;
        for (int trial = 0; trial < kFreeTrials; ++trial) {
          if (auto drawn = draw({sparse, none}, 0, dice)) return std::move(drawn->witness);
        }
      }
      if (index % every == every - 1) {
        for (int trial = 0; trial < kFreeTrials; ++trial) {
          const std::int64_t rows = 65535 + static_cast<std::int64_t>(index / every % 3);
          if (auto drawn = draw({none, none}, rows, dice)) return std::move(drawn->witness);
        }
      }
      row = index - index / every * quotas();
      if (index % every >= every - quotas()) row -= index % every - (every - quotas());
    }
    if (row < covering_.rows.size()) {
      const CoveringRow& wanted = covering_.rows[row];
      for (int trial = 0; trial < kRowTrials; ++trial) {
        if (auto drawn = draw({wanted.buckets, none}, 0, dice)) return std::move(drawn->witness);
      }
      return wanted.witness;
    }
    for (int trial = 0; trial < kFreeTrials; ++trial) {
      if (auto drawn = draw({none, none}, 0, dice)) return std::move(drawn->witness);
    }
    return fallback_;
  }

  // A valid case that meets all of wishes.must, and its buckets; nothing where this draft came to none. `launch`: see
  // Draft.
  std::optional<CoveringRow> draw(Wishes wishes, std::int64_t launch, Dice& dice) const {
    Draft draft;
    draft.value.op = op_.name;
    draft.launch = launch;
    draft.narrow = launch != 0;
    draft.longest = dice.of(std::vector<std::int64_t>{4, 16, 64, 300});
    // Features are left out of whole cases: where everything is strided and special, little else can be seen.
    draft.dense = dice.one_in(2);
    draft.plain_values = dice.one_in(2);
    for (const Param& param : op_.params) draft.value.params[param.name] = param.value;
    for (const Option& option : op_.contract) draft.value.contract[option.name] = option.values.front();
    try {
      const Pick pick(wishes, allowed_, dice);
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        // Most of what cannot be is in the geometry, which is drawn first.
        if (i == geometry_end_ && !meets_geometry(draft, wishes)) return std::nullopt;
        steps_[i].apply(draft, pick, dice);
        if (draft.missed) return std::nullopt;
      }
      settle(op_, draft.value);
      const bool sparse =
          std::any_of(sparse_.begin(), sparse_.end(), [&](int d) { return wishes.must[static_cast<std::size_t>(d)] == 1; });
      const std::int64_t most = launch != 0 || sparse ? options_.large_cost : options_.cost;
      Environment environment = environment_of(op_, draft.value);
      for (int repair = 0; repair <= kRepairs; ++repair) {
        if (const Rule* broken = broken_rule(environment, wishes)) {
          change(draft, broken->steps, broken->literals, environment, wishes, dice);
          continue;
        }
        const Plan plan = make_plan(op_, draft.value, std::numeric_limits<std::int64_t>::max());
        if (cost_of(plan) <= most && plan.memory <= options_.memory) return finished(draft, plan, most, wishes, dice);
        draft.longest = std::max<std::int64_t>(draft.longest / 2, 1);
        draft.narrow = true;
        const std::vector<std::size_t> costly = steps_that_decide(costly_names(plan));
        for (const std::size_t i : costly) give_up_wishes(steps_[i], wishes);
        change(draft, costly, {}, environment, wishes, dice);
      }
    } catch (const InputError&) {
      // A rule that no step knows of: this draft comes to nothing.
    }
    return std::nullopt;
  }

  std::optional<CoveringRow> finished(Draft& draft, const Plan& bare, std::int64_t most, const Wishes& wishes,
                                      Dice& dice) const {
    const Pick pick(wishes, allowed_, dice);
    for (const TensorStep& step : tensor_steps_) step(draft, bare, pick, dice);
    const Plan plan = make_plan(op_, draft.value, options_.memory);
    if (options_.check) options_.check(draft.value);
    // Layouts take room, but of a case that was within its cost never more than twice as much again.
    if (cost_of(plan) > 3 * most) return std::nullopt;
    Buckets buckets = buckets_of(dimensions_, plan);
    for (std::size_t d = 0; d < buckets.size(); ++d) {
      if (wishes.must[d] >= 0 && buckets[d] != wishes.must[d]) return std::nullopt;
      if (buckets[d] >= 0 && !allowed_[d][static_cast<std::size_t>(buckets[d])]) return std::nullopt;
    }
    return CoveringRow{std::move(buckets), std::move(draft.value)};
  }

  bool meets_geometry(Draft& draft, const Wishes& wishes) const {
    settle(op_, draft.value);
    return std::all_of(geometry_.begin(), geometry_.end(), [&](const auto& dimension) {
      const int must = wishes.must[static_cast<std::size_t>(dimension.first)];
      return must < 0 || dimension.second.bucket_of(draft.value.geometry) == must;
    });
  }

  // What must hold of a case: a rule of the op's; or that a tensor is there, of which a dimension speaks that is asked for.
  struct Rule {
    const Expression* that = nullptr;
    bool holds = true;                        // or is not to hold
    int dimension = -1;                       // only where this must be in a bucket; -1: always
    std::vector<std::size_t> steps = {};      // that decide what it speaks of
    std::vector<std::int64_t> literals = {};  // that it speaks of itself
  };

  const Rule* broken_rule(const Environment& environment, const Wishes& wishes) const {
    for (const Rule& rule : rules_) {
      if (rule.dimension >= 0 && wishes.must[static_cast<std::size_t>(rule.dimension)] < 0) continue;
      try {
        if (rule.that->truth(environment) != rule.holds) return &rule;
      } catch (const InputError&) {
        return &rule;  // it speaks of a group that is absent
      }
    }
    return nullptr;
  }

  void add_steps(std::vector<Step> steps) {
    for (Step& step : steps) {
      step.dimensions.erase(std::remove(step.dimensions.begin(), step.dimensions.end(), -1), step.dimensions.end());
      steps_.push_back(std::move(step));
    }
  }

  void add_rules(const Numbers& numbers) {
    for (const Requirement& rule : op_.require) rules_.push_back({&rule.that});
    for (const TensorSpec& spec : op_.tensors) {
      for (const std::string& name : {"layout." + spec.name, "values." + spec.name}) {
        const int number = numbers(name);
        if (number < 0) continue;
        if (!spec.when.empty()) rules_.push_back({&spec.when, true, number});
        if (!spec.in_place_of.empty() && name.starts_with("layout.")) rules_.push_back({&spec.in_place_when, false, number});
      }
    }
    for (Rule& rule : rules_) {
      rule.steps = steps_that_decide(names_in(*rule.that));
      rule.literals = literals_in(*rule.that);
    }
  }

  // What makes the plan cost what it does: the launch's rows, its ranks, and the sizes in the shape of its largest tensor.
  static std::vector<std::string> costly_names(const Plan& plan) {
    const TensorPlan* largest = nullptr;
    for (const TensorPlan& tensor : plan.tensors) {
      if (largest == nullptr || held_elements(tensor) > held_elements(*largest)) largest = &tensor;
    }
    std::vector<std::string> names = {"T", "tp"};
    if (largest == nullptr) return names;
    const auto add = [&](const Expression& expression) {
      for (std::string& name : names_in(expression)) names.push_back(std::move(name));
    };
    for (const Expression& axis : largest->spec->shape) add(axis);
    for (const Record& record : largest->spec->records) {
      for (const Field& field : record.fields) add(field.count);
    }
    if (!largest->spec->cache.empty()) names.push_back(largest->spec->cache + ".blocks");
    return names;
  }

  std::vector<std::size_t> steps_that_decide(const std::vector<std::string>& names) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto& terms = steps_[i].terms;
      const bool decides = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return std::find(terms.begin(), terms.end(), name) != terms.end();
      });
      if (decides) out.push_back(i);
    }
    return out;
  }

  // Draws one of `steps` again: within its bucket where that must be, else anew.
  void change(Draft& draft, const std::vector<std::size_t>& steps, const std::vector<std::int64_t>& literals,
              Environment& environment, Wishes& wishes, Dice& dice) const {
    std::vector<std::size_t> candidates;
    for (const std::size_t i : steps) {
      // A flag or a choice that must be what it is cannot be the one that gives way.
      const bool must = std::any_of(steps_[i].dimensions.begin(), steps_[i].dimensions.end(),
                                    [&](int d) { return wishes.must[static_cast<std::size_t>(d)] >= 0; });
      if (!must || !steps_[i].one_value) candidates.push_back(i);
    }
    // Which of several kinds a case is of is not decided by which widths are rare: sizes give way before flags and choices.
    std::vector<std::size_t> sizes;
    for (const std::size_t i : candidates) {
      if (!steps_[i].one_value) sizes.push_back(i);
    }
    if (!sizes.empty() && !dice.one_in(6)) candidates = sizes;
    if (candidates.empty()) throw InputError("nothing is left to change");
    const std::size_t first = dice.of(candidates);
    give_up_wishes(steps_[first], wishes);
    const Pick pick(wishes, allowed_, dice);
    steps_[first].apply(draft, pick, dice);
    if (const Param* param = steps_[first].param) {
      try_literal(draft, *param, literals, pick, dice);
      // No other field of a draft hangs on a param: there is no need to look at all of them again.
      const ParamValue& drawn = draft.value.params.at(param->name);
      if (const bool* flag = std::get_if<bool>(&drawn)) environment[param->name] = std::int64_t{*flag};
      if (const auto* integer = std::get_if<std::int64_t>(&drawn)) environment[param->name] = *integer;
      if (const auto* choice = std::get_if<std::string>(&drawn)) environment[param->name] = *choice;
      return;
    }
    // What was drawn beside the old value of the field is drawn beside the new one.
    for (std::size_t i = first + 1; steps_[first].geometry && i < steps_.size(); ++i) {
      if (steps_[i].geometry) steps_[i].apply(draft, pick, dice);
    }
    settle(op_, draft.value);
    environment = environment_of(op_, draft.value);
  }

  static void give_up_wishes(const Step& step, Wishes& wishes) {
    for (const int d : step.dimensions) wishes.may[static_cast<std::size_t>(d)] = -1;
  }

  // Half the time, a number that the broken rule itself names.
  void try_literal(Draft& draft, const Param& param, const std::vector<std::int64_t>& literals, const Pick& pick,
                   Dice& dice) const {
    if (param.kind != Param::Kind::integer || literals.empty() || dice.one_in(2)) return;
    const std::int64_t literal = dice.of(literals);
    if (literal < param.min || literal > param.max) return;
    const int d = Numbers(dimensions_)("param." + param.name);
    const int bucket = bucket_of(param, ::dcpcheck::buckets_of(param), literal);
    if (d >= 0 && ((pick.must(d) >= 0 && pick.must(d) != bucket) || bucket < 0 || !pick.allows(d, bucket))) return;
    draft.value.params[param.name] = literal;
  }

  void allow_only(const std::string& name, const std::vector<std::string>& buckets) {
    const int d = Numbers(dimensions_)(name);
    if (d < 0) throw InputError(op_.name + " has no dimension \"" + name + "\" to restrict");
    const Dimension& of = dimensions_[static_cast<std::size_t>(d)];
    std::vector<bool>& allowed = allowed_[static_cast<std::size_t>(d)];
    allowed.assign(allowed.size(), false);
    for (const std::string& bucket : buckets) {
      const auto found = std::find(of.buckets.begin(), of.buckets.end(), bucket);
      if (found == of.buckets.end())
        throw InputError("\"" + bucket + "\" is no bucket of " + op_.name + "'s dimension " + name);
      allowed[static_cast<std::size_t>(found - of.buckets.begin())] = true;
    }
  }

  bool admits(const Case& value) const {
    const Buckets buckets = buckets_of(dimensions_, make_plan(op_, value, std::numeric_limits<std::int64_t>::max()));
    for (std::size_t d = 0; d < buckets.size(); ++d) {
      if (buckets[d] >= 0 && !allowed_[d][static_cast<std::size_t>(buckets[d])]) return false;
    }
    try {
      if (options_.check) options_.check(value);
    } catch (const InputError&) {
      return false;
    }
    return true;
  }

  // A plain case, unless the options rule it out: then the first that is found.
  void find_fallback() {
    fallback_ = plain_case(op_);
    if (admits(fallback_)) return;
    const Buckets none(dimensions_.size(), -1);
    for (std::uint64_t trial = 0; trial < 1000; ++trial) {
      Dice dice(rc::Random({0, trial, Stream(0, op_.name).word(1), 2}));
      if (auto drawn = draw({none, none}, 0, dice)) {
        fallback_ = std::move(drawn->witness);
        return;
      }
    }
    throw InputError("no case of " + op_.name + " was found that is in the buckets asked for");
  }

  const Op& op_;
  GenerateOptions options_;
  std::uint64_t large_every_;  // 0: no launch is large
  std::vector<int> sparse_;    // the dimensions that say of a group whether it is sparse
  std::vector<Dimension> dimensions_;
  Allowed allowed_;
  std::vector<Step> steps_;
  std::size_t geometry_end_ = 0;  // the first step past those of the geometry
  std::vector<TensorStep> tensor_steps_;
  std::vector<std::pair<int, GeometryDimension>> geometry_;  // the dimensions of the geometry alone, with their numbers
  std::vector<Rule> rules_;
  Case fallback_;
  CoveringArray covering_;
};

Generator::Generator(const Op& op, GenerateOptions options)
    : implementation_(std::make_unique<const Implementation>(op, std::move(options))) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

Case Generator::operator()(std::uint64_t seed, std::uint64_t index) const { return implementation_->at(seed, index); }
const Op& Generator::op() const { return implementation_->op(); }
const GenerateOptions& Generator::options() const { return implementation_->options(); }
const std::vector<Dimension>& Generator::dimensions() const { return implementation_->dimensions(); }
const CoveringArray& Generator::covering() const { return implementation_->covering(); }
std::uint64_t Generator::covering_cases() const { return implementation_->covering_cases(); }

}  // namespace dcpcheck
