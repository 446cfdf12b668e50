// References that work out a sample of their rows.
#include "reference/sample.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sample, IsSpreadEvenly) {
  EXPECT_THAT(sampled_rows(10, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(sampled_rows(10, 4), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(sampled_rows(11, 4), ElementsAre(0, 3, 6, 10));
  EXPECT_THAT(sampled_rows(10, 9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 9));
  EXPECT_THAT(sampled_rows(10, 2), ElementsAre(0, 9));
  EXPECT_THAT(sampled_rows(10, 1), ElementsAre(9));
  EXPECT_THAT(sampled_rows(3, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(sampled_rows(3, 1000), ElementsAre(0, 1, 2));
  EXPECT_THAT(sampled_rows(1, 1), ElementsAre(0));
  EXPECT_THAT(sampled_rows(0, 5), IsEmpty());
  EXPECT_THAT(sampled_rows(0, 0), IsEmpty());
  const std::vector<std::int64_t> large = sampled_rows(65536, 1000);
  EXPECT_EQ(large.size(), 1000U);
  EXPECT_EQ(std::adjacent_find(large.begin(), large.end(), std::greater_equal<>()), large.end());
}

TEST(Sample, RowsOfASampleAreAsInTheWhole) {
  for (const std::string& text :
       {std::string(R"({"op": "dense_prefill", "seed": "0000000000000005", "geometry": {"batch": [{"uncached": 20},
          {"uncached": 13}], "padding": {"tokens": 3}}})"),
        std::string(
            R"({"op": "dense_prefill", "seed": "0000000000000005", "geometry": {"batch": [{"cached": 40, "uncached": 20},
          {"uncached": 13}], "caches": {"mla": {}}}, "params": {"causal": false}})"),
        std::string(R"({"op": "merge_chunks", "seed": "0000000000000005", "geometry": {"batch": [{"uncached": 33}],
          "padding": {"tokens": 2}}})")}) {
    const Worked whole(text);
    for (const int threads : {1, 3}) {
      ReferenceOptions options;
      options.threads = threads;
      options.sample = 5;
      const Worked some(text, options);
      for (const char* const name : {"out", "lse"}) {
        const Admissible &all = whole.expected.at(name), &known = some.expected.at(name);
        ASSERT_TRUE(all.rows_known.empty());
        ASSERT_EQ(known.rows_known.size(), static_cast<std::size_t>(known.rows));
        ASSERT_EQ(known.value.size(), all.value.size());
        std::vector<std::int64_t> rows;
        for (std::int64_t row = 0; row < known.rows; ++row) {
          if (!known.knows(row)) continue;
          rows.push_back(row);
          const auto begin = static_cast<std::size_t>(row * known.columns),
                     end = begin + static_cast<std::size_t>(known.columns);
          for (std::size_t i = begin; i < end; ++i) {
            ASSERT_EQ(known.value[i], all.value[i]) << name << ' ' << row;
            ASSERT_EQ(known.error[i], all.error[i]) << name << ' ' << row;
          }
        }
        EXPECT_THAT(rows, ElementsAre(0, 8, 16, 24, 32));
      }
      options.sample = 33;
      EXPECT_TRUE(Worked(text, options).expected.at("out").rows_known.empty());
    }
  }
}

}  // namespace
}  // namespace dcpcheck::reference::testing
