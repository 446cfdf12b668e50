#include "harness/core/expression.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;

const Environment kEnvironment{{"T", std::int64_t{12}}, {"mla.present", std::int64_t{1}}, {"layout", std::string("fp8")}};

std::int64_t value(const char* text) { return Expression(text).integer(kEnvironment); }

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(Expression(text).evaluate(kEnvironment));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Expression, FollowsTheUsualPrecedence) {
  EXPECT_EQ(value("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("7 % 4 * 2"), 6);
  EXPECT_EQ(value("-3 + T"), 9);
  EXPECT_EQ(value("1 < 2 && 2 < 1 || 1"), 1);
  EXPECT_EQ(value("!0 && !(T == 11)"), 1);
  EXPECT_EQ(value("0 ? 1 : T > 3 ? 2 : 3"), 2);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
}

TEST(Expression, NamesAllThatItMayAskFor) {
  EXPECT_EQ(Expression("0 && mla.present ? min(T, width) : layout == 'bf16'").names(),
            (std::set<std::string>{"T", "layout", "mla.present", "width"}));
  EXPECT_TRUE(Expression("1 + 2").names().empty());
  EXPECT_TRUE(Expression().names().empty());
}

TEST(Expression, KnowsNamesStringsAndFunctions) {
  EXPECT_EQ(value("layout == 'fp8'"), 1);
  EXPECT_EQ(value("layout != 'fp8'"), 0);
  EXPECT_EQ(value("mla.present && layout != 'bf16'"), 1);
  EXPECT_EQ(value("min(T, 3) + max(T, 3)"), 15);
  EXPECT_EQ(value("ceil_div(T, 5)"), 3);
  EXPECT_EQ(std::get<std::string>(Expression("T > 3 ? 'bf16' : 'fp32'").evaluate(kEnvironment)), "bf16");
}

TEST(Expression, ShortCircuits) { EXPECT_EQ(value("T != 0 || 1 / 0"), 1); }

TEST(Expression, RefusesWithAReason) {
  EXPECT_THAT(refusal("1 +"), HasSubstr("column 4"));
  EXPECT_THAT(refusal("(1"), HasSubstr("expected ')'"));
  EXPECT_THAT(refusal("1 2"), HasSubstr("expected an operator or the end"));
  EXPECT_THAT(refusal("'open"), HasSubstr("closing '"));
  EXPECT_THAT(refusal("tokens"), HasSubstr("nothing is called 'tokens'"));
  EXPECT_THAT(refusal("layout + 1"), HasSubstr("where a number is needed"));
  EXPECT_THAT(refusal("layout == 1"), HasSubstr("a number is compared with a string"));
  EXPECT_THAT(refusal("1 / (T - 12)"), HasSubstr("divides by zero"));
  EXPECT_THAT(refusal("4611686018427387904 * 2"), HasSubstr("overflows"));
  EXPECT_THAT(refusal("9223372036854775808"), HasSubstr("below 2^63"));
  EXPECT_THAT(refusal(std::string(100, '(') + "1" + std::string(100, ')')), HasSubstr("nested"));
  EXPECT_THAT(refusal(std::string(5000, '1')), HasSubstr("longer than 4096"));
}

}  // namespace
}  // namespace dcpcheck
