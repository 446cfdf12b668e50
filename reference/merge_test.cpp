// The references of merge_ranks and merge_chunks against fp32 arithmetic: every right way to merge is admitted, every
// wrong one is not.
#include "reference/merge.hpp"
#include "harness/core/slow_test.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "reference/test_rows.hpp"

namespace dcpcheck::reference::testing {
namespace {

using Floats = std::vector<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// One head's parts, as fp32 arithmetic sees them.
struct Parts {
  std::vector<Floats> out;
  Floats lse;
  bool base_2 = false;
};

struct Merged {
  Floats out;
  float lse = -kInf;
};

// The right ways to merge that are tried here.
enum class Way : std::uint8_t {
  weights,
  weights_fma,
  divided_last,
  reciprocal,
  backwards,
  tree,
  by_merged_lse,
  online,
  exp2_of_scaled
};
constexpr Way kWays[] = {Way::weights, Way::weights_fma,   Way::divided_last, Way::reciprocal,    Way::backwards,
                         Way::tree,    Way::by_merged_lse, Way::online,       Way::exp2_of_scaled};

float sum_as(Floats terms, Way way) {
  float total = 0;
  if (way == Way::tree) {
    while (terms.size() > 1) {
      const std::size_t half = (terms.size() + 1) / 2;
      for (std::size_t i = 0; i + half < terms.size(); ++i) terms[i] += terms[i + half];
      terms.resize(half);
    }
    return terms.empty() ? 0 : terms[0];
  }
  if (way == Way::backwards) std::reverse(terms.begin(), terms.end());
  for (const float term : terms) total += term;
  return total;
}

class Merger {
 public:
  Merger(Way way, bool base_2) : way_(way), base_2_(base_2) {}

  Merged run(const Parts& all) const {
    Parts parts;
    for (std::size_t r = 0; r < all.lse.size(); ++r) {
      if (!std::isfinite(all.lse[r])) continue;
      parts.out.push_back(all.out[r]);
      parts.lse.push_back(all.lse[r]);
    }
    Merged merged;
    merged.out.assign(all.out.front().size(), 0);
    if (parts.lse.empty()) return merged;
    if (way_ == Way::online) return online(parts, merged);
    float largest = -kInf;
    for (const float lse : parts.lse) largest = std::max(largest, lse);
    Floats powers;
    for (const float lse : parts.lse) powers.push_back(power(lse - largest));
    const float sum = sum_as(powers, way_);
    merged.lse = largest + logarithm(sum);
    for (std::size_t i = 0; i < merged.out.size(); ++i) {
      Floats terms;
      float fused = 0;
      for (std::size_t r = 0; r < powers.size(); ++r) {
        const float o = parts.out[r][i];
        const float weight = way_ == Way::divided_last    ? powers[r]
                             : way_ == Way::reciprocal    ? powers[r] * (1 / sum)
                             : way_ == Way::by_merged_lse ? power(parts.lse[r] - merged.lse)
                                                          : powers[r] / sum;
        terms.push_back(weight * o);
        fused = std::fma(weight, o, fused);
      }
      const float total = way_ == Way::weights_fma ? fused : sum_as(terms, way_);
      merged.out[i] = way_ == Way::divided_last ? total / sum : total;
    }
    return merged;
  }

 private:
  float power(float x) const {
    if (way_ == Way::exp2_of_scaled && !base_2_) return std::exp2(x * 1.44269504F);
    if (way_ == Way::exp2_of_scaled) return std::exp(x * 0.693147182F);
    return base_2_ ? std::exp2(x) : std::exp(x);
  }
  float logarithm(float x) const {
    if (way_ == Way::exp2_of_scaled && !base_2_) return std::log2(x) * 0.693147182F;
    if (way_ == Way::exp2_of_scaled) return std::log(x) * 1.44269504F;
    return base_2_ ? std::log2(x) : std::log(x);
  }
  Merged online(const Parts& parts, Merged merged) const {
    float largest = parts.lse[0], sum = 1;
    merged.out = parts.out[0];
    for (std::size_t r = 1; r < parts.lse.size(); ++r) {
      const float next = std::max(largest, parts.lse[r]), before = power(largest - next), weight = power(parts.lse[r] - next);
      for (std::size_t i = 0; i < merged.out.size(); ++i) merged.out[i] = merged.out[i] * before + parts.out[r][i] * weight;
      sum = sum * before + weight;
      largest = next;
    }
    for (float& out : merged.out) out /= sum;
    merged.lse = largest + logarithm(sum);
    return merged;
  }

  Way way_;
  bool base_2_;
};

std::string ranks_text(int tokens, int world, const std::string& contract = "", const std::string& values = "") {
  return R"({"op": "merge_ranks", "seed": "0000000000000003", "geometry": {"batch": [{"uncached": )" + std::to_string(tokens) +
         R"(}], "tp": )" + std::to_string(world) + R"(, "dcp": {"world_size": )" + std::to_string(world) +
         R"(}}, "params": {"heads": 3, "v_head_dim": 7}, "contract": {)" + contract + R"(}, "values": {)" + values + "}}";
}

// The parts of a token's head.
Parts parts_of(const Worked& worked, std::int64_t token, std::int64_t head) {
  Parts parts;
  parts.base_2 = worked.plan.value.option("lse_base") == "2";
  const Reader outs(worked.plan, worked.inputs, "partial_out", 0), lses(worked.plan, worked.inputs, "partial_lse", 0);
  std::vector<double> row;
  for (std::int64_t r = 0; r < outs.rows(); ++r) {
    outs.read_row(r, row);
    const auto first = row.begin() + (token * 3 + head) * 7;
    parts.out.emplace_back(first, first + 7);
    lses.read_row(r, row);
    parts.lse.push_back(static_cast<float>(row[static_cast<std::size_t>(token * 3 + head)]));
  }
  return parts;
}

// A token's inadmissible elements, where `merge_one` merges each of its heads.
template <class F>
int wrong_of(const Worked& worked, std::int64_t token, F merge_one) {
  Floats out, lse;
  for (std::int64_t head = 0; head < 3; ++head) {
    const Merged merged = merge_one(parts_of(worked, token, head));
    out.insert(out.end(), merged.out.begin(), merged.out.end());
    lse.push_back(merged.lse);
  }
  return wrong_in_row(worked, "out", token, out) + wrong_in_row(worked, "lse", token, lse);
}

TEST(MergeReference, RightWaysAreAdmitted) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  for (const int world : {1, 2, 4, 8}) {
    for (const char* const base : {"e", "2"}) {
      for (const char* const values :
           {"", R"("partial_lse": "normal:3")", R"("partial_lse": "normal:40")", R"("partial_lse": "large_mean")",
            R"("partial_lse": "constant:2.5", "partial_out": "signs")", R"("partial_out": "saturating")",
            R"("partial_out": "tiny")"}) {
        const Worked worked(ranks_text(60, world, std::string(R"("lse_base": ")") + base + "\"", values));
        for (const Way way : kWays) {
          const Merger merger(way, *base == '2');
          for (std::int64_t token = 0; token < 60; ++token) {
            ASSERT_EQ(wrong_of(worked, token, [&](const Parts& parts) { return merger.run(parts); }), 0)
                << "way " << static_cast<int>(way) << ", W " << world << ", base " << base << ", token " << token << ' '
                << values;
          }
        }
      }
    }
  }
}

// How many of 40 tokens have an inadmissible element.
template <class F>
int killed(const std::string& text, F merge_one) {
  const Worked worked(text);
  int count = 0;
  for (std::int64_t token = 0; token < 40; ++token) count += wrong_of(worked, token, merge_one) != 0;
  return count;
}

TEST(MergeReference, WrongOnesAreNot) {
  const std::string plain = ranks_text(40, 4, "", R"("partial_lse": "normal:2")");
  const std::string base_2 = ranks_text(40, 4, R"("lse_base": "2")", R"("partial_lse": "normal:2")");
  const Merger right(Way::weights, false);
  EXPECT_EQ(killed(plain, [&](const Parts& parts) { return right.run(parts); }), 0);
  EXPECT_EQ(killed(base_2, [&](const Parts& parts) { return right.run(parts); }), 40);  // base 2 as base e
  EXPECT_EQ(killed(plain, [&](const Parts& parts) { return Merger(Way::weights, true).run(parts); }), 40);
  EXPECT_EQ(killed(plain,
                   [&](Parts parts) {
                     parts.lse.assign(parts.lse.size(), 0);  // the mean
                     return right.run(parts);
                   }),
            40);
  EXPECT_EQ(killed(plain,
                   [&](Parts parts) {
                     parts.lse.back() = -kInf;  // a rank left out
                     return right.run(parts);
                   }),
            40);
  EXPECT_GE(killed(plain,
                   [&](const Parts& parts) {
                     Merged merged = right.run(parts);  // weights rounded to 16 bits
                     for (float& out : merged.out) out *= 1 + 0x1p-17F;
                     return merged;
                   }),
            39);
  EXPECT_EQ(killed(plain,
                   [&](const Parts& parts) {
                     Merged merged = right.run(parts);
                     merged.lse += 1e-5F;
                     return merged;
                   }),
            40);
}

TEST(MergeReference, EmptyPartsDoNotCount) {
  const Merger right(Way::weights, false);
  // With parts of which some are empty, an infinity that wins or a NaN that gets through.
  const std::string mixed = ranks_text(40, 4);
  EXPECT_EQ(killed(mixed, [&](const Parts& parts) { return right.run(parts); }), 0);
  EXPECT_GE(killed(mixed,
                   [&](Parts parts) {
                     for (float& lse : parts.lse) lse = lse == kInf ? 1e5F : lse;
                     return right.run(parts);
                   }),
            8);
  EXPECT_GE(killed(mixed,
                   [&](Parts parts) {
                     for (float& lse : parts.lse) lse = std::isfinite(lse) ? lse : -1e30F;
                     return right.run(parts);
                   }),
            20);
  // None with keys: (0, -inf), or anything.
  const auto nothing = [](const Parts& parts) { return Merged{Floats(parts.out[0].size(), 0), -kInf}; };
  const auto nans = [](const Parts& parts) { return Merged{Floats(parts.out[0].size(), kNaN), kNaN}; };
  const std::string empty = ranks_text(40, 2, "", R"("partial_lse": "empty")");
  EXPECT_EQ(killed(empty, nothing), 0);
  EXPECT_EQ(killed(empty, nans), 40);
  const std::string unspecified = ranks_text(40, 2, R"("all_empty": "unspecified")", R"("partial_lse": "empty")");
  EXPECT_EQ(killed(unspecified, nothing), 0);
  EXPECT_EQ(killed(unspecified, nans), 0);
}

TEST(MergeReference, BoundIsThatOfItsDerivation) {
  Row out, lse;
  out.reset(1);
  lse.reset(1);
  const std::vector<double> one{1}, two{-2};
  const std::vector<Part> parts{{0, one}, {0, two}};
  merge(parts, {}, 0, out, lse);
  EXPECT_EQ(out.value[0], -0.5);
  // w = 1/2, eps = 4u, and 8.1u + u ln 2 + 2.25u ln 2 of the weight's own logarithm.
  EXPECT_NEAR(out.error[0] / u, 1.5 * (4 + 4 + 7 + 8.1 + 3.25 * std::log(2.0) + 1), 0.1);
  EXPECT_NEAR(lse.value[0], std::log(2.0), 1e-15);
  EXPECT_NEAR(lse.error[0] / u, 4 + 6 + 8.1 + std::log(2.0), 0.1);
}

TEST(MergeChunksReference, IsThatOfTwoParts) {
  const Worked worked(R"({"op": "merge_chunks", "seed": "0000000000000004", "geometry": {"batch": [{"uncached": 50}],
    "padding": {"tokens": 3}}, "params": {"heads": 2, "v_head_dim": 5}})");
  const auto floats = [&](const char* name, std::int64_t row) {
    std::vector<double> x;
    Reader(worked.plan, worked.inputs, name, 0).read_row(row, x);
    return Floats(x.begin(), x.end());
  };
  int ignored = 0;
  for (std::int64_t token = 0; token < 50; ++token) {
    const Floats prefix = floats("prefix_out", token), suffix = floats("suffix_out", token);
    const Floats prefix_lse = floats("prefix_lse", token), suffix_lse = floats("suffix_lse", token);
    for (const Way way : kWays) {
      Floats out, lse;
      for (std::size_t head = 0; head < 2; ++head) {
        const auto at = static_cast<std::ptrdiff_t>(5 * head);
        const Merged merged =
            Merger(way, false)
                .run({{{prefix.begin() + at, prefix.begin() + at + 5}, {suffix.begin() + at, suffix.begin() + at + 5}},
                      {prefix_lse[head], suffix_lse[head]}});
        out.insert(out.end(), merged.out.begin(), merged.out.end());
        lse.push_back(merged.lse);
      }
      ASSERT_EQ(wrong_in_row(worked, "out", token, out), 0) << token;
      ASSERT_EQ(wrong_in_row(worked, "lse", token, lse), 0) << token;
    }
    ignored += wrong_in_row(worked, "out", token, prefix) != 0;
  }
  EXPECT_GT(ignored, 40);
}

}  // namespace
}  // namespace dcpcheck::reference::testing
