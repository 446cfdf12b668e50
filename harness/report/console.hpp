// The report as text for a person: a table of at most 80 columns, then a sentence or two for each case that is broken.
#pragma once

#include <string>

#include "harness/report/report.hpp"

namespace dcpcheck {

struct ConsoleStyle {
  bool colour = false;
};

// The table: a line per scenario and kernel with DCP1 and DCP4 side by side where the report is paired, else a line per case
// and kernel. Below it what is broken and how, and the count.
std::string render_console(const Report& report, ConsoleStyle style = {});

// A name that ends in "-dcp<W>", taken apart; world_size 0 where it does not.
struct ScenarioName {
  std::string scenario;
  std::int64_t world_size = 0;
};
ScenarioName scenario_of(const std::string& name);

}  // namespace dcpcheck
