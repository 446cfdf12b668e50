#include "harness/commands/golden.hpp"

#include <filesystem>
#include <system_error>

#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/output.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

namespace fs = std::filesystem;

void refuse(const Arguments& arguments, const std::string& action, const std::vector<std::string>& options) {
  for (const std::string& option : options)
    if (arguments.has(option))
      throw InputError("golden " + action + " has no option " + option + "; see dcpcheck golden --help");
}

// The operands after the action, which are to be as many as `names`.
std::vector<std::string> files_of(const Arguments& arguments, const std::string& action,
                                  const std::vector<std::string>& names) {
  std::vector<std::string> files(arguments.operands.begin() + 1, arguments.operands.end());
  if (files.size() < names.size())
    throw InputError("golden " + action + " needs " + text::list(names) + "; see dcpcheck golden --help");
  if (files.size() > names.size())
    throw InputError("golden " + action + " takes no '" + text::printable(files[names.size()]) +
                     "'; see dcpcheck golden --help");
  return files;
}

// `folder` as the golden file `file` names it: from its own folder, so that it does not matter where both lie.
std::string from_golden(const std::string& folder, const std::string& file) {
  std::error_code error;
  const fs::path own = fs::weakly_canonical(fs::absolute(file).parent_path(), error);
  const fs::path from = fs::relative(fs::weakly_canonical(folder, error), own, error);
  return from.empty() ? fs::absolute(folder).generic_string() : from.generic_string();
}

int write(const Arguments& arguments, Context& context) {
  files_of(arguments, "write", {});
  refuse(arguments, "write", {"--json"});
  if (!arguments.has("-o")) throw InputError("golden write needs -o FILE; see dcpcheck golden --help");
  const std::string path = arguments.text("-o");
  const ReportFile file(path);
  const RunSettings settings = run_settings(arguments);
  const std::string where = arguments.text("--cases", std::string(kBuiltInCases));
  const std::vector<NamedCase> cases = cases_at(context, where, settings.memory);
  const GoldenMade made = make_golden(context, settings, cases);
  for (const std::string& complaint : made.complaints) *context.err << "dcpcheck: " << text::printable(complaint) << "\n";
  for (const std::string& left : made.left_out) *context.out << "left out: " << text::printable(left) << "\n";
  if (!made.complaints.empty()) {
    *context.err << "dcpcheck: " << text::printable(path) << " was not written\n";
    return 1;
  }
  if (made.entries.empty()) {
    *context.err << "dcpcheck: " << text::printable(path) << " was not written: there is nothing to vouch for\n";
    return made.left_out.empty() ? 3 : 77;
  }
  const std::size_t count = made.entries.size();
  file.write(golden_text({where == kBuiltInCases ? where : from_golden(where, path), made.entries}));
  *context.out << text::printable(path) << ": " << count << (count == 1 ? " entry" : " entries") << "\n";
  flush_or_throw(*context.out, "stdout");
  return 0;
}

int answer(const GoldenCheck& check, const JsonTarget& target, Context& context) {
  target.deliver(to_json(check), render(check));
  const int code = exit_code(check);
  if (code == 3) *context.err << "dcpcheck: nothing was vouched for: there is no entry in it\n";
  return code;
}

int verify(const Arguments& arguments, Context& context) {
  const std::string path = files_of(arguments, "verify", {"FILE"}).front();
  refuse(arguments, "verify", {"-o"});
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  const Golden golden = load_golden(path);
  return answer(verify_golden(context, settings, golden,
                              arguments.has("--cases") ? cases_at(context, arguments.text("--cases"), settings.memory)
                                                       : golden_cases(context, golden, path, settings.memory)),
                target, context);
}

int diff(const Arguments& arguments, Context& context) {
  const std::vector<std::string> paths = files_of(arguments, "diff", {"A", "B"});
  refuse(arguments, "diff", {"-o", "--cases", "--kernel", "--backend", "--memory", "--threads", "--ops", "--no-self-test"});
  const JsonTarget target(arguments, context);
  return answer(compare_goldens(load_golden(paths[0]), load_golden(paths[1])), target, context);
}

int run_golden(const Arguments& arguments, Context& context) {
  const std::string& action = arguments.operands.front();
  if (action == "write") return write(arguments, context);
  if (action == "verify") return verify(arguments, context);
  if (action == "diff") return diff(arguments, context);
  const std::string near = text::nearest(action, {"write", "verify", "diff"});
  throw InputError("golden takes write, verify or diff, not '" + text::printable(action) + "'" +
                   (near.empty() ? "" : ": did you mean " + near + "?"));
}

}  // namespace

Verb golden() {
  return {
      "golden",
      "Write digests of what kernels come to, hold them to it later, or compare two such files",
      "golden write -o FILE [--cases DIR] [--kernel K]: runs cases, and keeps the digests of their inputs and outputs. "
      "golden verify FILE: runs the same cases again, and says what differs: inputs, outputs (which buffer, rank, token and "
      "element, and both codes), or only bits that are as right, of another kernel or on another machine, which is no "
      "failure. golden diff A B: compares two files, and runs nothing.",
      {"write|verify|diff", "what to do, then FILE of verify, or A and B of diff", true, true},
      {{"-o", "FILE", "write: the golden file", false},
       {"--cases", "DIR",
        "A folder of cases; default: write: the scenarios that are built in, verify: where the file says they are", false},
       backend_option(),
       kernel_option("write: the fixed kernels, verify: those of the file"),
       json_option(),
       threads_option(),
       memory_option(),
       ops_option(),
       self_test_option()},
      run_golden};
}

}  // namespace dcpcheck::verbs
