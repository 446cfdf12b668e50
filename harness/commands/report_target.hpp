// Where the report of a run goes: --json, and a file for each format that is asked for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/commands/options.hpp"
#include "harness/report/format.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// `options`, and one for each format (harness/report/formats).
std::vector<OptionSpec> with_format_options(std::vector<OptionSpec> options);

class ReportTarget {
 public:
  // Throws InputError where a file cannot be one, or two are the same.
  ReportTarget(const Arguments& arguments, Context& context);

  std::ostream& console() const { return json_.console(); }
  bool colour() const { return json_.colour(); }
  // Throws InputError where a file that will be written is `path`, a case that is to be run.
  void spare(const std::string& path) const;
  // Writes all that was asked for, then `text` for a person, which is shown even where something could not be written, and
  // annotations where the run is a job of GitHub's. Throws HarnessError where a write did not succeed.
  void deliver(const Report& report, const std::string& text) const;

 private:
  JsonTarget json_;
  std::vector<std::pair<Format, ReportFile>> files_;
  std::vector<std::pair<std::string, std::string>> paths_;  // option and path, --json among them
};

}  // namespace dcpcheck
