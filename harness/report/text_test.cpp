#include "harness/report/text.hpp"

#include <gtest/gtest.h>

#include "harness/core/verdict.hpp"

namespace dcpcheck::text {
namespace {

TEST(Text, Width) {
  EXPECT_EQ(width(""), 0);
  EXPECT_EQ(width("abc"), 3);
  EXPECT_EQ(width("a…≠é"), 4);
  EXPECT_EQ(width("語"), 2);
  EXPECT_EQ(width("\xE8\xAA"), 1);  // cut short: no more than its bytes
}

TEST(Text, FitIsExact) {
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(fit("abcd", 4), "abcd");
  EXPECT_EQ(fit("abcde", 4), "abc…");
  for (const int columns : {1, 2, 3, 7}) EXPECT_EQ(width(fit("語語語語", columns)), columns);
}

TEST(Text, Wrap) {
  EXPECT_EQ(wrap("one two three", 80), "one two three\n");
  EXPECT_EQ(wrap("one two three", 7, 2), "one two\n  three\n");
  EXPECT_EQ(wrap("  kept indent", 9, 2), "  kept\n  indent\n");
  EXPECT_EQ(wrap("abcdefghij", 4, 1), "abcd\n efg\n hij\n");
  EXPECT_EQ(wrap("", 4), "\n");
}

TEST(Text, Lists) {
  EXPECT_EQ(list({}), "");
  EXPECT_EQ(list({"a"}), "a");
  EXPECT_EQ(list({"a", "b"}), "a and b");
  EXPECT_EQ(list({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(ranges({{0, 2}, {4, 4}, {6, 7}}, 2), "0-2, 4, …");
  EXPECT_EQ(ranges({{0, 2}, {4, 4}}, 2), "0-2, 4");
  EXPECT_EQ(to_ranges({0, 1, 2, 5, 7, 8}), (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {5, 5}, {7, 8}}));
  EXPECT_EQ(count(1, "row"), "1 row");
  EXPECT_EQ(count(0, "row"), "0 rows");
}

TEST(Text, NearestKnownWord) {
  const std::vector<std::string> verbs{"repro", "run", "ops", "kernels", "doctor"};
  EXPECT_EQ(nearest("rpro", verbs), "repro");
  EXPECT_EQ(nearest("kernel", verbs), "kernels");
  EXPECT_EQ(nearest("rum", verbs), "run");
  EXPECT_EQ(nearest("frobnicate", verbs), "");
}

TEST(Text, ShellQuote) {
  EXPECT_EQ(shell_quote("corpora/a+b-1.json"), "corpora/a+b-1.json");
  EXPECT_EQ(shell_quote("a b"), "'a b'");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

TEST(Text, Printable) {
  EXPECT_EQ(printable("a\x1b[2J\n"), "a\\x1B[2J\\x0A");
  EXPECT_EQ(printable("é…"), "é…");
}

}  // namespace
}  // namespace dcpcheck::text
