#include "harness/report/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string sha(char digit) { return std::string(64, digit); }

GoldenEntry entry(const std::string& name, char id) {
  GoldenEntry one;
  one.id = std::string(16, id);
  one.name = name;
  one.op = "merge_ranks";
  one.kernel = "builtin:merge_ranks";
  one.contract = {{"empty", "zero"}};
  one.inputs = sha('1');
  one.outputs = {{"rank0/lse", {sha('2'), sha('3')}}, {"rank0/out", {sha('4'), sha('5')}}};
  return one;
}

GoldenEntry foreign() {
  GoldenEntry one = entry("of a library", '7');
  one.kernel = "lib:./mine.so";
  one.environment = GoldenEnvironment{"mine", "a GPU", "550.54", "12.4"};
  return one;
}

GoldenEntry pipeline() {
  GoldenEntry one = entry("tokens", '8');
  one.op = "generate";
  one.outputs = {{"rank0/prefill.merge_ranks.out", {sha('a'), ""}}, {"tokens", {sha('b'), sha('b')}}};
  one.tokens = {{{1, 2, -1}, {}}};
  return one;
}

TEST(Golden, IsReadBackAndSortedAndTheSameBytes) {
  Golden golden{"../edge", {pipeline(), entry("b", '1'), foreign(), entry("a", '3'), entry("a", '2')}};
  const std::string text = golden_text(golden);
  std::reverse(golden.entries.begin(), golden.entries.end());
  EXPECT_EQ(golden_text(golden), text);
  const Golden back = parse_golden(text, "a golden");
  EXPECT_EQ(golden_text(back), text);
  std::vector<std::string> names;
  for (const GoldenEntry& one : back.entries) names.push_back(one.name + " " + one.id.substr(0, 1));
  EXPECT_THAT(names, ElementsAre("a 2", "a 3", "b 1", "of a library 7", "tokens 8"));
  EXPECT_EQ(back.entries[3], foreign());
  EXPECT_EQ(back.entries[4], pipeline());
  EXPECT_EQ(parse_golden(golden_text({"repro:", {}}), "a golden"), (Golden{"repro:", {}}));
}

TEST(Golden, WhatIsNoneIsNamed) {
  const std::string good = golden_text({"../edge", {entry("a", '1'), foreign(), pipeline()}});
  const auto with = [&](const std::string& what, const std::string& other) {
    std::string text = good;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), other);
  };
  const std::vector<std::pair<std::string, std::string>> bad{{with("golden/1", "golden/2"), "/schema"},
                                                             {with(sha('1'), "1"), "/entries/0/inputs"},
                                                             {with(sha('2'), sha('G')), "/entries/0/outputs/rank0~1lse/raw"},
                                                             {with("\"raw\"", "\"rw\""), "did you mean \"raw\""},
                                                             {with("\"kernel\":\"mine\",", ""), "kernel"},
                                                             {with("-1", "-2"), "/entries/2/tokens/0/2"},
                                                             {with(std::string(16, '7'), std::string(16, '1')), "one of each"},
                                                             {good.substr(0, good.size() / 2), "a golden"}};
  for (const auto& [text, said] : bad) {
    try {
      parse_golden(text, "a golden");
      ADD_FAILURE() << said;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(said));
      EXPECT_THAT(error.what(), testing::StartsWith("a golden: "));
    }
  }
}

TEST(GoldenDifference, TellsInputsOutputsAndBitsApart) {
  const GoldenEntry was = entry("a", '1');
  EXPECT_EQ(difference_of(was, was).change, GoldenChange::none);
  GoldenEntry inputs = was;
  inputs.inputs = sha('9');
  inputs.outputs.clear();
  EXPECT_EQ(difference_of(was, inputs).change, GoldenChange::inputs);

  GoldenEntry bits = was;
  bits.outputs.at("rank0/out").raw = sha('9');
  EXPECT_EQ(difference_of(was, bits).change, GoldenChange::outputs) << "ours have the same bits everywhere";
  EXPECT_THAT(difference_of(was, bits).outputs, ElementsAre("rank0/out"));
  bits.kernel = "builtin:merge_ranks@other";
  EXPECT_EQ(difference_of(was, bits).change, GoldenChange::bits);
  bits.outputs.at("rank0/lse") = {sha('9'), sha('9')};
  EXPECT_EQ(difference_of(was, bits).change, GoldenChange::outputs);
  EXPECT_THAT(difference_of(was, bits).outputs, ElementsAre("rank0/lse"));

  GoldenEntry fewer = was;
  fewer.outputs.erase("rank0/lse");
  EXPECT_EQ(difference_of(was, fewer).change, GoldenChange::outputs);
  EXPECT_EQ(difference_of(fewer, was).change, GoldenChange::outputs);
}

TEST(GoldenDifference, OfAKernelFromElsewhereDependsOnWhere) {
  const GoldenEntry was = foreign();
  GoldenEntry is = was;
  is.outputs.at("rank0/out").raw = sha('9');
  is.kernel = "lib:/elsewhere/mine.so";
  EXPECT_EQ(difference_of(was, is).change, GoldenChange::outputs) << "where a file lies is no environment";
  for (int field = 0; field < 4; ++field) {
    GoldenEntry moved = is;
    if (field == 0) moved.environment->kernel = "theirs";
    if (field == 1) moved.environment->architecture = "another GPU";
    if (field == 2) moved.environment->driver.reset();
    if (field == 3) moved.environment->cuda = "13.0";
    EXPECT_EQ(difference_of(was, moved).change, GoldenChange::bits) << field;
    moved.outputs.at("rank0/out").portable = sha('9');
    EXPECT_EQ(difference_of(was, moved).change, GoldenChange::outputs) << field;
  }
}

// Of a pipeline only the tokens can be held to anything on another kernel, and only where each was sure.
TEST(GoldenDifference, OfAPipelineIsOfItsTokens) {
  const GoldenEntry was = pipeline();
  GoldenEntry is = was;
  is.outputs.at("rank0/prefill.merge_ranks.out").raw = sha('9');
  EXPECT_EQ(difference_of(was, is).change, GoldenChange::outputs);
  is.kernel = "lib:mine.so";
  is.environment = GoldenEnvironment{"mine", "a CPU", {}, {}};
  EXPECT_EQ(difference_of(was, is).change, GoldenChange::bits);
  is.outputs.at("tokens") = {sha('9'), ""};
  EXPECT_THAT(difference_of(was, is).outputs, ElementsAre("rank0/prefill.merge_ranks.out", "tokens"));
  GoldenEntry unsure = was;
  unsure.outputs.at("tokens").portable.clear();
  EXPECT_EQ(difference_of(unsure, is).change, GoldenChange::outputs);
}

}  // namespace
}  // namespace dcpcheck
