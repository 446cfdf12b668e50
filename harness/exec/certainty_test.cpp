#include "harness/exec/certainty.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace dcpcheck {
namespace {

// A launch of one row: outs [heads * width] and lses [heads], each with a bound.
Expected launch(const std::vector<double>& outs, const std::vector<double>& lses, double out_error, double lse_error) {
  const auto sheet = [](const std::vector<double>& value, double error) {
    Admissible rows;
    rows.rows = 1;
    rows.columns = static_cast<std::int64_t>(value.size());
    rows.value = value;
    rows.error.assign(value.size(), error);
    return rows;
  };
  return {{"out", sheet(outs, out_error)}, {"lse", sheet(lses, lse_error)}};
}

double merged(const std::vector<double>& lses, const std::vector<double>& outs) {
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < lses.size(); ++i) {
    sum += std::exp(lses[i]);
    total += std::exp(lses[i]) * outs[i];
  }
  return total / sum;
}

// Whatever parts do within their bounds, what they come to stays within the bound of the whole.
TEST(Certainty, TheBoundHoldsWhateverThePartsDo) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const Taint clean;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> lses, outs;
    std::vector<Expected> launches;
    std::vector<double> out_errors, lse_errors;
    for (int part = 0; part < 4; ++part) {
      lses.push_back(normal(random) * 2);
      outs.push_back(normal(random));
      out_errors.push_back(1e-5 * std::abs(normal(random)));
      lse_errors.push_back(1e-5 * std::abs(normal(random)));
      launches.push_back(launch({outs.back()}, {lses.back()}, out_errors.back(), lse_errors.back()));
    }
    std::vector<JudgedRow> parts;
    parts.reserve(launches.size());
    for (const Expected& one : launches) parts.push_back({&one, &clean, 0, 0});
    const auto exact = exact_outputs(parts, {}, 1, 1);
    ASSERT_TRUE(exact);
    EXPECT_NEAR(exact->value[0], merged(lses, outs), 1e-12);
    double worst = 0;
    for (int signs = 0; signs < 256; ++signs) {
      std::vector<double> moved_lses = lses, moved_outs = outs;
      for (std::size_t part = 0; part < 4; ++part) {
        moved_lses[part] += ((signs >> part) & 1) != 0 ? lse_errors[part] : -lse_errors[part];
        moved_outs[part] += ((signs >> (4 + part)) & 1) != 0 ? out_errors[part] : -out_errors[part];
      }
      worst = std::max(worst, std::abs(merged(moved_lses, moved_outs) - exact->value[0]));
    }
    EXPECT_LE(worst, exact->error[0]);
    EXPECT_GE(worst, exact->error[0] / 8) << "a bound, not a guess";
  }
}

TEST(Certainty, MergesAddWhatTheyMayBeOffBy) {
  const Taint clean;
  const Expected part = launch({1, 2}, {0}, 0, 0), merge = launch({1, 2}, {0}, 0.25, 0);
  const JudgedRow parts[] = {{&part, &clean, 0, 0}}, merges[] = {{&merge, &clean, 0, 0}, {&merge, &clean, 0, 0}};
  const auto exact = exact_outputs(parts, merges, 1, 2);
  ASSERT_TRUE(exact);
  EXPECT_GE(exact->error[0], 0.5);
  EXPECT_LT(exact->error[0], 0.51);
}

TEST(Certainty, EmptyPartsSayNothing) {
  const Taint clean;
  const double infinity = std::numeric_limits<double>::infinity();
  const Expected full = launch({1}, {2}, 0, 0), empty = launch({77}, {-infinity}, 5, 0);
  const JudgedRow parts[] = {{&empty, &clean, 0, 0}, {&full, &clean, 0, 0}};
  const auto exact = exact_outputs(parts, {}, 1, 1);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->value[0], 1);
  EXPECT_EQ(exact->error[0], 0);
}

TEST(Certainty, NothingIsKnownOfWhatIsTaintedOrLeftOut) {
  const Taint clean, tainted{{"out", {false, true}}};
  Expected part = launch({1, 2}, {0}, 0, 0);
  const JudgedRow first[] = {{&part, &tainted, 0, 0}};
  EXPECT_FALSE(exact_outputs(first, {}, 1, 2));
  EXPECT_TRUE(exact_outputs(first, {}, 1, 1)) << "the tainted element is not among them";
  const JudgedRow whole[] = {{&part, &clean, 0, 0}};
  part.at("lse").error[0] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(exact_outputs(whole, {}, 1, 2));
  part.at("lse").error[0] = 0;
  part.at("out").rows_known = {false};
  EXPECT_FALSE(exact_outputs(whole, {}, 1, 2));
}

TEST(Certainty, HeadsLieSideBySide) {
  const Taint clean;
  const Expected part = launch({1, 2, 3, 4}, {0, 1}, 0, 0);
  const JudgedRow second[] = {{&part, &clean, 0, 1}};
  EXPECT_THAT(exact_outputs(second, {}, 1, 2)->value, testing::ElementsAre(3, 4));
}

TEST(Certainty, TheNearestChoiceIsTheOneThatIsLeastSure) {
  // Logits 3, 2.9 and 1: the second is nearer, but the third has the wider bound.
  const ExactOutputs outputs{{1, 1}, {0, 0.5}};
  const std::vector<float> table = {3, 0, 2.9F, 0, 0, 1};
  const TokenStep step = choice(outputs, table);
  ASSERT_TRUE(step.known);
  EXPECT_NEAR(step.margin, 2, 1e-6);
  EXPECT_NEAR(step.bound, 0.5, 1e-5);
  EXPECT_TRUE(step.conclusive());
}

TEST(Certainty, ATieIsNotSure) {
  const ExactOutputs outputs{{1, 1}, {0, 0}};
  const TokenStep step = choice(outputs, std::vector<float>{3, 0, 0, 3});
  EXPECT_EQ(step.margin, 0);
  EXPECT_FALSE(step.conclusive());
  const TokenStep close = choice({{1, 1}, {1e-3, 1e-3}}, std::vector<float>{3, 0, 0, 3.001F});
  EXPECT_FALSE(close.conclusive());
}

}  // namespace
}  // namespace dcpcheck
