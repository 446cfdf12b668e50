#include "kernels/dense_prefill/dense_prefill.cuh"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/dense_prefill/faults/causal_off_by_one.hpp"
#include "kernels/dense_prefill/faults/context_causal.hpp"
#include "kernels/dense_prefill/faults/heads_of_rank_0.hpp"
#include "kernels/dense_prefill/faults/next_request_seen.hpp"
#include "kernels/dense_prefill/faults/rope_part_ignored.hpp"
#include "kernels/dense_prefill/faults/scale_left_out.hpp"

namespace kernels::dense_prefill {
namespace {

using Floats = std::vector<float>;
using Codes = std::vector<std::uint16_t>;

constexpr std::uint16_t kNaN = 0x7FC0;

// A launch of `uncached` tokens of each request over themselves or, where there are some, over `context` keys.
struct Trial {
  std::vector<std::int32_t> starts{0}, offsets{0};
  std::int64_t heads = 2, first_head = 0, nope = 12, rope = 6, width = 5, kv_lora = 40, padding = 0;
  bool causal = true;
  Floats q;
  Codes kv_c, k_pe;

  Trial(const std::vector<int>& uncached, const std::vector<int>& context, std::uint32_t seed = 1) : causal(context.empty()) {
    for (const int tokens : uncached) starts.push_back(starts.back() + tokens);
    for (const int keys : context) offsets.push_back(offsets.back() + keys);
    fill(seed);
  }
  void fill(std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    q.resize(static_cast<std::size_t>((starts.back() + padding) * heads * (nope + rope)));
    for (float& value : q) value = normal(generator);
    const auto keys = static_cast<std::size_t>(causal ? starts.back() + padding : offsets.back());
    for (Codes* const codes : {&kv_c, &k_pe}) {
      codes->resize(keys * static_cast<std::size_t>(codes == &kv_c ? kv_lora : rope));
      for (auto& code : *codes) code = dcpcheck::encode_bf16(normal(generator));
    }
  }

  // out | lse, row by row.
  template <class Decisions = Fixed>
  Floats run(int threads = 1) const {
    const std::int64_t tokens = starts.back() + padding;
    Floats all(static_cast<std::size_t>(tokens * heads * (width + 1)), -77);
    Args args;
    args.q = q.data();
    args.q_stride = heads * (nope + rope);
    args.kv_c = kv_c.data();
    args.kv_c_stride = kv_lora;
    args.k_pe = k_pe.data();
    args.k_pe_stride = rope;
    args.query_start_loc = starts.data();
    args.context_offsets = causal ? nullptr : offsets.data();
    args.out = all.data();
    args.lse = all.data() + heads * width;
    args.out_stride = args.lse_stride = heads * (width + 1);
    args.tokens = tokens;
    args.requests = static_cast<std::int64_t>(starts.size()) - 1;
    args.heads = heads;
    args.first_head = first_head;
    args.nope = nope;
    args.rope = rope;
    args.width = width;
    args.kv_lora = kv_lora;
    const auto& limits = causal ? starts : offsets;
    for (std::size_t i = 1; i < limits.size(); ++i)
      args.most_keys = std::max<std::int64_t>(args.most_keys, limits[i] - limits[i - 1]);
    args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(nope + rope)));
    EXPECT_EQ(launch_host<Decisions>(args, threads), "");
    return all;
  }

  // The same in fp64, one token's head: width outputs, and the LSE.
  std::vector<double> right(std::int64_t token, std::int64_t head) const {
    std::size_t request = 0;
    while (starts[request + 1] <= token) ++request;
    const std::int64_t first = causal ? starts[request] : offsets[request], end = causal ? token + 1 : offsets[request + 1];
    std::vector<double> out(static_cast<std::size_t>(width) + 1, 0.0);
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const auto kv = [&](std::int64_t i) {
        return static_cast<double>(load_bf16(&kv_c[static_cast<std::size_t>(j * kv_lora + i % kv_lora)]));
      };
      double score = 0;
      const float* const query = q.data() + (token * heads + head) * (nope + rope);
      for (std::int64_t i = 0; i < nope; ++i) score += static_cast<double>(query[i]) * kv((first_head + head) * nope + i);
      for (std::int64_t i = 0; i < rope; ++i) {
        score += static_cast<double>(query[nope + i]) *
                 static_cast<double>(load_bf16(&k_pe[static_cast<std::size_t>(j * rope + i)]));
      }
      const double power = std::exp(score / std::sqrt(static_cast<double>(nope + rope)));
      sum += power;
      for (std::int64_t i = 0; i < width; ++i) {
        out[static_cast<std::size_t>(i)] += power * kv(kv_lora / 2 + (first_head + head) * width + i);
      }
    }
    for (double& value : out) value /= end == first ? 1 : sum;
    out.back() = std::log(sum);
    return out;
  }
};

void expect_right(const Trial& trial) {
  const Floats all = trial.run();
  for (std::int64_t token = 0; token < trial.starts.back(); ++token) {
    for (std::int64_t head = 0; head < trial.heads; ++head) {
      const std::vector<double> right = trial.right(token, head);
      const float* const row = all.data() + token * trial.heads * (trial.width + 1);
      for (std::int64_t i = 0; i < trial.width; ++i) {
        ASSERT_NEAR(row[head * trial.width + i], right[static_cast<std::size_t>(i)], 1e-5) << token << ' ' << head << ' ' << i;
      }
      const float lse = row[trial.heads * trial.width + head];
      if (std::isinf(right.back())) {
        ASSERT_EQ(lse, -std::numeric_limits<float>::infinity());
      } else {
        ASSERT_NEAR(lse, right.back(), 1e-5);
      }
    }
  }
}

TEST(DensePrefill, IsAttention) {
  expect_right(Trial({1}, {}));
  expect_right(Trial({150, 0, 3, 1}, {}));
  expect_right(Trial({4, 3, 0, 2}, {9, 0, 5, 140}));
  for (const std::int64_t nope : {0, 1, 8, 13, 64}) {
    for (const std::int64_t width : {1, 16, 45}) {
      Trial trial({9}, {});
      trial.nope = nope;
      trial.width = width;
      trial.rope = 10;
      trial.first_head = 3;  // with it, windows that go on at the start of kv_c, some more than once
      trial.fill(7);
      expect_right(trial);
    }
  }
}

TEST(DensePrefill, EqualScoresGiveTheMeanExactly) {
  Trial trial({8}, {});
  trial.q.assign(trial.q.size(), 0.0F);
  for (std::size_t i = 0; i < trial.kv_c.size(); ++i) trial.kv_c[i] = dcpcheck::encode_bf16(static_cast<float>(i % 7));
  const Floats all = trial.run();
  for (const std::int64_t token : {0, 1, 3, 7}) {
    for (std::int64_t i = 0; i < trial.width; ++i) {
      EXPECT_EQ(all[static_cast<std::size_t>(token * trial.heads * (trial.width + 1) + i)],
                trial.right(token, 0)[static_cast<std::size_t>(i)]);
    }
  }
}

// Term i in sum i % 32, written out one after the other, and the tree that joins them.
float in_sums(const Floats& terms) {
  float sums[32] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i % 32] += terms[i];
  for (int s = 16; s > 0; s /= 2) {
    for (int i = 0; i < s; ++i) sums[i] += sums[i + s];
  }
  return sums[0];
}

// The bits of the last token's only head, worked out in the kernel's one order.
void expect_in_order(const Trial& trial) {
  const std::int64_t count = trial.causal ? trial.starts.back() : trial.offsets.back();
  const auto n = static_cast<std::size_t>(count);
  const auto deep = static_cast<std::size_t>(trial.nope + trial.rope), nope = static_cast<std::size_t>(trial.nope);
  const auto lora = static_cast<std::size_t>(trial.kv_lora), head = static_cast<std::size_t>(trial.first_head);
  const std::size_t key = head * nope, value = lora / 2 + head * static_cast<std::size_t>(trial.width);
  const auto kv = [&](std::size_t j, std::size_t i) { return load_bf16(&trial.kv_c[j * lora + i % lora]); };
  const float* const q = trial.q.data() + trial.q.size() - deep;
  Floats scores;
  for (std::size_t j = 0; j < n; ++j) {
    Floats terms;
    for (std::size_t d = 0; d < deep; ++d) {
      terms.push_back(q[d] * (d < nope ? kv(j, key + d) : load_bf16(&trial.k_pe[j * (deep - nope) + d - nope])));
    }
    scores.push_back(in_sums(terms) * static_cast<float>(1 / std::sqrt(static_cast<double>(deep))));
  }
  const float* const data = scores.data();
  const float largest = Block().max(-1e30F, count, [=](std::int64_t j) { return data[j]; });
  for (float& score : scores) score = exp(score - largest);
  const float sum = Block().sum(count, [=](std::int64_t j) { return data[j]; });
  const Floats all = trial.run();
  const auto width = static_cast<std::size_t>(trial.width);
  const Floats row(all.end() - static_cast<std::ptrdiff_t>(width) - 1, all.end());
  for (std::size_t i = 0; i < width; ++i) {
    Floats terms;
    for (std::size_t j = 0; j < n; ++j) terms.push_back(scores[j] * kv(j, value + i));
    const float right = in_sums(terms) / sum;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(row[i]), std::bit_cast<std::uint32_t>(right)) << row[i] << " for " << right;
  }
  ASSERT_EQ(row[width], largest + log(sum));
}

TEST(DensePrefill, SumsInItsOneOrder) {
  // Parts of a key that end within a turn of the sums, and lie in memory as a whole or not; outputs of two turns of columns.
  for (const auto& [nope, rope] : {std::pair<std::int64_t, std::int64_t>{12, 6}, {40, 70}, {64, 33}, {0, 64}, {97, 0}}) {
    for (const std::int64_t kv_lora : {250, 41}) {
      SCOPED_TRACE(testing::Message() << nope << ' ' << rope << ' ' << kv_lora);
      Trial trial({1}, {300});
      trial.heads = 1;
      trial.nope = nope;
      trial.rope = rope;
      trial.width = 70;
      trial.kv_lora = kv_lora;
      trial.fill(5);
      expect_in_order(trial);
    }
  }
}

// A batch of one prompt in which rows are as memory that nobody wrote has them, one like the other, or differ from that in a
// place. `huge`: the query is so large that subnormal keys have scores of about 1, and no other keys are there.
Trial with_subnormal_rows(const Trial& sizes, int kinds, bool huge) {
  Trial trial = sizes;
  trial.fill(5);
  constexpr std::uint16_t kUnwritten = 0x8061, kRopedUnwritten = 0x8062;
  const std::uint16_t other = huge ? 0x0044 : dcpcheck::encode_bf16(0.75F);
  if (huge) {
    for (float& q : trial.q) q *= 0x1p125F;
    for (Codes* const codes : {&trial.kv_c, &trial.k_pe}) {
      for (auto& code : *codes) code &= 0x807F;
    }
  }
  const auto lora = static_cast<std::size_t>(trial.kv_lora), roped = static_cast<std::size_t>(trial.rope);
  for (int j = 0; j < trial.starts.back(); ++j) {
    const int kind = j * 7 % 11 % kinds;
    if (kind == 1) continue;  // written
    const std::span kv(trial.kv_c.data() + static_cast<std::size_t>(j) * lora, lora);
    const std::span pe(trial.k_pe.data() + static_cast<std::size_t>(j) * roped, roped);
    std::fill(kv.begin(), kv.end(), kind == 3 ? std::uint16_t{0x0013} : kUnwritten);
    if (kind != 2) std::fill(pe.begin(), pe.end(), kRopedUnwritten);
    if (kind == 4) kv.back() = other;
    if (kind == 5) kv[5] = kv[lora / 2 + 3] = other;
    if (kind == 6 && roped > 0) pe.back() = other;
  }
  return trial;
}

TEST(DensePrefill, SubnormalKeysHaveTheBitsOfAnyOthers) {
  for (const auto& [nope, rope] : {std::pair<std::int64_t, std::int64_t>{12, 6}, {40, 0}, {0, 40}}) {
    for (const std::int64_t kv_lora : {110, 41}) {
      for (const int kinds : {1, 2, 7}) {
        for (const int tokens : {1, 2, 40}) {
          for (const bool huge : {false, true}) {
            SCOPED_TRACE(testing::Message() << nope << ' ' << rope << ' ' << kv_lora << ' ' << kinds << ' ' << tokens << huge);
            Trial sizes({tokens}, {});
            sizes.heads = 1;
            sizes.nope = nope;
            sizes.rope = rope;
            sizes.width = 9;
            sizes.kv_lora = kv_lora;
            sizes.first_head = kv_lora == 41 ? 3 : 0;  // of a row of 41 the keys and values of head 3 go on at its start
            expect_in_order(with_subnormal_rows(sizes, kinds, huge));
          }
        }
      }
    }
  }
}

// Queries so small that all scores are one number to the exponential: a key that only looks large must not change a bit,
// and one that is a NaN must be seen.
TEST(DensePrefill, FaintQueriesHaveTheBitsOfAnyOthers) {
  for (const float size : {0x1p-133F, 0x1p-126F, 0x1p-101F, 0x1.8p-100F}) {
    Trial trial({9, 1, 2}, {});
    for (float& value : trial.q) value *= size / 8;
    const Floats results = trial.run();
    Trial other = trial;
    // Of the second key, which no query sees alone: no value of anything, and a score as faint as any.
    const auto place = static_cast<std::size_t>(trial.rope) + 3;
    other.k_pe[place] = dcpcheck::encode_bf16(0x1p17F);
    EXPECT_EQ(std::memcmp(other.run().data(), results.data(), results.size() * sizeof(float)), 0) << size;
    other.k_pe[place] = kNaN;
    const auto second = static_cast<std::size_t>(trial.heads * (trial.width + 1));
    EXPECT_TRUE(std::isnan(other.run()[second])) << size;
  }
}

TEST(DensePrefill, PaddingIsLeftAloneAndReachesNothing) {
  Trial trial({5}, {});
  const Floats before = trial.run();
  trial.padding = 3;
  trial.q.resize(trial.q.size() + 3 * 36, std::numeric_limits<float>::quiet_NaN());
  trial.kv_c.resize(trial.kv_c.size() + 3 * 40, kNaN);
  trial.k_pe.resize(trial.k_pe.size() + 3 * 6, kNaN);
  const Floats after = trial.run(2);
  EXPECT_EQ(Floats(after.begin(), after.begin() + 60), before);
  EXPECT_EQ(Floats(after.begin() + 60, after.end()), Floats(36, -77));
}

TEST(DensePrefill, FaultsDifferWhereTheyShould) {
  const Trial causal({6, 4}, {}), context({3, 2}, {4, 7});
  const auto differ = [](const Floats& a, const Floats& b, std::int64_t token) {
    return !std::equal(a.begin() + token * 12, a.begin() + token * 12 + 12, b.begin() + token * 12);
  };
  const Floats right = causal.run(), off = causal.run<faults::causal_off_by_one>();
  EXPECT_TRUE(differ(off, right, 0));
  EXPECT_TRUE(differ(off, right, 4));
  EXPECT_FALSE(differ(off, right, 5));  // the last token has no next one
  EXPECT_TRUE(differ(causal.run<faults::scale_left_out>(), right, 2));
  EXPECT_TRUE(differ(causal.run<faults::rope_part_ignored>(), right, 2));
  EXPECT_EQ(causal.run<faults::next_request_seen>(), right);
  const Floats of_context = context.run(), next = context.run<faults::next_request_seen>();
  EXPECT_TRUE(differ(next, of_context, 0));
  EXPECT_FALSE(differ(next, of_context, 3));
  EXPECT_EQ(context.run<faults::causal_off_by_one>(), of_context);
  const Floats narrowed = context.run<faults::context_causal>();
  EXPECT_TRUE(differ(narrowed, of_context, 0));
  EXPECT_TRUE(differ(narrowed, of_context, 2));  // three of four keys
  EXPECT_EQ(causal.run<faults::context_causal>(), right);
  Trial second_rank = causal;
  EXPECT_EQ(second_rank.run<faults::heads_of_rank_0>(), right);
  second_rank.first_head = 1;
  EXPECT_EQ(second_rank.run<faults::heads_of_rank_0>(), right);
  EXPECT_TRUE(differ(second_rank.run(), right, 2));
}

}  // namespace
}  // namespace kernels::dense_prefill
