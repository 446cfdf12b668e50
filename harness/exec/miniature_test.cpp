#include "harness/exec/miniature.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "harness/core/bf16.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class MiniatureTest : public testing::Test {
 protected:
  MiniatureTest() {
    for (const auto& [name, op] : builtin_ops()) ops_.emplace(name, op.op);
    const char* text = R"({"op":"generate","seed":"0000000000000011","geometry":{"batch":[{"uncached":4}],"tp":2,
      "caches":{"mla":{}}},"params":{"heads":2,"qk_nope_head_dim":3,"qk_rope_head_dim":4,"v_head_dim":2,"q_lora_rank":10,
      "kv_lora_rank":6,"max_position":32,"indexer":false}})";
    plan_ = make_plan(ops_.at("generate"), case_from_json(ops_, json::parse(text, "c"), "c"), std::int64_t{1} << 30);
    inputs_ = make_inputs(plan_);
  }

  Ops ops_;
  Plan plan_;
  Inputs inputs_;
};

TEST_F(MiniatureTest, TokensAreRowsOfTheTables) {
  const std::vector<std::int32_t> ids = {7, -1, 255};
  const Bytes rows = miniature::embed(plan_, inputs_, "kv_c", ids);
  const Bytes& table = inputs_.get("kv_c", 0);
  ASSERT_EQ(rows.size(), 3U * 12);
  EXPECT_EQ(std::memcmp(rows.data(), table.data() + 7 * 12, 12), 0);
  EXPECT_EQ(std::memcmp(rows.data() + 12, table.data(), 12), 0) << "-1 stands for 0";
  EXPECT_EQ(std::memcmp(rows.data() + 24, table.data() + 255 * 12, 12), 0);
}

// Against the formula, in fp64.
TEST_F(MiniatureTest, QueriesAreStretchesOfTheNormedRow) {
  std::vector<std::uint16_t> q_c(2 * 10);
  for (std::size_t i = 0; i < q_c.size(); ++i) q_c[i] = encode_bf16(static_cast<float>(i) * 0.25F - 2);
  Bytes bytes(q_c.size() * 2);
  std::memcpy(bytes.data(), q_c.data(), bytes.size());
  const std::vector<std::int64_t> positions = {5, 31};
  for (const bool interleaved : {true, false}) {
    plan_.value.params["rope_interleaved"] = interleaved;
    const Bytes made = miniature::queries(plan_, inputs_, bytes, positions, 2, 2);
    std::vector<float> q(made.size() / 4), table(32 * 4);
    std::memcpy(q.data(), made.data(), made.size());
    std::memcpy(table.data(), inputs_.get("cos_sin_cache", 0).data(), table.size() * 4);
    ASSERT_EQ(q.size(), 2U * 2 * 7);
    for (std::size_t token = 0; token < 2; ++token) {
      for (std::size_t h = 0; h < 2; ++h) {
        const float* const head = &q[(token * 2 + h) * 7];
        const std::size_t start = 97 * (2 + h);
        for (std::size_t d = 0; d < 3; ++d) EXPECT_EQ(head[d], decode_bf16(q_c[token * 10 + (start + d) % 10]));
        for (std::size_t i = 0; i < 2; ++i) {
          const std::size_t x = interleaved ? 2 * i : i, y = interleaved ? 2 * i + 1 : i + 2;
          const double a = decode_bf16(q_c[token * 10 + (5 + start + x) % 10]);
          const double b = decode_bf16(q_c[token * 10 + (5 + start + y) % 10]);
          const auto row = static_cast<std::size_t>(positions[token]) * 4;
          EXPECT_NEAR(head[3 + x], a * table[row + i] - b * table[row + 2 + i], 1e-6);
          EXPECT_NEAR(head[3 + y], b * table[row + i] + a * table[row + 2 + i], 1e-6);
        }
      }
    }
  }
}

TEST_F(MiniatureTest, LogitsAreSumsOverAllHeads) {
  std::vector<float> outputs(8);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = 1 + static_cast<float>(i);
  const auto logits = miniature::logits(plan_, inputs_, outputs);
  ASSERT_EQ(logits.size(), 256U);
  std::vector<float> table(256 * 8);
  std::memcpy(table.data(), inputs_.get("logits", 0).data(), table.size() * 4);
  for (std::size_t id = 0; id < 256; ++id) {
    double sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum += static_cast<double>(table[id * 8 + i]) * outputs[i];
    EXPECT_NEAR(logits[id], sum, 1e-5);
  }
  outputs[3] = kNan;
  EXPECT_EQ(miniature::greedy(miniature::logits(plan_, inputs_, outputs)), -1) << "one NaN is in all sums";
}

TEST(Greedy, TheLargestTheLowestOfSeveralAndNeverANan) {
  EXPECT_EQ(miniature::greedy(std::vector<float>{1, 3, 2}), 1);
  EXPECT_EQ(miniature::greedy(std::vector<float>{1, 3, 3}), 1);
  EXPECT_EQ(miniature::greedy(std::vector<float>{kNan, 1, kNan, 2}), 3);
  EXPECT_EQ(miniature::greedy(std::vector<float>{kNan, -std::numeric_limits<float>::infinity()}), 1);
  EXPECT_EQ(miniature::greedy(std::vector<float>{kNan, kNan}), -1);
  EXPECT_EQ(miniature::greedy(std::vector<float>{-0.0F, 0.0F}), 0);
}

}  // namespace
}  // namespace dcpcheck
