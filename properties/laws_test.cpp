// Each law, over generated cases of each op that obeys it, on the fixed kernels: none reports. That laws report what they
// should, the catalogue of faults shows (hunt_test.cpp, dcpcheck faults).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "harness/adapters/builtin.hpp"
#include "harness/core/error.hpp"
#include "properties/arbitrary_case.hpp"
#include "properties/check_law.hpp"
#include "properties/law.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

struct Pair {
  std::string op, law;
};

std::vector<Pair> pairs() {
  std::vector<Pair> out;
  for (const auto& [name, builtin] : builtin_ops()) {
    for (const Law& law : all_laws()) {
      if (obeys(builtin.op, law)) out.push_back({name, law.name});
    }
  }
  return out;
}

class Laws : public testing::TestWithParam<Pair> {
 protected:
  const TestBench bench_;
};

TEST_P(Laws, HoldOnTheFixedKernel) {
  const Op& op = bench_.ops.at(GetParam().op);
  const Kernel& kernel = bench_.kernel(op.name);
  const Law* const law = find_law(GetParam().law);
  const auto generator = std::make_shared<const Generator>(op, bench_.generate_options(op));
  const int cases = std::getenv("DCPCHECK_SWEEP") != nullptr ? 400 : kSanitized ? 2 : 8;
  int spoke = 0;
  check_law(54907, std::max(cases / (op.pipeline.empty() ? 1 : 4), 1), [&] {
    const Case value = *arbitrary_case(generator);
    Trial trial(bench_.bench, op, kernel, value);
    const Verdict verdict = verdict_of(*law, apply(*law, trial));
    spoke += verdict.status == Status::pass ? 1 : 0;
    RC_ASSERT(verdict.status == Status::pass || verdict.status == Status::skipped);
  });
  // Of few cases a law may have nothing to say: powers of two are rare.
  if (cases > 100) {
    EXPECT_GT(spoke, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Laws, testing::ValuesIn(pairs()),
                         [](const testing::TestParamInfo<Pair>& one) { return one.param.op + "_" + one.param.law; });

TEST(AllLaws, HaveNamesAndWords) {
  std::set<std::string> names;
  for (const Law& law : all_laws()) {
    EXPECT_TRUE(names.insert(law.name).second) << law.name;
    EXPECT_THAT(law.doc, testing::EndsWith(".")) << law.name;
  }
  for (const auto& [name, builtin] : builtin_ops()) EXPECT_NO_THROW(check_laws_of(builtin.op)) << name;
}

TEST(AllLaws, OneThatThereIsNotIsRefused) {
  const TestBench bench;
  Op op = bench.ops.at("fused_q");
  op.laws.emplace_back("batch_neighbors");
  EXPECT_THROW(check_laws_of(op), InputError);
}

TEST(AllLaws, AreSilentOfOpsThatDoNotNameThem) {
  const TestBench bench;
  const Op& op = bench.ops.at("gather_cache");
  Trial trial(bench.bench, op, bench.kernel("gather_cache"), plain_case(op));
  for (const Law& law : all_laws()) {
    const Verdict verdict = verdict_of(law, apply(law, trial));
    if (!obeys(op, law)) {
      EXPECT_EQ(verdict.status, Status::skipped) << law.name;
    }
  }
}

}  // namespace
}  // namespace dcpcheck
