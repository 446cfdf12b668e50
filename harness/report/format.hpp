// A form that a report can be written in, as a value. Each lies in a file of its own under formats/; the build makes the list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/report.hpp"

namespace dcpcheck {

struct Format {
  std::string name;  // "junit": the option is --junit FILE
  std::string help;  // what the option does
  std::function<std::string(const Report&)> render;
};

// All formats, in the order of their names.
std::vector<Format> all_formats();

}  // namespace dcpcheck
