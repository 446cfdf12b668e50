// The buckets of single numbers, recipes and lengths: what buckets.cpp sorts a case's fields into and generators.cpp
// draws them from, said once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/op.hpp"

namespace dcpcheck {

// Buckets of a number that are ranges: the first that holds it is its own.
struct Range {
  std::string name;
  std::int64_t least = 0, most = 0;
};
using Ranges = std::vector<Range>;

int bucket_in(const Ranges& ranges, std::int64_t value);  // -1: in none
std::vector<std::string> names_of(const Ranges& ranges);

// Buckets that are lists of values, with how often a generator that is free to choose draws from each.
struct ValueBucket {
  std::string name;
  int weight = 1;
  std::vector<ParamValue> values;  // in it; a param may have others that are, too
};

// The buckets of a param: of an integer its ends, each preferred value, powers of two, their neighbours, and the others;
// of a number its ends, each preferred value, and the others; of a flag or a choice its values.
std::vector<ValueBucket> buckets_of(const Param& param);
int bucket_of(const Param& param, const std::vector<ValueBucket>& buckets, const ParamValue& value);

// Recipes of values that are alike in what they bring about: "normal", "zero", "extreme", …
struct RecipeFamily {
  std::string name;
  int weight = 1;
  std::vector<std::string> recipes;
};

// The families that may fill `input`, the first being its own default alone. A scale that codes are divided by takes
// positive numbers only: no contract says what is right for others. Integers take constants, and log-sum-exps theirs.
std::vector<RecipeFamily> recipe_families(const Op& op, const TensorSpec& input);
// What the rows of padding tokens may hold; the first is the default.
std::vector<RecipeFamily> padding_families();
// Which family `recipe` is of; -1: none of them.
int family_of(const std::vector<RecipeFamily>& families, std::string_view recipe);

// Lengths of requests, beside a cache group of block size B whose blocks span v = B * W positions (B, if it is not
// sharded). block 0: there is no group.
struct Lengths {
  std::int64_t block = 0, span = 0;
};
// Where no case has a group (`grouped` false) only the first few of the names.
const std::vector<std::string>& length_buckets(bool grouped);
int bucket_of(const Lengths& lengths, std::int64_t tokens);
// Lengths that are in `bucket`, few where they are boundaries; none where there are no such.
std::vector<std::int64_t> lengths_in(const Lengths& lengths, int bucket);

}  // namespace dcpcheck
