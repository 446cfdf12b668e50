// What a kernel declares: presets put in, names checked, and which cases it is for.
#include "harness/exec/declaration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;

const Op& norm_rope() {
  static const auto ops = builtin_ops();
  return ops.at("fused_norm_rope").op;
}

// fused_norm_rope's op.json with `from` replaced.
json::Value edited(const std::string& from, const std::string& to) {
  std::string text = json::dump(norm_rope().source);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::invalid_argument("no " + from);
  return json::parse(text.replace(at, from.size(), to), "op");
}

std::string refusal(const std::string& from, const std::string& to) {
  try {
    check_expressions(op_from_json(edited(from, to), "op"), "op");
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

Plan plan_of(const std::string& indexer, const std::string& layout = "") {
  const Case value = case_from_json(
      {{"fused_norm_rope", norm_rope()}},
      json::parse(R"({"op": "fused_norm_rope", "geometry": {"batch": [{"uncached": 2}], "caches": {"mla": {}, "indexer": {)" +
                      indexer + R"(}}}, "layout": {)" + layout + "}}",
                  "case"),
      "case");
  return make_plan(norm_rope(), value, std::int64_t{1} << 30);
}

TEST(Presets, SayWhatAPublicGenerationIs) {
  Declaration declaration;
  declaration.preset = "vllm_in_place";
  apply_preset(declaration, norm_rope(), "k");
  check_declaration(declaration, norm_rope(), "k");
  EXPECT_EQ(declaration.options.at("k_outputs"), std::vector<std::string>{"in_place"});
  EXPECT_EQ(why_not(declaration, plan_of("")),
            "it follows the contract option k_outputs as in_place, and the case has separate");
  declaration.options["k_outputs"] = {"separate"};
  EXPECT_EQ(why_not(declaration, plan_of("")), "it requires one slot map for both caches");
  EXPECT_EQ(why_not(declaration, plan_of(R"("slot_mapping": "same")")), "");
  EXPECT_EQ(why_not(declaration, plan_of(R"("slot_mapping": "same", "block_stride_padding": 64)")),
            "it requires an indexer cache whose blocks are packed");
}

TEST(Presets, OneThatThereIsNotIsNamedWithThoseThereAre) {
  Declaration declaration;
  declaration.preset = "vllm";
  EXPECT_THAT([&] { apply_preset(declaration, norm_rope(), "k"); },
              testing::ThrowsMessage<InputError>("k: it follows the preset 'vllm', which fused_norm_rope does not have: it has "
                                                 "vllm_in_place, vllm_packed, vllm_54908 or vllm_49435"));
}

TEST(Presets, AreReadStrictly) {
  const std::string contract = R"("contract":{"k_outputs":["separate"],"tile_scale":["pow2"]})";
  EXPECT_EQ(refusal(contract, contract), "read");
  EXPECT_THAT(refusal(contract, R"("contract":{"k_output":["separate"]})"),
              HasSubstr("/presets/vllm_49435/contract/k_output is an array, but there is no such option in /contract"));
  EXPECT_THAT(refusal(contract, R"("contract":{"tile_scale":["pow3"]})"),
              HasSubstr("/presets/vllm_49435/contract/tile_scale/0 is \"pow3\", but fp32_div, fp32_mul or pow2 is needed"));
  EXPECT_THAT(refusal(contract, R"("contract":{"tile_scale":[]})"), HasSubstr("at least one of its values"));
  EXPECT_THAT(refusal(contract, R"("contracts":{})"), HasSubstr("/presets/vllm_49435/contracts is not known here"));
  EXPECT_THAT(
      refusal("!indexer.present || indexer.block_stride_padding == 0", "indexer.stride == 0"),
      HasSubstr("op: of its preset vllm_in_place, the requirement \"indexer.stride == 0\" names 'indexer.stride', which "
                "fused_norm_rope does not have"));
  EXPECT_THAT(refusal(R"("norm_round":{)", R"("preset":{)"), HasSubstr("an option cannot be called \"preset\""));
}

TEST(Expressions, OfEveryOpNameWhatItsCasesHave) {
  for (const auto& [name, builtin] : builtin_ops()) EXPECT_NO_THROW(check_expressions(builtin.op, name));
  const std::string shape = R"("shape":["T","q_lora_rank"])";
  EXPECT_EQ(refusal(shape, R"("shape":["T","q_lora_rang"])"),
            "op: of q_c, the expression \"q_lora_rang\" names 'q_lora_rang', which fused_norm_rope does not have: did you mean "
            "q_lora_rank?");
  EXPECT_EQ(refusal(shape, R"j("shape":["T","4 / (2 - 2)"])j"), "op: of q_c, expression \"4 / (2 - 2)\": divides by zero");
  EXPECT_EQ(refusal(shape, R"("shape":["T","q_eps"])"),
            "op: of q_c, the expression \"q_eps\" names 'q_eps', which is no whole number or choice");
  EXPECT_THAT(refusal(R"("count":"kv_lora_rank / 128")", R"("count":"kv_rank / 128")"),
              HasSubstr("of mla_cache.tile_scales, "));
}

TEST(Requirements, MayAskForDenseRows) {
  Declaration declaration;
  declaration.requirements.push_back({Expression("q_c.dense"), "rows of q_c one after another"});
  check_declaration(declaration, norm_rope(), "k");
  EXPECT_EQ(why_not(declaration, plan_of("")), "");
  EXPECT_EQ(why_not(declaration, plan_of("", R"("q_c": {"stride": 4096})")), "it requires rows of q_c one after another");
  EXPECT_EQ(why_not(declaration, plan_of("", R"("kv_c": {"stride": 4096})")), "");
  declaration.requirements.front().that = Expression("positions.dense");
  EXPECT_THROW(check_declaration(declaration, norm_rope(), "k"), InputError) << "a tensor without strides";
}

}  // namespace
}  // namespace dcpcheck
