// `run --from CASE --set PATH=VALUE`: what becomes of a case, what is refused, and what the replay line says.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Overrides : public Program {
 protected:
  std::string small() const {
    return file("small.json", R"({"schema": "dcpcheck.case/1", "expect": {"fixed": {"status": "fail"}}, "case": {
"op": "fused_norm_rope", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 8}], "tp": 4,
"caches": {"mla": {"block_size": 16}, "indexer": {"block_size": 16, "slot_mapping": "same"}}},
"params": {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "index_head_dim": 8, "index_rope_dim": 4, "index_topk": 4,
"max_position": 64}}})");
  }
  Ended run_with(std::vector<std::string> sets, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"run", "--backend", "host", "--from", small()};
    for (std::string& set : sets) words.insert(words.end(), {"--set", std::move(set)});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  json::Value result_with(const std::vector<std::string>& sets) const {
    const Ended ended = run_with(sets, {"--json", "-"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return json::parse(ended.out, "report", {std::size_t{1} << 26, 32}).find("results")->get<json::Array>()->front();
  }
  // The id of the case that a file holds.
  std::string id_of(const std::string& text) const {
    const Ended ended = run({"run", "--list", file("other.json", text)});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out.substr(0, 16);
  }
};

TEST_F(Overrides, AFieldIsReplacedAndTheRestStays) {
  const json::Value result = result_with({"dcp.world_size=4"});
  EXPECT_EQ(*result.find("world_size")->get<std::int64_t>(), 4);
  std::string text = read_file(small());
  text.replace(text.find(R"("tp": 4,)"), 8, R"("tp": 4, "dcp": {"world_size": 4},)");
  EXPECT_EQ(*result.find("id")->get<std::string>(), id_of(text));
  EXPECT_NE(id_of(text), id_of(read_file(small())));
}

TEST_F(Overrides, EveryKindOfFieldCanBeSet) {
  const std::string text = R"({"schema": "dcpcheck.case/1", "case": {"op": "fused_norm_rope", "seed": "00000000000000ff",
"geometry": {"batch": [{"uncached": 8}, {"uncached": 3}], "padding": {"tokens": 2, "slots": "-block"}, "tp": 4,
"caches": {"mla": {"slot_mapping": "none"}}}, "params": {"q_lora_rank": 16, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
"index_head_dim": 8, "index_rope_dim": 4, "index_topk": 4, "max_position": 64, "k_pe_out": false, "kv_eps": 0.5, "mla_layout": "fp8"},
"contract": {"nan": "clamp", "index_k_out": "without_slots"}, "layout": {"q_c": {"stride": 24}}, "values": {"kv_c": "normal:2"}}})";
  const json::Value result =
      result_with({"seed=00000000000000ff", "batch.1.uncached=3", "padding.tokens=2", "geometry.padding.slots=-block",
                   "caches.mla={\"slot_mapping\": \"none\"}", "caches.indexer=null", "k_pe_out=false", "params.kv_eps=0.5",
                   "mla_layout=fp8", "nan=clamp", "contract.index_k_out=\"without_slots\"", "layout.q_c.stride=24",
                   "values.kv_c=normal:2.0"});
  EXPECT_EQ(*result.find("id")->get<std::string>(), id_of(text));
}

TEST_F(Overrides, TheReplayLineRepeatsIt) {
  const json::Value result = result_with({"padding.slots=-block", "padding.tokens=1"});
  const std::string replay = *result.find("replay")->get<std::string>();
  EXPECT_THAT(replay, HasSubstr(" --from " + path("small.json") + " --set padding.slots=-block --set padding.tokens=1"));
  std::vector<std::string> words;
  std::istringstream split(replay);
  for (std::string word; split >> word;) words.push_back(word);
  words.erase(words.begin());
  const Ended again = run([&] {
    words.insert(words.end(), {"--json", "-"});
    return words;
  }());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(*result.find("id")->get<std::string>()));
}

TEST_F(Overrides, WhatTheFileExpectsIsOfTheCaseAsItIsStored) {
  EXPECT_EQ(run({"run", "--backend", "host", small()}).code, 1);
  EXPECT_EQ(run_with({}).code, 1);
  EXPECT_EQ(run_with({"tp=2"}).code, 0);
}

TEST_F(Overrides, WhatIsWrongIsOneSentenceAndExitTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all{
      {{"dcp.world_size"}, "--set dcp.world_size: PATH=VALUE is needed"},
      {{"=4"}, "--set =4: its path has an empty name"},
      {{"dcp..world_size=4"}, "its path has an empty name"},
      {{"dc.world_size=4"}, "a case of fused_norm_rope has no field 'dc': did you mean dcp?"},
      {{"dcp.world_sise=4"}, "/geometry/dcp/world_sise is not known here; did you mean \"world_size\"?"},
      {{"dcp.world_size=3"}, "/geometry/dcp/world_size is 3, which does not divide /geometry/tp 4"},
      {{"dcp.world_size=four"}, "/geometry/dcp/world_size is \"four\", but an integer from 1 to 1024 is needed"},
      {{"dcp.world_size=4.5"}, "an integer from 1 to 1024 is needed"},
      {{"dcp=[1"}, "--set dcp=[1: its value is no JSON"},
      {{"op=fused_q"}, "a case of another op is another case"},
      {{"index_k_out=true"}, "index_k_out may be params.index_k_out or contract.index_k_out"},
      {{"mla_layout=fp9"}, "/params/mla_layout"},
      {{"mla_layout=8"}, "bf16, fp8 or fp8_ds_mla is needed"},
      {{"nan=0"}, "/contract/nan"},
      {{"seed=1"}, "16 lower-case hex digits are needed"},
      {{"batch.3.uncached=1"}, "geometry.batch has 1 element, so an index from 0 to 1 is needed, not '3'"},
      {{"batch.x=1"}, "not 'x'"},
      {{"batch.1=null"}, "geometry.batch has no element 1 to take out"},
      {{"batch.0.uncached=65"}, "max_position is 64, too small for the last position, 64"},
      {{"tp.size=2"}, "geometry.tp is 4, which has no fields"},
      {{"caches.mla.slot_mapping=explicit"}, "/geometry/caches/mla/slots goes with slot_mapping \"explicit\""},
      {{"values.q_c=stored:12"}, "the SHA-256 of what is stored is needed"}};
  for (const auto& [sets, says] : all) {
    const Ended ended = run_with(sets, {"--json", path("report.json")});
    EXPECT_EQ(ended.code, 2) << sets.front() << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(says)) << sets.front();
    EXPECT_THAT(ended.err, HasSubstr("--set " + sets.front()));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path("report.json")));
  }
}

TEST_F(Overrides, FromAndSetGoTogetherAndTakeThePlaceOfCase) {
  EXPECT_THAT(run({"run", "--set", "tp=2", small()}).err, HasSubstr("--set needs --from CASE"));
  EXPECT_THAT(run_with({"tp=2"}, {small()}).err, HasSubstr("--from takes the place of CASE"));
  EXPECT_EQ(run({"run"}).code, 2);
}

}  // namespace
}  // namespace dcpcheck
