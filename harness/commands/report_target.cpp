#include "harness/commands/report_target.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "harness/core/error.hpp"
#include "harness/report/annotations.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path one = fs::weakly_canonical(a, error), other = fs::weakly_canonical(b, error);
  return !one.empty() && one == other;
}

bool runs_at_github() {
  const char* const actions = std::getenv("GITHUB_ACTIONS");
  return actions != nullptr && std::string_view(actions) == "true";
}

}  // namespace

std::vector<OptionSpec> with_format_options(std::vector<OptionSpec> options) {
  for (const Format& format : all_formats()) options.push_back({"--" + format.name, "FILE", format.help, false});
  return options;
}

ReportTarget::ReportTarget(const Arguments& arguments, Context& context) : json_(arguments, context) {
  if (arguments.has("--json") && arguments.text("--json") != "-") paths_.emplace_back("--json", arguments.text("--json"));
  for (Format& format : all_formats()) {
    const std::string option = "--" + format.name;
    if (!arguments.has(option)) continue;
    const std::string path = arguments.text(option);
    for (const auto& [other, taken] : paths_)
      if (same_file(path, taken)) throw InputError(option + " " + text::printable(path) + " is the file of " + other + ", too");
    paths_.emplace_back(option, path);
    files_.emplace_back(std::move(format), ReportFile(path));
  }
}

void ReportTarget::spare(const std::string& path) const {
  std::error_code error;
  for (const auto& [option, target] : paths_)
    if (fs::equivalent(path, target, error))
      throw InputError(option + " " + text::printable(target) + " is a case that is to be run, and would be overwritten");
}

void ReportTarget::deliver(const Report& report, const std::string& text) const {
  std::exception_ptr failure;
  for (const auto& [format, file] : files_) {
    try {
      file.write(format.render(report));
    } catch (const HarnessError&) {
      if (!failure) failure = std::current_exception();
    }
  }
  json_.deliver(report_to_json(report), text + (runs_at_github() ? annotations(report) : ""));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace dcpcheck
