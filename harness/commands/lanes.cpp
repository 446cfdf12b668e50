#include "harness/commands/lanes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/campaign/source.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"
#include "properties/law.hpp"

namespace dcpcheck {
namespace {

// A pipeline's case is hundreds of launches: it has a turn where others have fifty.
constexpr std::int64_t kShare = 50, kPipelineShare = 1;

bool is_of_every_case(const std::string& law) { return law == "admissible_values" || law == "write_set"; }

// What of the op's laws the lane asks: those that were named, or else those beyond what judging a case comes to anyway.
void add_laws(Lane& lane, const Op& op, const std::vector<std::string>& named) {
  if (named.empty()) {
    for (const Law& law : all_laws())
      if (obeys(op, law) && !is_of_every_case(law.name)) lane.laws.push_back(law.name);
    return;
  }
  lane.judged = false;
  for (const std::string& name : named) {
    if (obeys(op, law_named(name))) lane.laws.push_back(name);
  }
}

}  // namespace

std::vector<OptionSpec> campaign_options() {
  return {
      backend_option(),
      kernel_option("the fixed kernel of each op"),
      {"--op", "OP", "Draw cases of this op; default: of the kernels' ops", true},
      {"--law", "NAME", "Ask this law of every case, in place of judging every element and one of the op's laws in turn", true},
      {"--share", "OP=N", "How many turns the op has a round, 1 to 1000; default 50, of a pipeline 1", true},
      seed_option(),
      memory_option(),
      ops_option(),
      self_test_option()};
}

std::map<std::string, std::int64_t> parse_shares(const std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> shares;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    std::int64_t share = 0;
    const char* const end = word.data() + word.size();
    const char* const begin = std::min(word.data() + equals + 1, end);
    const auto [stop, error] = std::from_chars(begin, end, share);
    if (equals == 0 || begin == end || error != std::errc{} || stop != end || share < 1 || share > 1000)
      throw InputError("--share takes OP=N with N from 1 to 1000, as fused_q=20, not '" + text::printable(word) + "'");
    shares[word.substr(0, equals)] = share;
  }
  return shares;
}

std::optional<Case> base_case(const Context& context, std::int64_t memory, const std::string& from,
                              const std::vector<std::string>& overrides) {
  if (from.empty()) {
    if (!overrides.empty()) throw InputError("--set changes the case of --from, and none was given");
    return std::nullopt;
  }
  const std::vector<NamedCase> cases = load_cases(context, {from}, {{}, memory, overrides});
  if (cases.size() != 1) throw InputError("--from takes one case, and there are " + std::to_string(cases.size()));
  const Case& base = cases.front().file.value;
  if (!base.stored.empty())
    throw InputError(from + ": its tensors lie in files beside it, and cases of a campaign have theirs from a seed");
  return base;
}

std::vector<ServedLane> lanes_for(Context& context, const RunSettings& settings, const Arguments& arguments) {
  const std::vector<const Kernel*> selected = select_kernels(context, settings.kernels);
  const std::vector<std::string> ops = arguments.all("--op"), laws = arguments.all("--law");
  for (const std::string& op : ops) static_cast<void>(op_named(context, op));
  std::map<std::string, std::int64_t> shares = parse_shares(arguments.all("--share"));
  for (const auto& share : shares) static_cast<void>(op_named(context, share.first));
  std::vector<ServedLane> lanes;
  const Workbench bench = bench_of(context, settings, 1);
  const auto add = [&](const Op& op, const Kernel& kernel) {
    if (!can_run(bench, op, kernel))
      throw InputError(kernel.name + " cannot run on the " + settings.backend->name() + " backend");
    ServedLane served;
    served.op = &op;
    served.kernel = &kernel;
    served.lane.op = op.name;
    served.lane.kernel = kernel.name;
    const auto share = shares.find(op.name);
    served.lane.share = share != shares.end() ? share->second : op.pipeline.empty() ? kShare : kPipelineShare;
    add_laws(served.lane, op, laws);
    if (!served.lane.judged && served.lane.laws.empty()) return;
    if (kernel.declared && kernel.op == op.name) served.lane.declaration = to_json(*kernel.declared);
    lanes.push_back(std::move(served));
  };
  if (selected.empty()) {
    for (const auto& [name, op] : context.ops) {
      if (!ops.empty() && std::find(ops.begin(), ops.end(), name) == ops.end()) continue;
      if (const Kernel* kernel = fixed_kernel(context.kernels, name)) add(op, *kernel);
    }
  }
  for (const Kernel* kernel : selected) {
    for (const auto& [name, op] : context.ops) {
      const bool wanted = ops.empty() ? kernel->op == name : std::find(ops.begin(), ops.end(), name) != ops.end();
      if (wanted && runs_on(op, *kernel)) add(op, *kernel);
    }
  }
  if (lanes.empty())
    throw InputError("no kernel that was named is one of an op that was named" +
                     std::string(laws.empty() ? "" : " and obeys a law that was named"));
  return lanes;
}

}  // namespace dcpcheck
