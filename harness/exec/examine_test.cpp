// Rows that the reference leaves out: written, and the same in both runs, but not judged.
#include "harness/exec/examine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "harness/core/case.hpp"
#include "harness/core/json.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Both runs of a launch of dense_prefill over 9 tokens, whose outputs are the reference's own; of them it knows 0, 4 and 8.
class LeftOutTest : public testing::Test {
 protected:
  LeftOutTest() {
    const BuiltinOp& op = builtins_.at("dense_prefill");
    const Ops ops{{"dense_prefill", op.op}};
    const Case value = case_from_json(ops,
                                      json::parse(R"({"op": "dense_prefill", "seed": "0000000000000003",
      "geometry": {"batch": [{"uncached": 9}]}, "params": {"heads": 1, "v_head_dim": 6, "kv_lora_rank": 40}})",
                                                  "test"),
                                      "test");
    plan_ = make_plan(op.op, value, std::int64_t{1} << 28);
    inputs_ = make_inputs(plan_);
    arena_ = arena_layout(plan_);
    const auto image = [&](Poison poison) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(arena_.bytes));
      fill_arena(bytes, arena_, plan_, inputs_, 0, poison);
      return bytes;
    };
    before_a_ = image(Poison::A);
    before_b_ = image(Poison::B);
    after_a_ = before_a_;
    after_b_ = before_b_;
    const Expected whole = op.reference(plan_, inputs_, 0, {});
    for (std::int64_t row = 0; row < 9; ++row) {
      for (std::int64_t column = 0; column < 6; ++column) {
        put(row, column, static_cast<float>(whole.at("out").value[static_cast<std::size_t>(row * 6 + column)]));
      }
    }
    ReferenceOptions options;
    options.sample = 3;
    expected_ = op.reference(plan_, inputs_, 0, options);
  }

  std::byte* at(std::vector<std::byte>& image, std::int64_t row, std::int64_t column) const {
    const TensorPlan& out = plan_.tensor("out");
    const std::int64_t element = out.offset + row * out.strides[0] + column * out.strides[1];
    return image.data() + arena_.buffer("out").offset + element * 4;
  }
  void put(std::int64_t row, std::int64_t column, float value) {
    for (std::vector<std::byte>* image : {&after_a_, &after_b_}) std::memcpy(at(*image, row, column), &value, sizeof value);
  }
  BufferFindings findings(const Taint& taint = {}) const {
    const TensorPlan& out = plan_.tensor("out");
    const Images images{before_a_.data(), before_b_.data(), after_a_.data(), after_b_.data(), nullptr};
    return examine(plan_, out, arena_, write_set(plan_, out, inputs_, 0), expected_, taint, inputs_, 0, images, 1);
  }
  // The only violation's tokens.
  static std::vector<std::pair<std::int64_t, std::int64_t>> tokens(const BufferFindings& found, Reason reason) {
    if (found.violations.size() != 1 || found.violations[0].reason != reason) return {};
    return found.violations[0].tokens;
  }

  const std::map<std::string, BuiltinOp, std::less<>> builtins_ = builtin_ops();
  Plan plan_;
  Inputs inputs_;
  ArenaLayout arena_;
  std::vector<std::byte> before_a_, before_b_, after_a_, after_b_;
  Expected expected_;
};

TEST_F(LeftOutTest, RowsThatAreKnownAreCompared) {
  const BufferFindings found = findings();
  EXPECT_THAT(found.violations, IsEmpty());
  EXPECT_EQ(found.compared, 3 * 6);
  EXPECT_EQ(found.left_out, 6 * 6);
  EXPECT_EQ(found.written, found.must_write);
  EXPECT_EQ(found.must_write, 9 * 6 * 4);
}

TEST_F(LeftOutTest, AWrongValueIsFoundInARowThatIsKnownAlone) {
  put(3, 2, 1e3F);
  EXPECT_THAT(findings().violations, IsEmpty());
  EXPECT_EQ(findings().left_out, 6 * 6);
  put(4, 2, 1e3F);
  put(8, 5, 1e3F);
  EXPECT_THAT(tokens(findings(), Reason::inadmissible), ElementsAre(Pair(4, 4), Pair(8, 8)));
  EXPECT_EQ(findings().compared, 3 * 6);
}

TEST_F(LeftOutTest, WhatIsUnwrittenIsFoundInAnyRow) {
  for (const std::int64_t row : {3, 4}) {
    std::memcpy(at(after_a_, row, 1), at(before_a_, row, 1), 4);
    std::memcpy(at(after_b_, row, 1), at(before_b_, row, 1), 4);
  }
  const BufferFindings found = findings();
  EXPECT_THAT(tokens(found, Reason::unwritten), ElementsAre(Pair(3, 4)));
  EXPECT_EQ(found.left_out, 6 * 6 - 1);
  EXPECT_EQ(found.compared, 3 * 6 - 1);
  EXPECT_EQ(found.written, found.must_write - 8);
}

TEST_F(LeftOutTest, WhatDiffersBetweenTheRunsIsFoundInAnyRow) {
  const float other = 77;
  std::memcpy(at(after_b_, 3, 1), &other, sizeof other);
  EXPECT_THAT(tokens(findings(), Reason::uninitialised_read), ElementsAre(Pair(3, 3)));
  EXPECT_TRUE(findings().runs_differ);
  EXPECT_EQ(findings().left_out, 6 * 6 - 1);
}

TEST_F(LeftOutTest, TaintedElementsMayDiffer) {
  const float other = 77;
  std::memcpy(at(after_b_, 3, 1), &other, sizeof other);
  std::memcpy(at(after_b_, 4, 1), &other, sizeof other);
  Taint taint;
  taint["out"].assign(9 * 6, false);
  taint["out"][3 * 6 + 1] = taint["out"][4 * 6 + 1] = true;
  const BufferFindings found = findings(taint);
  EXPECT_THAT(found.violations, IsEmpty());
  EXPECT_EQ(found.left_out, 6 * 6) << "of a row that is not known it is not known what is tainted either";
  EXPECT_EQ(found.tainted, 1);
  EXPECT_EQ(found.compared, 3 * 6 - 1);
}

}  // namespace
}  // namespace dcpcheck
