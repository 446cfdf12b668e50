// The reference of fused_eh_norm against fp32 arithmetic: every right order of operations is admitted, no wrong one is.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

// Rows 0 and 4 of every 7 are at position 0.
std::string text(int requests, const std::string& params, const std::string& contract = "", const std::string& values = "") {
  std::string batch;
  for (int i = 0; i < requests; ++i) batch += std::string(i == 0 ? "" : ", ") + R"({"uncached": 4}, {"uncached": 3})";
  return R"({"op": "fused_eh_norm", "seed": "0000000000000007", "geometry": {"batch": [)" + batch + R"(]}, "params": {)" +
         params + R"(}, "contract": {)" + contract + R"(}, "values": {)" + values + "}}";
}

class EhNorm : public TestArithmetic {
 public:
  EhNorm(const Plan& plan, const Inputs& inputs, Fault fault = Fault::none) : TestArithmetic(plan, inputs, 0, fault) {}

  Stored run(std::int64_t token, const Variation& how) {
    how_ = how;
    stored_.clear();
    const bool rounded = chosen("norm_round", "bf16");
    const float embeds_eps = plan_.value.number("embeds_eps"), hidden_eps = plan_.value.number("hidden_eps");
    Floats embeds = row("embeds", token);
    if (position(token) == 0) std::fill(embeds.begin(), embeds.end(), 0.0F);
    store("out", rms_norm(embeds, fixed_["embeds_weight"], embeds_eps, hidden_eps, rounded));
    store("out", rms_norm(row("previous_hidden", token), fixed_["hidden_weight"], hidden_eps, embeds_eps, rounded));
    return stored_;
  }
};

void expect_all_admitted(const std::string& what, const ReferenceOptions& options = {}, int sum = -1) {
  const Worked worked(what, options);
  EhNorm kernel(worked.plan, worked.inputs);
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    Variation how = Variation::number(token);
    if (sum >= 0) how.sum = sum;
    const auto wrong = judge_token(worked, token, kernel.run(token, how));
    ASSERT_TRUE(wrong.empty()) << "token " << token << ": " << wrong.begin()->second << " elements of " << what;
  }
}

const std::string normals = R"("embeds": "normal:1", "previous_hidden": "normal:1")";
const std::string low = R"("embeds": "normal:0.003", "previous_hidden": "normal:0.01")";

TEST(FusedEhNorm, RightOrdersAreAdmitted) {
  expect_all_admitted(text(120, R"("hidden_size": 127)", "", R"("embeds": "mixed", "previous_hidden": "ladder")"));
  expect_all_admitted(text(60, R"("hidden_size": 1536)", "", R"("embeds": "large_mean")"));
  expect_all_admitted(text(60, R"("hidden_size": 200)", R"("norm_round": "bf16")", R"("previous_hidden": "mixed")"));
  expect_all_admitted(text(60, R"("hidden_size": 200)", R"("norm_round": "bf16", "division": "full")", low));
  expect_all_admitted(text(60, R"("hidden_size": 96)", "", R"("embeds": "special", "previous_hidden": "special")"));
  expect_all_admitted(text(30, R"("hidden_size": 96, "embeds_eps": 0, "hidden_eps": 0)", "", R"("embeds": "nan")"));
  expect_all_admitted(
      text(30, R"("hidden_size": 96)", "", R"("embeds": "constant:1.88e18", "previous_hidden": "constant:3e19")"));
  expect_all_admitted(text(40, R"("hidden_size": 1536)", "", normals), {1, 128}, 4);
}

// How many of the 7 rows of one request in turn have an inadmissible element under a fault, times 10.
int killed(const std::string& values, Fault fault) {
  const Worked worked(text(10, R"("hidden_size": 1536)", "", values));
  EhNorm kernel(worked.plan, worked.inputs, fault);
  int count = 0;
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    count += judge_token(worked, token, kernel.run(token, Variation::number(token))).empty() ? 0 : 1;
  }
  return count;
}

TEST(FusedEhNorm, WrongOnesAreNot) {
  for (const Fault fault : {Fault::mean_over_more, Fault::mean_over_less, Fault::truncation, Fault::weight_of_neighbour,
                            Fault::bf16_before_weight}) {
    EXPECT_EQ(killed(normals, fault), 70) << static_cast<int>(fault);
  }
  EXPECT_GE(killed(normals, Fault::rstd_in_bf16), 66);
  EXPECT_EQ(killed(low, Fault::no_eps), 70);
  EXPECT_EQ(killed(low, Fault::eps_of_other), 70);
}

TEST(FusedEhNorm, PositionZeroIsExactlyZeroWhateverTheEmbeddingHolds) {
  const Worked worked(text(1, R"("hidden_size": 16)", "", R"("embeds": "nan")"));
  const Admissible& out = worked.expected.find("out")->second;
  ASSERT_EQ(out.columns, 32);
  for (std::int64_t t = 0; t < 7; ++t) {
    for (std::size_t i = 0; i < 16; ++i) {
      const auto at = static_cast<std::size_t>(t) * 32 + i;
      if (t == 0 || t == 4) {
        EXPECT_EQ(out.value[at], 0) << t;
        EXPECT_EQ(out.error[at], 0) << t;
      } else {
        EXPECT_TRUE(std::isnan(out.value[at])) << t;
      }
    }
  }
  EXPECT_TRUE(out.alternatives.empty());
  // A kernel that keeps the embedding is not admitted.
  EhNorm kernel(worked.plan, worked.inputs);
  Stored stored = kernel.run(0, {});
  EXPECT_TRUE(judge_token(worked, 0, stored).empty());
  const std::uint16_t kept = 0x3F80;
  std::memcpy(stored["out"].data() + 6, &kept, 2);
  EXPECT_EQ(judge_token(worked, 0, stored).at("out"), 1);
}

// What is admitted besides the main value lies in the half that it belongs to.
TEST(FusedEhNorm, AlternativesOfBothHalvesAreSorted) {
  const Worked worked(text(20, R"("hidden_size": 300)", R"("norm_round": "bf16")", normals));
  const Admissible& out = worked.expected.find("out")->second;
  EXPECT_TRUE(std::is_sorted(out.alternatives.begin(), out.alternatives.end(),
                             [](const Alternative& a, const Alternative& b) { return a.element < b.element; }));
  int first = 0, second = 0;
  for (const Alternative& other : out.alternatives) {
    const auto at = static_cast<std::size_t>(other.element);
    EXPECT_NEAR(other.value, out.value[at], std::abs(out.value[at]) * 0x1p-6);
    (other.element % 600 < 300 ? first : second) += 1;
  }
  EXPECT_GT(first, 0);
  EXPECT_GT(second, 0);
}

}  // namespace
}  // namespace dcpcheck::reference::testing
