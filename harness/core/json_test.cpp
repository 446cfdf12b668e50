#include "harness/core/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/core/error.hpp"

namespace dcpcheck::json {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text, Limits limits = {}) {
  try {
    parse(text, "file.json", limits);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Json, KeepsWhatItReads) {
  const std::string text = R"({"b":[1,-2,3.5,"x\n",null,true],"a":{}})";
  EXPECT_EQ(dump(parse(text, "")), text);
  EXPECT_EQ(canonical(parse(text, "")), R"({"a":{},"b":[1,-2,3.5,"x\n",null,true]})");
}

TEST(Json, NamesTheFileInEachRefusal) {
  EXPECT_THAT(refusal("{"), HasSubstr("file.json: not valid JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("file.json: not valid JSON"));
  EXPECT_THAT(refusal("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(std::string_view("{}\0{{", 5)), HasSubstr("it holds a NUL"));
  EXPECT_THAT(refusal(R"({"a":1,"b":2,"a":3})"), HasSubstr("the key \"a\" stands twice"));
  EXPECT_THAT(refusal("\"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal("1e999"), HasSubstr("not valid JSON"));
}

TEST(Json, RefusesDepthAndSizeBeforeBuilding) {
  EXPECT_THAT(refusal(std::string(33, '[') + std::string(33, ']')), HasSubstr("deeper than 32"));
  EXPECT_EQ(refusal(std::string(32, '[') + std::string(32, ']')), "accepted");
  EXPECT_THAT(refusal(std::string(500000, '[')), HasSubstr("deeper than 32"));
  EXPECT_THAT(refusal("\"" + std::string(1 << 20, 'x') + "\""), HasSubstr("larger than 1048576"));
}

TEST(Json, TheSameKeyMayStandInTwoObjects) { EXPECT_EQ(refusal(R"([{"a":1},{"a":2},{"b":{"a":1},"a":1}])"), "accepted"); }

TEST(Json, WritesWhatJsonHasNoNumberFor) {
  EXPECT_EQ(dump(Value(Array{Value(INFINITY), Value(-INFINITY), Value(std::nan(""))})), R"(["inf","-inf","nan"])");
}

TEST(Json, IndentsObjectsAndKeepsPlainArraysOnALine) {
  EXPECT_EQ(dump(parse(R"({"a":[1,2],"b":[{"c":1}]})", ""), 2),
            "{\n  \"a\": [1, 2],\n  \"b\": [\n    {\n      \"c\": 1\n    }\n  ]\n}");
}

TEST(Json, ReplacesBytesThatAreNoText) { EXPECT_EQ(dump(Value("a\xff")), "\"a\xEF\xBF\xBD\""); }

}  // namespace
}  // namespace dcpcheck::json
