// For tests: judging rows of fp32 outputs.
#pragma once

#include <string_view>
#include <vector>

#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {

// How many of the elements of row `row` of the output `name` are not admissible.
inline int wrong_in_row(const Worked& worked, std::string_view name, std::int64_t row, const std::vector<float>& got) {
  int count = 0;
  judge_row(worked.expected.find(name)->second, row, reinterpret_cast<const std::byte*>(got.data()), {DType::fp32, {}, false},
            {}, 0, [&](std::int64_t, double) { ++count; });
  return count;
}

}  // namespace dcpcheck::reference::testing
