// The reference of dense_prefill against fp32 arithmetic: every right way to attend is admitted, every wrong one is not.
#include "reference/attention.hpp"
#include "harness/core/slow_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "reference/test_rows.hpp"

namespace dcpcheck::reference::testing {
namespace {

using Floats = std::vector<float>;

// One query's keys and values, as fp32 arithmetic sees them.
struct Attended {
  Floats q;
  std::vector<Floats> keys, values;
};

struct Result {
  Floats out;
  float lse = 0;
};

// The right ways that are tried here.
struct Way {
  bool fma = false, base_2 = false, scaled_query = false, backwards = false, divided_first = false;
  std::size_t tile = 0;  // keys that are taken together, what was had before being rescaled; 0: all of them, in two passes

  static Way number(int i) {
    Way way;
    way.fma = i % 2 == 1;
    way.base_2 = i / 2 % 2 == 1;
    way.scaled_query = i / 4 % 2 == 1;
    way.backwards = i / 8 % 2 == 1;
    constexpr std::size_t tiles[] = {0, 1, 16, 64};
    way.tile = tiles[i / 16 % 4];
    way.divided_first = way.tile == 0 && i / 64 % 2 == 1;
    return way;
  }
};

constexpr int kWays = 80;

// The only head's attention, given as rows that lie one after the other.
void attend(std::span<const double> q, std::span<const double> keys, std::span<const double> values, std::size_t width,
            const Arithmetic& how, Row& out, Row& lse) {
  const std::size_t count = keys.size() / q.size();
  HeadKeys head_keys(static_cast<std::int64_t>(q.size()), static_cast<std::int64_t>(count));
  HeadValues head_values(static_cast<std::int64_t>(width), static_cast<std::int64_t>(count));
  for (std::size_t j = 0; j < count; ++j) {
    head_keys.add(keys.subspan(j * q.size(), q.size()));
    head_values.add(values.subspan(j * width, width), j == 0);
  }
  out.reset(static_cast<std::int64_t>(width));
  lse.reset(1);
  HeadAttention(head_keys, head_values, how).attend(q, 0, static_cast<std::int64_t>(count), 0, out, lse);
}

// With a known order: 32 running sums and a tree for each sum, under one maximum.
Result in_lanes(const Attended& given) {
  constexpr int kLanes32 = 5;
  const float scale = 1 / std::sqrt(static_cast<float>(given.q.size()));
  Floats powers;
  for (const Floats& key : given.keys) {
    Floats terms;
    for (std::size_t d = 0; d < key.size(); ++d) terms.push_back(given.q[d] * key[d]);
    powers.push_back(sum_of(terms, kLanes32) * scale);
  }
  const float largest = *std::max_element(powers.begin(), powers.end());
  for (float& power : powers) power = std::exp(power - largest);
  const float sum = sum_of(powers, kLanes32);
  Result result;
  for (std::size_t i = 0; i < given.values.front().size(); ++i) {
    Floats terms;
    for (std::size_t j = 0; j < powers.size(); ++j) terms.push_back(powers[j] * given.values[j][i]);
    result.out.push_back(sum_of(terms, kLanes32) / sum);
  }
  result.lse = largest + std::log(sum);
  return result;
}

class Attention {
 public:
  explicit Attention(const Way& way) : way_(way) {}

  Result run(Attended given) const {
    Result result;
    if (given.keys.empty()) return {Floats(32, 0), -std::numeric_limits<float>::infinity()};
    if (way_.backwards) {
      std::reverse(given.keys.begin(), given.keys.end());
      std::reverse(given.values.begin(), given.values.end());
    }
    const Floats scores = scores_of(given);
    const std::size_t tile = way_.tile == 0 ? scores.size() : way_.tile;
    float maximum = -std::numeric_limits<float>::infinity(), sum = 0;
    Floats out(given.values.front().size(), 0);
    for (std::size_t begin = 0; begin < scores.size(); begin += tile) {
      const std::size_t end = std::min(begin + tile, scores.size());
      const float next = std::max(maximum, *std::max_element(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                                                             scores.begin() + static_cast<std::ptrdiff_t>(end)));
      const float before = begin == 0 ? 0 : power(maximum, next);
      sum *= before;
      for (float& value : out) value *= before;
      Floats powers;
      for (std::size_t j = begin; j < end; ++j) powers.push_back(power(scores[j], next));
      for (const float p : powers) sum += p;
      for (std::size_t j = begin; j < end; ++j) {
        const float weight = way_.divided_first ? powers[j - begin] * (1 / sum) : powers[j - begin];
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = times_plus(weight, given.values[j][i], out[i]);
      }
      maximum = next;
    }
    for (float& value : out) value = way_.divided_first ? value : value / sum;
    // With base 2 the scores are kept times log2 e.
    result.lse = way_.base_2 ? (maximum + std::log2(sum)) * 0.693147182F : maximum + std::log(sum);
    result.out = out;
    return result;
  }

 private:
  float times_plus(float a, float b, float c) const { return way_.fma ? std::fma(a, b, c) : a * b + c; }
  float power(float score, float largest) const { return way_.base_2 ? std::exp2(score - largest) : std::exp(score - largest); }
  Floats scores_of(const Attended& given) const {
    float scale = 1 / std::sqrt(static_cast<float>(given.q.size()));
    if (way_.base_2) scale *= 1.44269504F;
    Floats scores;
    for (const Floats& key : given.keys) {
      float score = 0;
      for (std::size_t i = 0; i < key.size(); ++i) {
        const std::size_t d = way_.backwards ? key.size() - 1 - i : i;
        score = times_plus(way_.scaled_query ? given.q[d] * scale : given.q[d], key[d], score);
      }
      scores.push_back(way_.scaled_query ? score : score * scale);
    }
    return scores;
  }

  Way way_;
};

// What a token's head attends to. `more`: keys past those, as a fault would see.
Attended attended(const Worked& worked, std::int64_t token, std::int64_t head, int more = 0) {
  const Case& value = worked.plan.value;
  const bool causal = value.flag("causal");
  const auto row = [&](const char* name, std::int64_t i) {
    std::vector<double> x;
    Reader(worked.plan, worked.inputs, name, 0).read_row(i, x);
    return Floats(x.begin(), x.end());
  };
  Attended out;
  const Floats q = row("q", token);
  out.q.assign(q.begin() + head * 96, q.begin() + head * 96 + 96);
  std::int64_t first = 0, next = 0, keys = 0, seen = 0;
  for (const Request& request : value.geometry.batch) {
    next = first + request.uncached;
    seen = causal ? std::min(token + 1 + more, next) : keys + request.cached + more;
    if (token < next) break;
    first = next;
    keys += request.cached;
  }
  if (!causal) seen = std::min(seen, worked.plan.tensor("context_kv_c").rows());  // after the last request there is none
  for (std::int64_t j = causal ? first : keys; j < seen; ++j) {
    const Floats kv = row(causal ? "kv_c" : "context_kv_c", j), pe = row(causal ? "k_pe" : "context_k_pe", j);
    Floats& key = out.keys.emplace_back(kv.begin() + head * 32, kv.begin() + head * 32 + 32);
    key.insert(key.end(), pe.begin(), pe.end());
    out.values.emplace_back(kv.begin() + 256 + head * 32, kv.begin() + 256 + head * 32 + 32);
  }
  return out;
}

template <class F>
int wrong_of(const Worked& worked, std::int64_t token, F attend_one) {
  Floats out, lse;
  for (std::int64_t head = 0; head < 2; ++head) {
    const Result result = attend_one(head);
    out.insert(out.end(), result.out.begin(), result.out.end());
    lse.push_back(result.lse);
  }
  return wrong_in_row(worked, "out", token, out) + wrong_in_row(worked, "lse", token, lse);
}

std::string text(const std::string& batch, const std::string& params, const std::string& values = "") {
  return R"({"op": "dense_prefill", "seed": "0000000000000005", "geometry": {"batch": [)" + batch +
         R"(], "caches": {"mla": {}}}, "params": {)" + params + R"(}, "values": {)" + values + "}}";
}

const std::string prompts = R"({"uncached": 90}, {"uncached": 7})";
const std::string cached = R"({"cached": 300, "uncached": 6}, {"uncached": 2}, {"cached": 1, "uncached": 3})";

TEST(AttentionReference, RightWaysAreAdmitted) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  for (const std::string& one :
       {text(prompts, ""), text(prompts, "", R"("q": "normal:30")"), text(prompts, "", R"("q": "zero", "kv_c": "signs")"),
        text(prompts, "", R"("q": "large_mean", "k_pe": "large_mean")"),
        text(prompts, "", R"("kv_c": "saturating", "q": "tiny")"), text(cached, R"("causal": false)"),
        text(cached, R"("causal": false)", R"("q": "normal:10")"),
        text(cached, R"("causal": false)", R"("q": "zero", "context_kv_c": "ladder")")}) {
    const Worked worked(one);
    for (std::int64_t token = 0; token < worked.plan.live; ++token) {
      const Attended heads[] = {attended(worked, token, 0), attended(worked, token, 1)};
      for (int i = 0; i < kWays; ++i) {
        const Attention attention(Way::number(i));
        ASSERT_EQ(wrong_of(worked, token, [&](std::int64_t head) { return attention.run(heads[head]); }), 0)
            << "way " << i << ", token " << token << " of " << one;
      }
    }
  }
}

const std::string many = text(R"({"cached": 2560, "uncached": 1}, {"cached": 33, "uncached": 1})", R"("causal": false)",
                              R"("q": "normal:3", "context_kv_c": "large_mean")");

TEST(AttentionReference, AKnownDepthIsAdmitted) {
  for (const std::string& one : {text(prompts, ""), text(prompts, "", R"("q": "normal:30")"),
                                 text(prompts, "", R"("q": "large_mean", "k_pe": "large_mean")"), many}) {
    const Worked worked(one, {1, 32});
    for (std::int64_t token = 0; token < worked.plan.live; ++token) {
      EXPECT_EQ(wrong_of(worked, token, [&](std::int64_t head) { return in_lanes(attended(worked, token, head)); }), 0)
          << "token " << token << " of " << one;
    }
  }
}

TEST(AttentionReference, AKnownDepthOnlyTightensTheBound) {
  const Worked any(many), known(many, {1, 32});
  for (const char* const name : {"out", "lse"}) {
    const Admissible &wide = any.expected.find(name)->second, &tight = known.expected.find(name)->second;
    EXPECT_EQ(wide.value, tight.value);
    for (std::size_t i = 0; i < wide.error.size(); ++i) ASSERT_LT(tight.error[i], wide.error[i]) << name << ' ' << i;
    // Of 2560 keys: a score has 7 + 7 u in place of 95 + 7, the sums over keys have 84 u in place of 2559, and no rescalings.
    EXPECT_LT(tight.error[0], wide.error[0] / 6) << name;
  }
}

TEST(AttentionReference, SumsOneAfterTheOtherAreDeeperThanInLanes) {
  // Equal scores of 4000 keys, the first of which has the value 1 and the others half of its last place: those are lost
  // where they are added one by one to the first, and in lanes only those of the first's own lane are.
  constexpr std::size_t kKeys = 4000;
  Attended given{Floats{0}, std::vector<Floats>(kKeys, Floats{1}), std::vector<Floats>(kKeys, Floats{0x1p-24F})};
  given.values[0][0] = 1;
  const std::vector<double> q(1, 0), keys(kKeys, 1);
  std::vector<double> values(kKeys, 0x1p-24);
  values[0] = 1;
  const auto fraction = [&](float got, int lanes) {
    Row out, lse;
    attend(q, keys, values, 1, {lanes, false}, out, lse);
    return std::abs(static_cast<double>(got) - out.value[0]) / out.error[0];
  };
  const float one_by_one = Attention(Way{}).run(given).out[0], parted = in_lanes(given).out[0];
  EXPECT_EQ(one_by_one, 1 / 4000.0F);
  EXPECT_LT(fraction(one_by_one, 0), 1);
  EXPECT_GT(fraction(one_by_one, 32), 5);
  EXPECT_LT(fraction(parted, 32), 1);
  EXPECT_GT(fraction(parted, 32), 0.1);
}

// How many tokens are inadmissible where `change` is made to what each attends to.
template <class F>
int killed(const Worked& worked, int more, F change) {
  int count = 0;
  for (std::int64_t token = 0; token < worked.plan.live; ++token) {
    count += wrong_of(worked, token, [&](std::int64_t head) {
               Attended given = attended(worked, token, head, more);
               change(given);
               return Attention(Way{}).run(std::move(given));
             }) != 0;
  }
  return count;
}

TEST(AttentionReference, WrongOnesAreNot) {
  const Worked worked(text(prompts, ""));
  EXPECT_EQ(killed(worked, 0, [](Attended&) {}), 0);
  EXPECT_EQ(killed(worked, 1, [](Attended&) {}), 95);  // a key too many, but for each request's last token
  EXPECT_EQ(killed(worked, -1, [](Attended&) {}), 97);
  EXPECT_EQ(killed(worked, 0,
                   [](Attended& given) {
                     for (float& q : given.q) q *= 10;
                   }),
            97);
  EXPECT_EQ(killed(worked, 0, [](Attended& given) { std::fill(given.q.begin() + 32, given.q.end(), 0.0F); }), 97);
  // A score that is off by a bf16 rounding shows in outputs that have other values to mix with.
  EXPECT_GE(killed(worked, 0,
                   [](Attended& given) {
                     for (float& q : given.q) q *= 1.001F;
                   }),
            90);
  EXPECT_GE(killed(worked, 0,
                   [](Attended& given) {
                     for (Floats& v : given.values) v[3] *= 1.002F;
                   }),
            90);
}

TEST(AttentionReference, NoKeysAndOtherRequestsKeys) {
  const Worked worked(text(cached, R"("causal": false)"));
  EXPECT_EQ(killed(worked, 0, [](Attended&) {}), 0);
  EXPECT_EQ(killed(worked, 1, [](Attended&) {}) >= 6, true);
  EXPECT_EQ(worked.expected.find("lse")->second.value[6 * 2], -infinity);
  EXPECT_EQ(worked.expected.find("out")->second.value[6 * 64], 0);
  EXPECT_EQ(worked.expected.find("out")->second.error[6 * 64], 0);
}

TEST(AttentionReference, ExactWhereEveryKernelIs) {
  const Worked worked(text(prompts, "", R"("q": "zero", "kv_c": "signs")"));
  const Admissible& out = worked.expected.find("out")->second;
  for (const std::size_t token : {0, 1, 3, 7, 15, 31, 63}) {
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out.error[token * 64 + i], 0) << token;
  }
  // A third of each is rounded.
  EXPECT_GT(out.error[2 * 64], 0);
  EXPECT_LT(out.error[2 * 64], 10 * u);
  // One key: the value itself, whatever the score.
  const Worked plain(text(prompts, ""));
  EXPECT_EQ(plain.expected.find("out")->second.error[0], 0);
  EXPECT_GT(plain.expected.find("out")->second.error[64], 0);
}

TEST(AttentionReference, BoundIsThatOfItsDerivation) {
  // Two keys with the scores 1/2 and 0, values 1 and -1.
  Row out, lse;
  const std::vector<double> q{0.5}, keys{1, 0}, values{1, -1};
  attend(q, keys, values, 1, {}, out, lse);
  const double w = 1 / (1 + std::exp(-0.5)), o = 2 * w - 1;
  const double eps0 = 3.5 + 4 + 4, eps1 = 2.25 * 0.5 + 4 + 4;  // K is 1
  EXPECT_NEAR(out.value[0], o, 1e-15);
  EXPECT_NEAR(out.error[0] / u, w * eps0 * (1 - o) + (1 - w) * eps1 * (1 + o) + 7 + 2 * o, 0.01);
}

std::vector<double> numbers(std::size_t count, unsigned seed, double sigma) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<double> all(count);
  for (double& number : all) number = normal(generator);
  return all;
}

TEST(AttentionReference, BoundOfManyKeysIsTheDerivationWrittenOut) {
  // Widths and counts that leave a rest in every loop. With keys in the order of their scores the maximum rises each time.
  constexpr std::size_t deep = 7, width = 5;
  for (const std::size_t n : {std::size_t{3}, std::size_t{33}, std::size_t{131}}) {
    for (const double sigma : {0.5, 600.0, 60000.0}) {  // some weights are 0 with 600, and with 60000 eps is over 2^-7
      for (const int lanes : {0, 32}) {
        std::vector<double> q(deep, 0), keys = numbers(n * deep, 1, sigma);
        const std::vector<double> values = numbers(n * width, 2, 1);
        q[0] = 1.5;
        std::vector<double> scores(n), errors(n);
        for (std::size_t j = 0; j < n; ++j) scores[j] = keys[j * deep];
        std::sort(scores.begin(), scores.end());
        const double rises = lanes > 0 ? 0 : static_cast<double>(n - 1);
        // In 32 lanes 7 numbers meet at most 5 additions, n keys ceil(n / 32) + 4.
        const auto sum = [&](std::size_t terms) {
          const std::size_t depth = lanes > 0 ? std::min(terms - 1, (terms + 31) / 32 + 4) : terms - 1;
          return static_cast<double>(depth) * u;
        };
        for (std::size_t j = 0; j < n; ++j) {
          keys[j * deep] = scores[j];
          scores[j] *= 1.5 / std::sqrt(7.0);
          errors[j] = (sum(deep) + 7 * u) * slack * std::abs(scores[j]);
        }
        double total = 0, weight_error = 0;
        for (const double score : scores) total += std::exp(score - scores.back());
        std::vector<double> weights, spreads;
        for (std::size_t j = 0; j < n; ++j) {
          const double below = scores.back() - scores[j];
          weights.push_back(std::exp(-below) / total);
          spreads.push_back(weights[j] == 0 ? 0 : weights[j] * std::expm1(errors[j] + (2.25 * below + 4 + 4 * rises) * u));
          weight_error += spreads[j];
        }
        Row out, lse;
        attend(q, keys, values, width, {lanes, false}, out, lse);
        for (std::size_t i = 0; i < width; ++i) {
          double value = 0, magnitude = 0, error = 0;
          for (std::size_t j = 0; j < n; ++j) {
            value += weights[j] * values[j * width + i];
            magnitude += weights[j] * std::abs(values[j * width + i]);
          }
          for (std::size_t j = 0; j < n; ++j) error += spreads[j] * std::abs(values[j * width + i] - value);
          error = error / std::max(1 - weight_error, 0.5) + (sum(n) + (rises + 5) * u) * magnitude +
                  (sum(n) + rises * u) * std::abs(value);
          EXPECT_NEAR(out.value[i], value, 1e-13);
          EXPECT_NEAR(out.error[i], error * slack, error * 1e-6) << n << ' ' << sigma << ' ' << lanes;
        }
        const double merged = scores.back() + std::log(total);
        const double lse_error = weight_error + sum(n) + rises * u + 8.1 * u * std::max(1.0, std::log(total)) +
                                 4 * u * (std::abs(scores.back()) + std::abs(merged));
        EXPECT_NEAR(lse.value[0], merged, 1e-13 * std::max(1.0, std::abs(merged)));
        EXPECT_NEAR(lse.error[0], lse_error * slack, lse_error * 1e-6) << n << ' ' << sigma << ' ' << lanes;
      }
    }
  }
}

TEST(AttentionReference, RowsOfOtherRequestsDoNotMatter) {
  constexpr std::size_t deep = 6, width = 3;
  const std::vector<double> q = numbers(deep, 3, 1), keys = numbers(100 * deep, 4, 1), values = numbers(100 * width, 5, 1);
  Row alone, alone_lse, out, lse;
  attend(q, keys, values, width, {}, alone, alone_lse);
  for (const std::int64_t before : {1, 37, 64}) {
    HeadKeys head_keys(deep, before + 101);
    HeadValues head_values(width, before + 101);
    const auto add = [&](std::span<const double> key, std::span<const double> value, bool begins) {
      head_keys.add(key);
      head_values.add(value, begins);
    };
    const std::vector<double> none(deep, nan);
    for (std::int64_t j = 0; j < before; ++j) add(none, std::span(none).first(width), j == 0);
    for (std::size_t j = 0; j < 100; ++j) {
      add(std::span(keys).subspan(j * deep, deep), std::span(values).subspan(j * width, width), j == 0);
    }
    add(none, std::span(none).first(width), false);
    out.reset(width);
    lse.reset(1);
    HeadAttention(head_keys, head_values, {}).attend(q, before, 100, 0, out, lse);
    EXPECT_EQ(out.value, alone.value);
    EXPECT_EQ(out.error, alone.error);
    EXPECT_EQ(lse.value, alone_lse.value);
    EXPECT_EQ(lse.error, alone_lse.error);
  }
}

TEST(AttentionReference, GivesUpWhereNumbersEnd) {
  Row out, lse;
  const auto run = [&](const std::vector<double>& keys, const std::vector<double>& values) {
    attend(std::vector<double>{1}, keys, values, 2, {}, out, lse);
  };
  run({1, nan}, {1, 2, 3, 4});
  EXPECT_EQ(out.error, (std::vector<double>{infinity, infinity}));
  EXPECT_EQ(lse.error[0], infinity);
  // A value that is none stays in its column.
  run({1, 2}, {1, 2, nan, 4});
  EXPECT_EQ(out.error[0], infinity);
  EXPECT_LT(out.error[1], 1e-5);
  EXPECT_LT(lse.error[0], 1e-5);
}

}  // namespace
}  // namespace dcpcheck::reference::testing
