// The reference of fused_q against fp32 arithmetic: every right order of operations is admitted, every wrong one is not; and
// which exponents an index head may have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

std::string text(int tokens, const std::string& params, const std::string& contract = "", const std::string& values = "") {
  return R"({"op": "fused_q", "seed": "0000000000000007", "geometry": {"batch": [{"cached": 3, "uncached": )" +
         std::to_string(tokens) + R"(}], "tp": 2}, "params": {)" + params + R"(}, "contract": {)" + contract +
         R"(}, "values": {)" + values + "}}";
}

const std::string small =
    R"("heads": 2, "kv_lora_rank": 40, "qk_nope_head_dim": 6, "qk_rope_head_dim": 16, "index_heads": 3, "index_head_dim": 48, "index_rope_dim": 16)";
const std::string neox =
    R"("heads": 3, "kv_lora_rank": 127, "qk_rope_head_dim": 64, "index_heads": 2, "index_head_dim": 129, "index_rope_dim": 128, "rope_interleaved": false, "index_rope_interleaved": false, "ql_nope_layout": "head_major", "index_weights_dtype": "fp32")";
const std::string still =  // nothing is turned
    R"("heads": 1, "qk_rope_head_dim": 0, "index_heads": 4, "index_head_dim": 128, "index_rope_dim": 0)";

// How the codes and the weight of an index head go by another exponent than they should.
struct Shift {
  int codes = 0, weight = 0;
};

class QueryKernel : public TestArithmetic {
 public:
  QueryKernel(const Worked& worked, std::int64_t rank = 0, Fault fault = Fault::none)
      : TestArithmetic(worked.plan, worked.inputs, rank, fault) {}

  Stored run(std::int64_t token, const Variation& how, const Shift& shift = {}) {
    how_ = how;
    stored_.clear();
    const bool by_head = plan_.find("ql_nope_by_head") != nullptr, fp8 = plan_.value.flag("fp8");
    for (std::int64_t head = 0; head < plan_.value.integer("heads"); ++head) {
      const float scale = fp8 ? fixed_["q_scale"][0] : 1;
      if (fp8) {
        const Floats nope = by_head ? row("ql_nope_by_head", head, token) : row("ql_nope", token, head);
        store_codes("mqa_q", nope, 0, nope.size(), scale);
      }
      if (plan_.find("q") == nullptr) continue;
      const Floats all = row("q", token, head);
      Floats q_pe(all.begin() + plan_.value.integer("qk_nope_head_dim"), all.end());
      rope(q_pe, "cos_sin_cache", position(token), plan_.value.flag("rope_interleaved"));
      if (fp8) {
        store_codes("mqa_q", quantised(q_pe), 0, q_pe.size(), scale);
      } else {
        store("q_pe_out", q_pe);
      }
    }
    if (plan_.find("index_q") != nullptr) index(token, shift);
    return stored_;
  }

 private:
  void index(std::int64_t token, const Shift& shift) {
    const std::int64_t heads = plan_.value.integer("index_heads");
    std::vector<float> scales;
    for (std::int64_t head = 0; head < heads; ++head) {
      Floats query = row("index_q", token, head);
      if (plan_.find("index_cos_sin_cache") != nullptr) {
        rope(query, "index_cos_sin_cache", position(token), plan_.value.flag("index_rope_interleaved"));
      }
      query = quantised(query);
      scales.push_back(ue8m0_scale(query));
      store_codes("index_q_fp8", query, 0, query.size(), std::ldexp(scales.back(), shift.codes));
    }
    if (is(Fault::scale_of_neighbour)) std::rotate(scales.begin(), scales.begin() + 1, scales.end());
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto w = static_cast<float>(Reader(plan_, inputs_, "index_weights", rank_).number(token, head));
      const float out = product({w, std::ldexp(scales[static_cast<std::size_t>(head)], shift.weight),
                                 plan_.value.number("softmax_scale"), plan_.value.number("head_scale")});
      put("index_weights_out", &out, sizeof out);
    }
  }
  // The factors in the order of the contract, or, where that is any, in one of several.
  float product(const std::array<float, 4>& f) const {
    switch (chosen("weights_product", "any_order") ? how_.product + (how_.fma ? 3 : 0) : 0) {
      case 1: return (f[1] * f[2]) * (f[0] * f[3]);
      case 2: return f[0] * (f[1] * (f[2] * f[3]));
      case 3: return (f[0] * f[2]) * f[3] * f[1];
      case 4: return (f[2] * f[3]) * f[1] * f[0];
      default: return f[0] * f[1] * f[2] * f[3];
    }
  }
};

void expect_all_admitted(const std::string& what, std::int64_t rank = 0) {
  const Worked worked(what, {}, rank);
  QueryKernel kernel(worked, rank);
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    const auto wrong = judge_token(worked, token, kernel.run(token, Variation::number(token)));
    ASSERT_TRUE(wrong.empty()) << "token " << token << ", " << wrong.begin()->first << ": " << wrong.begin()->second
                               << " elements of " << what;
  }
}

const std::string special = R"("q": "special", "ql_nope": "special", "index_q": "special", "index_weights": "special")";
const std::string rounded = R"("pre_quant_round": "bf16")";

TEST(FusedQRightOrders, Plain) {
  expect_all_admitted(text(800, small, "", R"("q": "mixed", "ql_nope": "mixed", "index_q": "mixed")"));
  expect_all_admitted(text(200, small, "", R"("index_q": "critical")"), 1);
  expect_all_admitted(text(200, neox, "", R"("index_q": "ladder", "ql_nope": "ladder")"));
  expect_all_admitted(text(200, neox + R"(, "rope_table_dtype": "bf16")"));
  expect_all_admitted(text(100, still, "", R"("index_q": "critical")"));
  expect_all_admitted(text(200, small + R"(, "fp8": false)"));
}
TEST(FusedQRightOrders, Rounded) {
  expect_all_admitted(text(500, small, rounded, R"("index_q": "critical")"));
  expect_all_admitted(text(200, neox, rounded));
  expect_all_admitted(text(200, still, rounded, R"("index_q": "mixed")"));
}
TEST(FusedQRightOrders, FullDivision) {
  const std::string full = R"("division": "full")";
  expect_all_admitted(text(400, small, full, R"("index_q": "mixed")"));
  expect_all_admitted(text(300, still, full, R"("index_q": "critical")"));
  expect_all_admitted(text(300, neox, full + ", " + rounded, R"("index_q": "critical")"));
  expect_all_admitted(text(100, small, full, R"("q_scale": "constant:0.21875")"));
}
TEST(FusedQRightOrders, WeightsInAnyOrder) {
  const std::string any = R"("weights_product": "any_order")";
  expect_all_admitted(text(500, neox, any));
  expect_all_admitted(text(200, neox, any, R"("index_weights": "tiny", "index_q": "tiny")"));
  expect_all_admitted(text(200, neox, any, R"("index_weights": "constant:1e-38", "index_q": "zero")"));
  expect_all_admitted(text(100, neox, any, R"("index_weights": "constant:3e38", "index_q": "saturating")"));
  expect_all_admitted(text(100, small, any, special));
}
TEST(FusedQRightOrders, NanInfinityAndRange) {
  expect_all_admitted(text(200, small, "", special));
  expect_all_admitted(text(200, small, R"("nan": "clamp")", special));
  expect_all_admitted(text(100, neox, R"("e4m3_overflow": "nan")", R"("q_scale": "constant:0.002")"));
  expect_all_admitted(text(100, neox, rounded, R"("index_q": "constant:3e38", "q": "constant:3e38")"));
  for (const char* const scale : {"zero", "constant:-0.3", "constant:1e-38", "constant:1e38", "nan"}) {
    expect_all_admitted(text(30, small, "", std::string(R"("q_scale": ")") + scale + R"(", "q": "mixed", "ql_nope": "mixed")"));
  }
}

// How many of a case's tokens have an inadmissible element in `field` under a fault.
int killed(const std::string& what, Fault fault, const std::string& field, const Shift& shift = {}) {
  const Worked worked(what);
  QueryKernel kernel(worked, 0, fault);
  int count = 0;
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    count += static_cast<int>(judge_token(worked, token, kernel.run(token, Variation::number(token), shift)).count(field));
  }
  return count;
}

TEST(FusedQWrongOnes, Rope) {
  for (const std::string& params : {small, neox}) {
    for (const Fault fault : {Fault::pairing_swapped, Fault::sine_negated}) {
      EXPECT_EQ(killed(text(40, params), fault, "mqa_q"), 40);
      EXPECT_EQ(killed(text(40, params), fault, "index_q_fp8"), 40);
      EXPECT_EQ(killed(text(40, params + R"(, "fp8": false)"), fault, "q_pe_out"), 40);
    }
  }
  EXPECT_EQ(killed(text(40, small + R"(, "fp8": false)"), Fault::truncation, "q_pe_out"), 40);
}

TEST(FusedQWrongOnes, CodesAndScales) {
  EXPECT_EQ(killed(text(40, small), Fault::codes_truncated, "mqa_q"), 40);
  EXPECT_EQ(killed(text(40, small), Fault::codes_truncated, "index_q_fp8"), 40);
  EXPECT_EQ(killed(text(40, small), Fault::exponent_floored, "index_q_fp8"), 40);
  EXPECT_EQ(killed(text(40, small), Fault::exponent_floored, "index_weights_out"), 40);
  EXPECT_EQ(killed(text(10, still, "", R"("index_q": "zero")"), Fault::no_floor, "index_weights_out"), 10);
  EXPECT_EQ(killed(text(10, still, "", R"("index_q": "constant:448")"), Fault::largest_code_447, "index_q_fp8"), 10);
  EXPECT_EQ(killed(text(10, still, "", R"("index_q": "constant:448")"), Fault::largest_code_447, "index_weights_out"), 10);
  // Narrow heads, whose magnitudes lie further apart: of 32 some have another scale than their neighbour.
  const std::string narrow = R"("heads": 1, "index_head_dim": 8, "index_rope_dim": 8)";
  EXPECT_EQ(killed(text(40, narrow), Fault::scale_of_neighbour, "index_weights_out"), 40);
}

// Another contract's kernel is not admitted.
TEST(FusedQWrongOnes, OtherContracts) {
  const Worked plain(text(40, neox)), other(text(40, neox, rounded + R"(, "weights_product": "any_order")"));
  QueryKernel rounding(other);
  int codes = 0, index_codes = 0, weights = 0;
  for (std::int64_t token = 0; token < 40; ++token) {
    const auto wrong = judge_token(plain, token, rounding.run(token, Variation::number(token)));
    codes += static_cast<int>(wrong.count("mqa_q"));
    index_codes += static_cast<int>(wrong.count("index_q_fp8"));
    weights += static_cast<int>(wrong.count("index_weights_out"));
  }
  EXPECT_GE(codes, 38);
  EXPECT_GE(index_codes, 38);
  EXPECT_GE(weights, 10);
}

// Codes by one exponent and the weight by another: one by itself is found out, and so are both together.
TEST(FusedQWrongOnes, ExponentsOfCodesAndWeight) {
  for (const std::string& params : {small, neox, still}) {
    for (const int step : {-1, 1}) {
      EXPECT_EQ(killed(text(40, params), Fault::none, "index_q_fp8", {step, 0}), 40);
      EXPECT_EQ(killed(text(40, params), Fault::none, "index_weights_out", {step, 0}), 0);
      EXPECT_EQ(killed(text(40, params), Fault::none, "index_weights_out", {0, step}), 40);
      EXPECT_EQ(killed(text(40, params), Fault::none, "index_q_fp8", {0, step}), 0);
      EXPECT_EQ(killed(text(40, params), Fault::none, "index_weights_out", {step, step}), 40);
    }
  }
}

// The exponents that a case's index heads may have: how many heads have more than one.
int heads_with_two(const Worked& worked) {
  return static_cast<int>(worked.expected.find("index_weights_out")->second.alternatives.size());
}

TEST(FusedQExponents, AreOneWhereMagnitudesAreExact) {
  EXPECT_EQ(heads_with_two(Worked(text(200, still, "", R"("index_q": "critical")"))), 0);
  EXPECT_EQ(heads_with_two(Worked(text(200, still, rounded, R"("index_q": "critical")"))), 0);
  // RoPE's bound is some 2^-22 of a magnitude, and there are 600 and 400 heads.
  EXPECT_EQ(heads_with_two(Worked(text(200, small))), 0);
  EXPECT_EQ(heads_with_two(Worked(text(200, neox))), 0);
}

TEST(FusedQExponents, FullDivisionBlursCriticalOnes) {
  const Worked worked(text(200, still, R"("division": "full")", R"("index_q": "critical")"));
  // A third of the heads, those at 1.75 exactly: a bf16 step away is far away.
  EXPECT_GT(heads_with_two(worked), 800 / 4);
  EXPECT_LT(heads_with_two(worked), 800 / 2);
}

// One head of two elements, (1.75, 0), that is turned by the cosine 1: the magnitude is 1.75, but to a bound that reaches
// across it.
TEST(FusedQExponents, BothWhereRopeReachesAcross) {
  const std::string one =
      R"("heads": 1, "kv_lora_rank": 1, "qk_rope_head_dim": 0, "index_heads": 1, "index_head_dim": 3, "index_rope_dim": 2)";
  Worked worked(text(1, one, "", R"("index_weights": "constant:1")"));
  const auto put = [&](const std::string& name, std::size_t at, std::uint16_t code) {
    std::memcpy(worked.inputs.shared.find(name)->second.data() + 2 * at, &code, 2);
  };
  put("index_q", 0, 0x3FE0);  // 1.75
  put("index_q", 1, 0);
  put("index_q", 2, 0x3F80);  // 1, which is not turned
  auto& table = worked.inputs.shared.find("index_cos_sin_cache")->second;
  for (std::size_t row = 0; row < table.size() / 8; ++row) {
    const float turn[2] = {1, 0};
    std::memcpy(table.data() + 8 * row, turn, 8);
  }
  worked.refresh();
  const Admissible& weight = worked.expected.find("index_weights_out")->second;
  ASSERT_EQ(weight.alternatives.size(), 1U);
  const auto factor = static_cast<double>(worked.plan.value.number("softmax_scale"));
  EXPECT_NEAR(weight.value[0] / factor / worked.plan.value.number("head_scale"), 0x1p-8, 1e-9);
  EXPECT_EQ(weight.alternatives[0].value, 2 * weight.value[0]);
  const Admissible& codes = worked.expected.find("index_q_fp8")->second;
  EXPECT_EQ(codes.value, (std::vector<double>{448, 0, 256}));
  EXPECT_EQ(codes.alternatives.size(), 3U);

  QueryKernel kernel(worked);
  EXPECT_TRUE(judge_token(worked, 0, kernel.run(0, {})).empty());
  EXPECT_TRUE(judge_token(worked, 0, kernel.run(0, {}, {1, 1})).empty());
  // A third exponent is none of either's.
  EXPECT_EQ(judge_token(worked, 0, kernel.run(0, {}, {2, 2})).size(), 2U);
  EXPECT_EQ(judge_token(worked, 0, kernel.run(0, {}, {-1, -1})).size(), 2U);
  // What is given up here, as fused_q.cpp says: that codes and weight go by one of the two.
  EXPECT_TRUE(judge_token(worked, 0, kernel.run(0, {}, {1, 0})).empty());

  // A bf16 step below or above there is one again, and mixing shows.
  for (const int step : {-1, 1}) {
    put("index_q", 0, static_cast<std::uint16_t>(0x3FE0 + step));
    worked.refresh();
    EXPECT_EQ(heads_with_two(worked), 0);
    EXPECT_TRUE(judge_token(worked, 0, kernel.run(0, {})).empty());
    EXPECT_FALSE(judge_token(worked, 0, kernel.run(0, {}, {1, 0})).empty());
    EXPECT_FALSE(judge_token(worked, 0, kernel.run(0, {}, {-1, -1})).empty());
  }
}

TEST(FusedQExpected, RanksHaveTheirOwnHeadsAndTheSameIndexer) {
  const std::string what = text(5, small);
  const Worked first(what), second(what, {}, 1), threaded(what, {3, 0});
  ASSERT_EQ(first.expected.size(), 3U);
  EXPECT_NE(first.expected.find("mqa_q")->second.value, second.expected.find("mqa_q")->second.value);
  for (const char* const name : {"index_q_fp8", "index_weights_out"}) {
    EXPECT_EQ(first.expected.find(name)->second.value, second.expected.find(name)->second.value) << name;
  }
  for (const auto& [name, expected] : first.expected) {
    EXPECT_EQ(expected.value, threaded.expected.find(name)->second.value) << name;
    EXPECT_EQ(expected.error, threaded.expected.find(name)->second.error) << name;
  }
}

TEST(FusedQExpected, HeadMajorIsTokenMajorOnTheSameNumbers) {
  Worked by_token(text(5, small)), by_head(text(5, small + R"(, "ql_nope_layout": "head_major")"));
  const Bytes& from = by_token.inputs.get("ql_nope", 0);
  Bytes& to = by_head.inputs.ranks[0].find("ql_nope_by_head")->second;
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t h = 0; h < 2; ++h) std::memcpy(&to[(h * 5 + t) * 80], &from[(t * 2 + h) * 80], 80);
  }
  by_head.refresh();
  EXPECT_EQ(by_head.expected.find("mqa_q")->second.value, by_token.expected.find("mqa_q")->second.value);
}

TEST(FusedQExpected, AlternativesAreSorted) {
  const Worked worked(text(200, neox, rounded));
  int others = 0;
  for (const auto& [name, expected] : worked.expected) {
    others += static_cast<int>(expected.alternatives.size());
    EXPECT_TRUE(std::is_sorted(expected.alternatives.begin(), expected.alternatives.end(),
                               [](const Alternative& a, const Alternative& b) { return a.element < b.element; }))
        << name;
  }
  EXPECT_GT(others, 0);
}

}  // namespace
}  // namespace dcpcheck::reference::testing
