#include <filesystem>
#include <memory>

#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/generate.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"
#include "properties/generators.hpp"

namespace dcpcheck::verbs {
namespace {

// The case as a file that `dcpcheck run` takes.
void write_case(const std::string& folder, const Op& op, const Case& value, std::uint64_t seed, std::uint64_t index) {
  const std::string name = op.name + "-" + seed_text(seed) + "-" + std::to_string(index);
  ReportFile file((std::filesystem::path(folder) / (name + ".json")).string());
  file.write(json::dump(json::Object{{"schema", "dcpcheck.case/1"},
                                     {"name", name},
                                     {"source", "generated: case " + std::to_string(index) + " of seed " + seed_text(seed)},
                                     {"case", case_to_json(op, value)}}) +
             "\n");
}

int run_gen(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const Op& op = op_named(context, arguments.operands.front());
  const std::uint64_t cases = parse_cases("--cases", arguments.text("--cases", "1500"));
  const std::uint64_t seed = arguments.has("--seed") ? parse_seed(arguments.text("--seed")) : 54907;
  const std::string folder = arguments.text("--out");
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw InputError("--out " + text::printable(folder) + ": " + error.message());
  }
  GenerateOptions options;
  if (!op.pipeline.empty()) {
    options.check = [&](const Case& value) { check_generate(context.ops, op, value, options.memory, "case"); };
  }
  const Generator generator(op, options);
  Coverage coverage(generator.dimensions(), generator.covering().met);
  for (std::uint64_t index = 0; index < cases; ++index) {
    context.check_interrupted();
    const Case value = generator(seed, index);
    coverage.add(make_plan(op, value, options.memory));
    if (!folder.empty()) write_case(folder, op, value, seed, index);
  }
  std::string lines = op.name + ", seed " + seed_text(seed) + ": " + text::count(static_cast<std::int64_t>(cases), "case") +
                      ", " + std::to_string(coverage.met()) + " of " + std::to_string(coverage.feasible()) +
                      " pairs of buckets that the search for them found met" +
                      (coverage.unforeseen() > 0 ? ", and " + std::to_string(coverage.unforeseen()) + " that it did not" : "") +
                      "\n";
  for (const Dimension& dimension : generator.dimensions()) {
    std::string line = "  " + dimension.name + ":";
    for (const std::string& bucket : dimension.buckets)
      line += " " + bucket + " " + std::to_string(coverage.in_bucket(dimension.name, bucket)) + ",";
    line.pop_back();
    lines += text::wrap(line, text::kColumns, 6);
  }
  target.deliver(json::Object{{"op", op.name}, {"seed", seed_text(seed)}, {"coverage", coverage.to_json()}}, lines);
  return 0;
}

}  // namespace

Verb gen() {
  return {"gen",
          "Draw cases of an op, and show which buckets they meet",
          "Case i of a seed depends on the seed, i and the op alone. The first ones meet all pairs of buckets that a search "
          "found cases for.",
          {"OP", "the op's name (dcpcheck ops shows them)", true, false},
          {{"--cases", "N", "How many (default 1500)", false},
           {"--out", "DIR", "Also write each case to a file in DIR", false},
           seed_option(),
           json_option(),
           ops_option()},
          run_gen};
}

}  // namespace dcpcheck::verbs
