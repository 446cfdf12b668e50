// The reference against fp32 arithmetic: every right order of operations is admitted, every wrong one is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

// A case of `tokens` uncached tokens with these params, contract and values (JSON members).
std::string text(int tokens, const std::string& params, const std::string& contract = "", const std::string& values = "") {
  return R"({"op": "fused_norm_rope", "seed": "0000000000000007", "geometry": {"batch": [{"uncached": )" +
         std::to_string(tokens) +
         R"(}], "caches": {"mla": {}, "indexer": {}}}, "params": {"index_topk": 1, "index_k_out": true, )" + params +
         R"(}, "contract": {)" + contract + R"(}, "values": {)" + values + "}}";
}

const std::string small =
    R"("q_lora_rank": 96, "kv_lora_rank": 127, "qk_rope_head_dim": 16, "index_head_dim": 48, "index_rope_dim": 16)";
const std::string tiled =
    R"("q_lora_rank": 129, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128, "index_rope_dim": 64, "mla_layout": "fp8_ds_mla")";
const std::string wide = R"("q_lora_rank": 1536, "kv_lora_rank": 512, "index_head_dim": 128)";
const std::string fp8 =
    R"("q_lora_rank": 40, "kv_lora_rank": 250, "qk_rope_head_dim": 32, "index_head_dim": 96, "index_rope_dim": 32, "mla_layout": "fp8", "rope_interleaved": false, "index_rope_interleaved": false)";
const std::string bf16_everywhere = R"("norm_round": "bf16", "pre_rope_round": "bf16", "pre_quant_round": "bf16")";

// Every token by another variation; all must be admitted.
void expect_all_admitted(const std::string& what, const ReferenceOptions& options = {}, int sum = -1) {
  const Worked worked(what, options);
  TestKernel kernel(worked.plan, worked.inputs);
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    Variation how = Variation::number(token);
    if (sum >= 0) how.sum = sum;
    const std::map<std::string, int> wrong = judge_token(worked, token, kernel.run(token, how));
    ASSERT_TRUE(wrong.empty()) << "token " << token << ", " << wrong.begin()->first << ": " << wrong.begin()->second
                               << " elements of " << what;
  }
}

// 10,000 rows, each of them RMSNorm of q and kv, RoPE of k_pe, LayerNorm and RoPE of the indexer's key, and scales.
TEST(RightOrders, SmallWidths) { expect_all_admitted(text(3000, small, "", R"("q_c": "mixed", "kv_c": "ladder")")); }
TEST(RightOrders, SmallWidthsLargeMean) { expect_all_admitted(text(1500, small, "", R"("index_k": "large_mean")")); }
TEST(RightOrders, SmallWidthsRounded) {
  expect_all_admitted(text(1500, small, bf16_everywhere, R"("q_c": "mixed", "index_k": "ladder")"));
}
TEST(RightOrders, Fp8) { expect_all_admitted(text(1000, fp8, "", R"("kv_c": "mixed", "k_pe": "ladder")")); }
TEST(RightOrders, Fp8RoundedFull) {
  expect_all_admitted(text(800, fp8 + R"(, "rope_table_dtype": "bf16")", bf16_everywhere + R"(, "division": "full")"));
}
TEST(RightOrders, TilesDividedScales) {
  expect_all_admitted(text(500, tiled, R"("tile_scale": "fp32_div")", R"("kv_c": "critical")"));
}
TEST(RightOrders, TilesMultipliedScales) {
  expect_all_admitted(text(400, tiled, R"("tile_scale": "fp32_mul")", R"("kv_c": "mixed")"));
}
TEST(RightOrders, TilesPowersOfTwo) {
  expect_all_admitted(text(500, tiled, R"("tile_scale": "pow2")", R"("kv_c": "critical", "index_k": "critical")"));
}
TEST(RightOrders, TilesPowersOfTwoFullRounded) {
  expect_all_admitted(
      text(300, tiled, R"("tile_scale": "pow2", "division": "full", "pre_quant_round": "bf16")", R"("kv_c": "critical")"));
}
TEST(RightOrders, TilesDividedFull) {
  expect_all_admitted(
      text(200, tiled, R"("division": "full", "e4m3_overflow": "nan")", R"("kv_c": "tiny", "index_k": "tiny")"));
}
TEST(RightOrders, Wide) { expect_all_admitted(text(300, wide, "", R"("kv_c": "saturating", "index_k": "large_mean")")); }

// The bound for a known depth still holds what is summed in that way: 128 running sums, then a tree.
TEST(RightOrders, KnownDepth) {
  expect_all_admitted(text(300, wide, "", R"("index_k": "large_mean")"), {1, 128}, 4);
  expect_all_admitted(text(500, small, "", R"("index_k": "large_mean")"), {1, 128}, 4);
}

TEST(RightOrders, NanAndInfinity) {
  expect_all_admitted(text(200, tiled, "", R"("q_c": "special", "kv_c": "special", "k_pe": "special", "index_k": "special")"));
  expect_all_admitted(
      text(200, fp8, R"("nan": "clamp")", R"("q_c": "special", "kv_c": "special", "k_pe": "special", "index_k": "special")"));
  expect_all_admitted(text(50, small, bf16_everywhere, R"("q_c": "nan", "kv_c": "special", "index_k": "special")"));
}

TEST(RightOrders, OverflowAndUnderflow) {
  // Sums of squares past fp32's range: rstd is 0. Some only in some orders.
  for (const char* const x : {"constant:3e19", "constant:2e38", "constant:1.05e18", "constant:1.88e18", "normal:1e18"}) {
    const std::string values = std::string(R"("q_c": ")") + x + R"(", "kv_c": ")" + x + R"(", "index_k": ")" + x + "\"";
    expect_all_admitted(text(30, small, "", values));
    expect_all_admitted(text(30, tiled, bf16_everywhere, values));
  }
  // No eps: rsqrt(0), and squares that are subnormal or vanish.
  for (const char* const x : {"zero", "tiny", "normal:1e-22", "normal:1e-19", "constant:1e-38"}) {
    const std::string values = std::string(R"("q_c": ")") + x + R"(", "kv_c": ")" + x + R"(", "index_k": ")" + x + "\"";
    const std::string no_eps = R"(, "q_eps": 0, "kv_eps": 0, "index_eps": 0)";
    expect_all_admitted(text(30, small + no_eps, "", values));
    expect_all_admitted(text(30, tiled + no_eps, bf16_everywhere, values));
  }
}

// How many of a case's tokens have an inadmissible element in one of `fields` (all: empty), under a fault.
int killed(const std::string& what, Fault fault, const std::vector<std::string>& fields) {
  const Worked worked(what);
  TestKernel kernel(worked.plan, worked.inputs, fault);
  int count = 0;
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    const auto wrong = judge_token(worked, token, kernel.run(token, Variation::number(token)));
    count += std::any_of(wrong.begin(), wrong.end(), [&](const auto& entry) {
      return std::find(fields.begin(), fields.end(), entry.first) != fields.end();
    });
  }
  return count;
}

TEST(WrongOnes, Norms) {
  const std::string one = text(40, wide, "", R"("q_c": "normal:1", "kv_c": "normal:1")");
  for (const char* const field : {"q_c_out", "kv_c_out", "mla_cache.kv_c"}) {
    EXPECT_GE(killed(one, Fault::bf16_before_weight, {field}), 37) << field;  // of rows of 512, nearly all
    EXPECT_EQ(killed(one, Fault::mean_over_more, {field}), 40) << field;
    EXPECT_EQ(killed(one, Fault::mean_over_less, {field}), 40) << field;
    EXPECT_EQ(killed(one, Fault::truncation, {field}), 40) << field;
    EXPECT_EQ(killed(one, Fault::weight_of_neighbour, {field}), 40) << field;
    EXPECT_GE(killed(one, Fault::rstd_in_bf16, {field}), 35) << field;
    EXPECT_GE(killed(one, Fault::last_dropped, {field}), 10) << field;
  }
  EXPECT_EQ(killed(one, Fault::truncation, {"k_pe_out"}), 40);
  EXPECT_EQ(killed(one, Fault::truncation, {"index_k_out"}), 40);
  EXPECT_EQ(killed(one, Fault::mean_over_more, {"index_k_out"}), 40);
  EXPECT_EQ(killed(one, Fault::weight_of_neighbour, {"index_k_out"}), 40);
}

TEST(WrongOnes, Eps) {
  const std::string low = text(40, wide, "", R"("q_c": "normal:0.03", "kv_c": "normal:0.03", "index_k": "normal:0.01")");
  for (const char* const field : {"q_c_out", "kv_c_out", "index_k_out"}) {
    EXPECT_EQ(killed(low, Fault::no_eps, {field}), 40) << field;
    EXPECT_EQ(killed(low, Fault::eps_of_other, {field}), 40) << field;
  }
}

TEST(WrongOnes, Rope) {
  for (const std::string& params : {wide, fp8}) {
    const std::string one = text(40, params);
    // Position 0 turns nothing.
    for (const char* const field : {"k_pe_out", "mla_cache.k_pe", "index_k_out", "indexer_cache.codes"}) {
      EXPECT_GE(killed(one, Fault::pairing_swapped, {field}), 39) << field;
      EXPECT_GE(killed(one, Fault::sine_negated, {field}), 39) << field;
    }
  }
}

TEST(WrongOnes, Scales) {
  for (const char* const rule : {"fp32_div", "fp32_mul", "pow2"}) {
    const std::string contract = std::string(R"("tile_scale": ")") + rule + "\"";
    const std::string one = text(40, tiled, contract, R"("kv_c": "normal:1")");
    const bool power = std::string(rule) == "pow2";
    if (!power) {
      EXPECT_EQ(killed(one, Fault::largest_code_447, {"mla_cache.tile_scales"}), 40) << rule;
      EXPECT_EQ(killed(one, Fault::scale_of_neighbour, {"mla_cache.tile_scales"}), 40) << rule;
    } else {
      EXPECT_EQ(killed(one, Fault::exponent_floored, {"mla_cache.tile_scales"}), 40) << rule;
      EXPECT_GE(killed(one, Fault::scale_of_neighbour, {"mla_cache.tile_scales"}), 5) << rule;
    }
    EXPECT_EQ(killed(one, Fault::codes_truncated, {"mla_cache.kv_c"}), 40) << rule;
    const std::string zero = text(10, tiled, contract, R"("kv_c": "zero")");
    EXPECT_EQ(killed(zero, Fault::no_floor, {"mla_cache.tile_scales"}), 10) << rule;
  }
  EXPECT_EQ(killed(text(40, tiled), Fault::exponent_floored, {"indexer_cache.scale"}), 40);
  EXPECT_EQ(killed(text(40, tiled), Fault::codes_truncated, {"indexer_cache.codes"}), 40);
}

// A row of rms 1 whose first tile's largest magnitude is 1.75 after rounding to bf16: 447 for 448 shows in the exponent.
TEST(WrongOnes, CriticalExponent) {
  Worked worked(text(3, tiled, R"("tile_scale": "pow2", "pre_quant_round": "bf16")", R"("kv_weight": "constant:1")"));
  auto& bytes = worked.inputs.shared.find("kv_c")->second;
  const double largest[3] = {1.75 - 0x1p-7, 1.75, 1.75 + 0x1p-7};
  for (std::size_t i = 0; i < 3 * 512; ++i) {
    const std::size_t column = i % 512;
    const double x = column == 5 ? largest[i / 512] : column < 5 && column > 0 ? 0.6875 : column % 2 == 0 ? 1 : -1;
    const std::uint16_t code = narrow_bf16(x);
    std::memcpy(bytes.data() + 2 * i, &code, sizeof code);
  }
  worked.refresh();
  const Admissible& scales = worked.expected.find("mla_cache.tile_scales")->second;
  EXPECT_EQ(scales.value[0], 0x1p-8);
  EXPECT_EQ(scales.value[4], 0x1p-8);
  EXPECT_EQ(scales.value[8], 0x1p-7);
  EXPECT_TRUE(scales.alternatives.empty());
  TestKernel right(worked.plan, worked.inputs), wrong(worked.plan, worked.inputs, Fault::largest_code_447);
  for (std::int64_t token = 0; token < 3; ++token) {
    EXPECT_TRUE(judge_token(worked, token, right.run(token, {})).empty());
    EXPECT_EQ(judge_token(worked, token, wrong.run(token, {})).count("mla_cache.tile_scales"), token == 1 ? 1U : 0U);
  }
}

// The reverse of RightOrders: what another contract's kernel stores is not admitted.
TEST(WrongOnes, OtherContracts) {
  const Worked plain(text(40, tiled)), rounded(text(40, tiled, bf16_everywhere)),
      multiplied(text(40, tiled, R"("tile_scale": "fp32_mul")"));
  const Worked full(text(40, tiled, R"("division": "full")"));
  TestKernel rounding(rounded.plan, rounded.inputs), multiplying(multiplied.plan, multiplied.inputs);
  int by_rounding = 0, by_multiplying = 0;
  for (std::int64_t token = 0; token < 40; ++token) {
    const auto first = judge_token(plain, token, rounding.run(token, {}));
    EXPECT_TRUE(first.count("kv_c_out") == 1) << token;
    EXPECT_TRUE(first.count("mla_cache.kv_c") == 1) << token;
    by_rounding += first.count("indexer_cache.codes") == 1 ? 1 : 0;
    by_multiplying += judge_token(rounded, token, multiplying.run(token, {})).empty() ? 0 : 1;
  }
  EXPECT_EQ(by_rounding, 40);
  EXPECT_EQ(by_multiplying, 40);
}

TEST(Expected, ShapesAndConstants) {
  const Worked worked(text(5, tiled));
  EXPECT_EQ(worked.expected.size(), 4U + 3 + 2 + 1);
  const Admissible& topk = worked.expected.find("topk_indices")->second;
  EXPECT_TRUE(topk.exact);
  EXPECT_EQ(topk.rows, 5);
  EXPECT_TRUE(std::all_of(topk.codes.begin(), topk.codes.end(), [](std::byte b) { return b == std::byte{0xFF}; }));
  const Admissible& scales = worked.expected.find("mla_cache.tile_scales")->second;
  EXPECT_EQ(scales.columns, 4);
  EXPECT_EQ(scales.rows, 5);
}

TEST(Expected, ThreadsAndPaddingDoNotMatter) {
  const std::string one = R"({"op": "fused_norm_rope", "seed": "0000000000000009", "geometry": {"batch": [{"uncached": 70}],
    "padding": {"tokens": 9}, "caches": {"mla": {}, "indexer": {}}}, "params": {)" +
                          tiled + "}}";
  const Worked single(one), several(one, {4, 0});
  ASSERT_EQ(single.expected.size(), several.expected.size());
  for (const auto& [name, expected] : single.expected) {
    const Admissible& other = several.expected.find(name)->second;
    EXPECT_EQ(expected.rows, 79) << name;
    EXPECT_EQ(expected.value, other.value) << name;
    EXPECT_EQ(expected.error, other.error) << name;
    EXPECT_EQ(expected.alternatives.size(), other.alternatives.size()) << name;
    EXPECT_TRUE(std::is_sorted(expected.alternatives.begin(), expected.alternatives.end(),
                               [](const Alternative& a, const Alternative& b) { return a.element < b.element; }));
  }
}

}  // namespace
}  // namespace dcpcheck::reference::testing
