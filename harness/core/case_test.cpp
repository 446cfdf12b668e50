#include "harness/core/case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.hpp"
#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CaseTest : public testing::Test {
 protected:
  Case read(const std::string& text) const { return case_from_json(ops_, json::parse(text, "c.json"), "c.json"); }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string id(const std::string& text) const {
    const Case value = read(text);
    return case_id(ops_.at(value.op), value);
  }
  const Ops ops_ = ops_of_source();
};

constexpr const char* kWhole = R"({"op": "fused_norm_rope", "seed": "00000000000d67b3",
  "geometry": {"batch": [{"cached": 1024, "uncached": 1536}],
    "padding": {"tokens": 3, "slots": "-1", "positions": "in_range", "values": "nan"},
    "max_batched_tokens": 2048, "tp": 4, "dcp": {"world_size": 4, "interleave": 1},
    "caches": {"mla": {"present": true, "block_size": 64, "kernel_block_size": 32, "spare_blocks": 3, "block_stride_padding": 64, "slot_mapping": "dcp"},
               "indexer": {"block_size": 16, "slot_mapping": "replicated"}}},
  "params": {"q_lora_rank": 1536, "mla_layout": "fp8_ds_mla", "index_k_out": true, "q_eps": 1e-5},
  "contract": {"tile_scale": "pow2"}, "layout": {"q_c": {"stride": 2624, "offset": 16}}, "values": {"kv_c": "normal:0.03"}, "launch": {"graph": true}})";

TEST_F(CaseTest, ComesBackWholeFromItsCanonicalForm) {
  const Case value = read(kWhole);
  EXPECT_EQ(value.geometry.live_tokens(), 1536);
  EXPECT_EQ(value.geometry.tokens(), 1539);
  EXPECT_EQ(value.geometry.caches.at("mla").kernel_block_size, 32);
  EXPECT_EQ(value.number("q_eps"), 1e-5F);
  EXPECT_EQ(value.option("tile_scale"), "pow2");
  EXPECT_EQ(value.option("norm_round"), "none");
  const json::Value written = case_to_json(ops_.at(value.op), value);
  EXPECT_EQ(case_from_json(ops_, written, "again"), value);
  EXPECT_THAT(json::canonical(written), HasSubstr("\"q_eps\":1e-05"));
}

TEST_F(CaseTest, TheIdIgnoresOrderAndDefaultsAndNothingElse) {
  const std::string plain =
      R"({"op":"fused_norm_rope","seed":"0000000000000001","geometry":{"batch":[{"uncached":4}],"caches":{"mla":{}}}})";
  EXPECT_EQ(id(plain).size(), 16U);
  EXPECT_EQ(
      id(plain),
      id(R"({"seed":"0000000000000001","op":"fused_norm_rope","params":{"q_lora_rank":2048},"geometry":{"tp":1,"caches":{"mla":{"block_size":64},"indexer":{"present":false}},"batch":[{"cached":0,"uncached":4}]},"values":{"q_c":"ladder"}})"));
  EXPECT_NE(
      id(plain),
      id(R"({"op":"fused_norm_rope","seed":"0000000000000002","geometry":{"batch":[{"uncached":4}],"caches":{"mla":{}}}})"));
  EXPECT_NE(
      id(plain),
      id(R"({"op":"fused_norm_rope","seed":"0000000000000001","geometry":{"batch":[{"uncached":5}],"caches":{"mla":{}}}})"));
  // Written down once: an id that changes would orphan every stored case.
  EXPECT_EQ(id(plain), "2efb126ada31eb39");
}

TEST_F(CaseTest, RefusalsNameThePointerTheValueAndTheRule) {
  const auto with = [](const std::string& rest) { return R"({"op":"fused_norm_rope",)" + rest + "}"; };
  EXPECT_THAT(refusal(R"({"op":"fused_norm_ropee"})"),
              AllOf(HasSubstr("/op is \"fused_norm_ropee\""), HasSubstr("did you mean \"fused_norm_rope\"")));
  EXPECT_THAT(refusal(R"({"seed":"00"})"), HasSubstr("has no \"op\""));
  EXPECT_THAT(refusal("[]"), HasSubstr("an object is needed"));
  EXPECT_THAT(refusal(with(R"("seed":"1")")), HasSubstr("16 lower-case hex digits"));
  EXPECT_THAT(refusal(with(R"("seed":"000000000000000G")")), HasSubstr("16 lower-case hex digits"));
  EXPECT_THAT(refusal(with(R"("sede":"0")")), HasSubstr("did you mean \"seed\""));
  EXPECT_THAT(refusal(with(R"("geometry":{"tp":0})")),
              AllOf(HasSubstr("c.json: /geometry/tp is 0"), HasSubstr("from 1 to 1024")));
  EXPECT_THAT(refusal(with(R"("geometry":{"tp":2.5})")), HasSubstr("/geometry/tp is 2.5"));
  EXPECT_THAT(refusal(with(R"("geometry":{"tp":99999999999999999999})")), HasSubstr("/geometry/tp is"));
  EXPECT_THAT(refusal(with(R"("geometry":{"tp":4,"dcp":{"world_size":3}})")), HasSubstr("does not divide /geometry/tp 4"));
  EXPECT_THAT(refusal(with(R"("geometry":{"caches":{"kpool":{}}})")), HasSubstr("/geometry/caches/kpool is not known"));
  EXPECT_THAT(refusal(with(R"("geometry":{"caches":{"mla":{"block_size":64,"kernel_block_size":48}}})")),
              HasSubstr("does not divide block_size 64"));
  EXPECT_THAT(refusal(with(R"("geometry":{"dcp":{"interleave":48},"caches":{"mla":{}}})")),
              HasSubstr("the slots of two tokens would be one"));
  EXPECT_THAT(refusal(with(R"("geometry":{"batch":[{"uncached":4}],"max_batched_tokens":3})")),
              HasSubstr("less than the launch's 4 tokens"));
  EXPECT_THAT(refusal(with(R"("params":{"q_lora":7})")), HasSubstr("/params/q_lora is not known here"));
  EXPECT_THAT(refusal(with(R"("params":{"indexer":1})")), HasSubstr("/params/indexer is 1, but true or false is needed"));
  EXPECT_THAT(refusal(with(R"("params":{"mla_layout":"fp4"})")), HasSubstr("bf16, fp8 or fp8_ds_mla is needed"));
  EXPECT_THAT(refusal(with(R"("params":{"q_eps":-1})")), HasSubstr("a number from 0.0 to 1.0"));
  EXPECT_THAT(refusal(with(R"("params":{"mla_layout":"fp8_ds_mla","kv_lora_rank":256})")),
              HasSubstr("not 256 and 64: its record is 656 bytes"));
  EXPECT_THAT(refusal(with(R"("contract":{"tile_scale":"log2"})")), HasSubstr("fp32_div, fp32_mul or pow2"));
  EXPECT_THAT(refusal(with(R"("layout":{"positions":{"stride":2}})")), HasSubstr("/layout/positions is not known"));
  EXPECT_THAT(refusal(with(R"("values":{"positions":"zero"})")), HasSubstr("/values/positions is not known"));
  EXPECT_THAT(refusal(with(R"("values":{"q_c":"gauss"})")), HasSubstr("/values/q_c is \"gauss\""));
  EXPECT_THAT(refusal(with(R"("geometry":{"batch":[{"uncached":9000}],"caches":{}})")),
              HasSubstr("max_position is 8192, too small for the last position, 8999"));
}

TEST_F(CaseTest, AFieldThatTheOpDoesNotUseIsAnError) {
  EXPECT_THAT(refusal(R"({"op":"compute_slot_mapping","params":{"q_lora_rank":2}})"),
              HasSubstr("/params/q_lora_rank is not known"));
  EXPECT_THAT(refusal(R"({"op":"compute_slot_mapping","geometry":{"caches":{"a":{"slot_mapping":"random"}}}})"),
              HasSubstr("needs dcp or replicated"));
}

TEST_F(CaseTest, ExplicitSlotsAreCheckedOneByOne) {
  const auto with = [](const std::string& slots) {
    return R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":2}],"caches":{"mla":{"block_size":4,"slot_mapping":"explicit","slots":)" +
           slots + "}}}}";
  };
  EXPECT_EQ(refusal(with("[[5,-1]]")), "accepted");
  EXPECT_THAT(refusal(with("[[5,5]]")), HasSubstr("gives the slot 5 to two tokens"));
  EXPECT_THAT(refusal(with("[[5]]")), HasSubstr("has 1 slots, but the launch has 2"));
  EXPECT_THAT(refusal(with("[[5,-1],[1,2]]")), HasSubstr("has 2 lists, but there are 1 ranks"));
  EXPECT_THAT(refusal(with("[[5,16]]")), HasSubstr("has the slot 16, but the cache has 16"));
}

TEST_F(CaseTest, APaddingTokenHasNoSlot) {
  EXPECT_THAT(
      refusal(
          R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":1}],"padding":{"tokens":1},"caches":{"mla":{"block_size":4,"slot_mapping":"explicit","slots":[[1,2]]}}}})"),
      HasSubstr("the token is padding"));
}

TEST_F(CaseTest, OneCaseHasOneIdHoweverItsNumbersAreSpelt) {
  const auto with = [](const std::string& rest) {
    return R"({"op":"fused_norm_rope","seed":"0000000000000001",)" + rest + "}";
  };
  EXPECT_EQ(id(with(R"("values":{"q_c":"normal:1.0"})")), id(with(R"("values":{"q_c":"normal:1"})")));
  EXPECT_EQ(id(with(R"("params":{"q_eps":-0.0})")), id(with(R"("params":{"q_eps":0})")));
}

TEST_F(CaseTest, NarrowTablesNeedAContract) {
  const std::string narrow = R"("geometry":{"batch":[{"uncached":9}],"caches":{"mla":{"block_size":4,"table_columns":2}}})";
  EXPECT_EQ(refusal(R"({"op":"compute_slot_mapping",)" + narrow + "}"), "accepted");
  EXPECT_THAT(refusal(R"({"op":"compute_slot_mapping","contract":{"column_overflow":"unchecked"},)" + narrow + "}"),
              HasSubstr("needs 3"));
}

TEST_F(CaseTest, TheEnvelopeIsStrictToo) {
  const auto refusal_of = [&](const std::string& text) -> std::string {
    try {
      parse_case_file(ops_, text, "f.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string inner = R"({"op":"fused_norm_rope"})";
  EXPECT_EQ(refusal_of(R"({"schema":"dcpcheck.case/1","case":)" + inner + "}"), "accepted");
  EXPECT_THAT(refusal_of(R"({"schema":"dcpcheck.case/2","case":)" + inner + "}"), HasSubstr("/schema is \"dcpcheck.case/2\""));
  EXPECT_THAT(refusal_of(R"({"case":)" + inner + "}"), HasSubstr("has no \"schema\""));
  EXPECT_THAT(refusal_of(R"({"schema":"dcpcheck.case/1"})"), HasSubstr("has no \"case\""));
  EXPECT_THAT(refusal_of(R"({"schema":"dcpcheck.case/1","expect":{"k_gated":{"status":"broken"}},"case":)" + inner + "}"),
              HasSubstr("/expect/k_gated/status"));
  EXPECT_THAT(refusal_of(R"({"schema":"dcpcheck.case/1","case":{"op":"fused_norm_rope","seed":7}})"),
              HasSubstr("/case/seed is 7"));
  EXPECT_THROW(load_case_file(ops_, "/nonexistent/case.json"), InputError);
  EXPECT_THROW(load_case_file(ops_, "/"), InputError);
}

}  // namespace
}  // namespace dcpcheck
