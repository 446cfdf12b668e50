#include "harness/core/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <numeric>
#include <set>

#include "harness/core/bf16.hpp"
#include "harness/core/dcp.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/e4m3.hpp"
#include "harness/core/error.hpp"
#include "harness/core/recipe.hpp"
#include "harness/core/values.hpp"

namespace dcpcheck {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

// A plan made by hand: two requests, four ranks of which two neighbours share a cache, mla and indexer.
class Made {
 public:
  Made() {
    Geometry& geometry = plan.value.geometry;
    plan.value.seed = 42;
    geometry.batch = {{5, 40}, {0, 3}};
    geometry.tp = 4;
    geometry.world_size = 2;
    geometry.interleave = 2;
    CacheGroup mla;
    mla.block_size = 16;
    mla.kernel_block_size = 8;
    geometry.caches["mla"] = mla;
    CacheGroup indexer = mla;
    indexer.slot_mapping = "same";
    geometry.caches["indexer"] = indexer;
    size();
  }

  // Works the sizes out anew after the geometry was changed.
  void size() {
    Geometry& geometry = plan.value.geometry;
    plan.live = 0;
    for (const Request& request : geometry.batch) plan.live += request.uncached;
    plan.tokens = plan.live + geometry.padding.tokens;
    plan.capacity = plan.tokens;
    for (const auto& [name, group] : geometry.caches) {
      std::int64_t columns = group.table_columns;
      std::int64_t blocks = 1 + group.spare_blocks;
      for (const Request& request : geometry.batch) {
        const std::int64_t needed = (request.cached + request.uncached + group.kernel_block_size - 1) / group.kernel_block_size;
        if (group.table_columns == 0) columns = std::max(columns, needed);
        blocks += needed;
      }
      plan.environment[name + ".block_size"] = group.block_size;
      plan.environment[name + ".kernel_block_size"] = group.kernel_block_size;
      plan.environment[name + ".table_columns"] = columns;
      plan.environment[name + ".blocks"] = blocks;
    }
  }

  CacheGroup& mla() { return plan.value.geometry.caches.at("mla"); }
  Padding& padding() { return plan.value.geometry.padding; }

  // An input of the plan, dense unless `stride` says otherwise. `first` is the op's expression for axis 0.
  TensorPlan& add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, const std::string& recipe,
                  const std::string& first = "n", std::int64_t stride = 0, std::int64_t offset = 0) {
    TensorSpec& spec = specs.emplace_back();
    spec.name = name.substr(0, name.find('.'));
    spec.per_group = name.find('.') != std::string::npos;
    if (!shape.empty()) spec.shape.emplace_back(first);
    TensorPlan tensor;
    tensor.spec = &spec;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.recipe = recipe;
    tensor.strides.assign(tensor.shape.size(), 1);
    for (std::size_t axis = tensor.shape.size(); axis-- > 1;)
      tensor.strides[axis - 1] = tensor.strides[axis] * tensor.shape[axis];
    if (stride != 0) tensor.strides.front() = stride;
    tensor.offset = offset;
    tensor.storage_elements = offset + (tensor.shape.empty() ? 1 : tensor.shape.front() * tensor.strides.front());
    plan.tensors.push_back(tensor);
    return plan.tensors.back();
  }

  Plan plan;
  std::deque<TensorSpec> specs;  // stay where they are
};

template <class T>
std::vector<T> words(const Bytes& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

std::vector<float> floats(const Bytes& bytes, DType dtype) {
  std::vector<float> out;
  if (dtype == DType::fp32) return words<float>(bytes);
  if (dtype == DType::bf16) {
    for (const std::uint16_t code : words<std::uint16_t>(bytes)) out.push_back(decode_bf16(code));
  } else {
    for (const std::uint8_t code : words<std::uint8_t>(bytes)) out.push_back(decode_e4m3(code));
  }
  return out;
}

// rows x columns values of `recipe`.
std::vector<float> drawn(const std::string& recipe, std::int64_t rows, std::int64_t columns, DType dtype = DType::bf16,
                         std::uint64_t seed = 42) {
  Made made;
  made.plan.value.seed = seed;
  made.add("x", dtype, {rows, columns}, recipe);
  return floats(make_inputs(made.plan).get("x", 0), dtype);
}

std::vector<float> row_of(const std::vector<float>& values, std::int64_t row, std::int64_t columns) {
  return {values.begin() + row * columns, values.begin() + (row + 1) * columns};
}

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<float>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const float value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::string digest(const Inputs& inputs) {
  Sha256 sha;
  for (const auto& [name, bytes] : inputs.shared) sha.add(std::string_view{name}).add(std::span<const std::byte>{bytes});
  for (const auto& rank : inputs.ranks) {
    for (const auto& [name, bytes] : rank) sha.add(std::string_view{name}).add(std::span<const std::byte>{bytes});
  }
  for (const auto& [name, ranks] : inputs.prefix) {
    for (const auto& records : ranks) {
      for (const auto& [slot, bytes] : records) sha.add(slot).add(std::span<const std::byte>(bytes));
    }
  }
  return sha.hex();
}

// --- recipes ---

TEST(Recipe, ParsesStrictly) {
  for (const char* good : {"normal:1",      "normal:0.03",   "normal:1e-3",   "ladder",           "large_mean",
                           "signs",         "zero",          "constant:-2.5", "constant:0",       "critical",
                           "saturating",    "tiny",          "mixed",         "special",          "nan",
                           "weights",       "around:0.3",    "unit_circle",   "positions",        "query_start_loc",
                           "idx_mapping",   "block_table",   "slots:mla",     "group:block_size", "group:kernel_block_size",
                           "group:sharded", "group:enabled", "sparse:8",      "below:256"}) {
    EXPECT_NO_THROW(check_recipe(good)) << good;
  }
  for (const char* bad : {"",           "normal",   "normal:",   "normal:x",   "normal:1 ",  "normal: 1",     "normal:+1",
                          "normal:1x",  "normal:0", "normal:-1", "normal:inf", "normal:nan", "constant:1e39", "constant:inf",
                          "constant",   "around:0", "around:-1", "ladder:1",   "zero:",      "Normal:1",      " zero",
                          "slots",      "slots:",   "group:",    "group:size", "gauss:1",    "normal:1:2",    "sparse:0",
                          "sparse:1.5", "below",    "below:-3"}) {
    EXPECT_THROW(check_recipe(bad), InputError) << bad;
  }
  for (const char* good : {"lse", "empty", "partials:x"}) EXPECT_NO_THROW(check_recipe(good)) << good;
  for (const char* bad : {"lse:1", "empty:", "partials", "partials:"}) EXPECT_THROW(check_recipe(bad), InputError) << bad;
  const std::string digest(64, '0');
  EXPECT_EQ(parse_recipe("stored:" + digest).argument, digest);
  for (const char* bad : {"stored", "stored:", "stored:00"}) EXPECT_THROW(check_recipe(bad), InputError) << bad;
  EXPECT_EQ(parse_recipe("normal:0.25").number, 0.25);
  EXPECT_EQ(parse_recipe("slots:mla").argument, "mla");
}

TEST(Recipe, SaysWhatIsWrong) {
  const auto message = [](const char* recipe) -> std::string {
    try {
      check_recipe(recipe);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("normal:x"), "'normal:x' is no recipe: 'x' is no finite number that fp32 can hold");
  EXPECT_EQ(message("ladder:1"), "'ladder:1' is no recipe: ladder takes nothing after it");
  EXPECT_THAT(message("gauss"), HasSubstr("known are normal, ladder"));
}

// --- values ---

TEST(Values, NormalHasItsMoments) {
  const std::vector<float> values = drawn("normal:0.5", 64, 1024, DType::fp32);
  EXPECT_NEAR(mean(values), 0, 0.01);
  EXPECT_NEAR(deviation(values), 0.5, 0.01);
  int far = 0;
  for (const float value : values) {
    ASSERT_LT(std::fabs(value), 2.5);
    far += std::fabs(value) > 1.0f ? 1 : 0;
  }
  EXPECT_NEAR(far / 65536.0, 0.0455, 0.006);  // past two sigma
}

// The first elements' bits, worked out apart from this code: what a seed gives may never change, or every golden file
// would.
TEST(Values, AreTheSameForever) {
  const auto bits = [](const std::string& recipe, std::int64_t columns) {
    std::vector<std::uint32_t> out;
    for (const float value : drawn(recipe, 1, columns, DType::fp32)) out.push_back(float_bits(value));
    return out;
  };
  EXPECT_THAT(bits("normal:1", 4), ElementsAre(0x3ec5ae76u, 0xbe354323u, 0xbf271151u, 0xbfb6fc0bu));
  EXPECT_THAT(bits("unit_circle", 2), ElementsAre(0xbf668aa9u, 0xbede9700u));
}

TEST(Values, RoundToTheDtype) {
  const std::vector<float> exact = drawn("normal:1", 8, 64, DType::fp32);
  const std::vector<float> bf16 = drawn("normal:1", 8, 64, DType::bf16);
  const std::vector<float> e4m3 = drawn("normal:1", 8, 64, DType::e4m3);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(bf16[i], decode_bf16(encode_bf16(exact[i])));
    ASSERT_EQ(e4m3[i], decode_e4m3(encode_e4m3(exact[i])));
  }
}

TEST(Values, DifferBySeedAndName) {
  EXPECT_NE(drawn("normal:1", 2, 8, DType::bf16, 1), drawn("normal:1", 2, 8, DType::bf16, 2));
  Made made;
  made.add("a", DType::bf16, {64}, "weights");
  made.add("b", DType::bf16, {64}, "weights");
  const Inputs inputs = make_inputs(made.plan);
  EXPECT_NE(inputs.get("a", 0), inputs.get("b", 0));
}

TEST(Values, Ladder) {
  const std::vector<float> values = drawn("ladder", 10, 4096, DType::fp32);
  const double sigmas[] = {1, 0.1, 0.03, 0.01, 1e-3};
  for (std::int64_t row = 0; row < 10; ++row) {
    EXPECT_NEAR(deviation(row_of(values, row, 4096)) / sigmas[row % 5], 1, 0.05) << row;
  }
}

TEST(Values, LargeMeanTinySaturating) {
  EXPECT_NEAR(mean(drawn("large_mean", 4, 1024)), 100, 0.2);
  EXPECT_NEAR(deviation(drawn("large_mean", 4, 1024, DType::fp32)), 1, 0.05);
  EXPECT_NEAR(deviation(drawn("tiny", 4, 1024)) / 1e-30, 1, 0.05);
  EXPECT_NEAR(deviation(drawn("saturating", 4, 1024)) / 1e4, 1, 0.05);
}

TEST(Values, Fixed) {
  EXPECT_THAT(drawn("zero", 2, 3), Each(0.0f));
  EXPECT_FALSE(std::signbit(drawn("zero", 1, 1)[0]));
  EXPECT_THAT(drawn("constant:-2.5", 2, 3), Each(-2.5f));
  for (const float value : drawn("nan", 2, 3)) EXPECT_TRUE(std::isnan(value));
}

TEST(Values, SignsSumToNothing) {
  for (const std::int64_t columns : {1, 2, 7, 128, 130, 512}) {
    const std::vector<float> values = drawn("signs", 6, columns);
    std::set<std::vector<float>> rows;
    for (std::int64_t row = 0; row < 6; ++row) {
      const std::vector<float> one = row_of(values, row, columns);
      for (const float value : one) ASSERT_EQ(std::fabs(value), 1.0f);
      ASSERT_EQ(std::fabs(std::accumulate(one.begin(), one.end(), 0.0f)), columns % 2 == 0 ? 0.0f : 1.0f) << columns;
      rows.insert(one);
    }
    if (columns >= 128) {
      EXPECT_EQ(rows.size(), 6u);
    }
  }
}

TEST(Values, CriticalTiles) {
  for (const DType dtype : {DType::bf16, DType::fp32, DType::e4m3}) {
    const float step = dtype == DType::bf16 ? 0x1p-7f : dtype == DType::fp32 ? 0x1p-23f : 0x1p-3f;
    const std::vector<float> values = drawn("critical", 16, 512, dtype);
    std::set<float> seen;
    for (std::size_t tile = 0; tile < values.size(); tile += 128) {
      float amax = 0;
      int large = 0, negative = 0;
      for (std::size_t i = tile; i < tile + 128; ++i) amax = std::max(amax, std::fabs(values[i]));
      for (std::size_t i = tile; i < tile + 128; ++i) {
        ASSERT_TRUE(std::fabs(values[i]) == 1.0f || std::fabs(values[i]) == amax);
        large += std::fabs(values[i]) == amax ? 1 : 0;
        negative += values[i] < 0 ? 1 : 0;
      }
      EXPECT_EQ(large, 16);
      EXPECT_GT(negative, 30);
      EXPECT_LT(negative, 98);
      seen.insert(amax);
    }
    EXPECT_THAT(seen, ElementsAre(1.75f - step, 1.75f, 1.75f + step));
  }
}

TEST(Values, MixedTakesAllKinds) {
  const std::vector<float> values = drawn("mixed", 12, 256, DType::fp32);
  int zero = 0, tiny = 0, large = 0, signs = 0;
  for (std::int64_t row = 0; row < 12; ++row) {
    const double sigma = deviation(row_of(values, row, 256));
    zero += sigma == 0 ? 1 : 0;
    tiny += sigma > 0 && sigma < 1e-20 ? 1 : 0;
    large += sigma > 1e3 ? 1 : 0;
    signs += sigma == 1 ? 1 : 0;
  }
  EXPECT_EQ(zero, 2);
  EXPECT_EQ(tiny, 2);
  EXPECT_EQ(large, 2);
  EXPECT_EQ(signs, 2);
}

TEST(Values, LsesAreOfAllKinds) {
  const std::vector<float> values = drawn("lse", 20, 400, DType::fp32);
  int ordinary = 0, below = 0, above = 0, same = 0, minus = 0, plus = 0, nans = 0;
  for (const float value : values) {
    nans += std::isnan(value) ? 1 : 0;
    minus += std::isinf(value) && value < 0 ? 1 : 0;
    plus += std::isinf(value) && value > 0 ? 1 : 0;
    below += std::isfinite(value) && value < -9000 ? 1 : 0;
    above += std::isfinite(value) && value > 200 ? 1 : 0;
    same += value == 2.5f ? 1 : 0;
    ordinary += std::fabs(value) < 30 && value != 2.5f ? 1 : 0;
  }
  // Sixteenths of 8000: 7, 2, 1, 2; and 4, of which half are -inf.
  EXPECT_NEAR(ordinary, 3500, 200);
  EXPECT_NEAR(below, 1000, 150);
  EXPECT_NEAR(above, 500, 100);
  EXPECT_NEAR(same, 1000, 150);
  EXPECT_NEAR(minus, 1000, 150);
  EXPECT_NEAR(plus, 500, 100);
  EXPECT_NEAR(nans, 500, 100);
  EXPECT_EQ(ordinary + below + above + same + minus + plus + nans, 8000);
  for (const float value : drawn("empty", 3, 50, DType::fp32)) EXPECT_FALSE(std::isfinite(value));
}

TEST(Inputs, PartialsAreFiniteWhereTheirLseIs) {
  Made made;
  made.add("out", DType::fp32, {50, 12}, "partials:lse");
  made.add("lse", DType::fp32, {50, 3}, "lse");
  const Inputs inputs = make_inputs(made.plan);
  const Bytes &outs = inputs.get("out", 0), &lses = inputs.get("lse", 0);
  int odd = 0, empty = 0;
  for (std::size_t i = 0; i < 600; ++i) {
    float out = 0, lse = 0;
    std::memcpy(&out, outs.data() + 4 * i, 4);
    std::memcpy(&lse, lses.data() + 4 * (i / 4), 4);
    ASSERT_TRUE(std::isfinite(out) || !std::isfinite(lse)) << i;
    empty += std::isfinite(lse) ? 0 : 1;
    odd += std::isfinite(out) ? 0 : 1;
  }
  EXPECT_GT(empty, 80);
  EXPECT_GT(odd, empty / 2);
  EXPECT_LT(odd, empty);
}

TEST(Inputs, PartialsNeedTheirLses) {
  for (const char* const recipe : {"partials:nothing", "partials:narrow", "partials:short"}) {
    Made made;
    made.add("out", DType::fp32, {5, 12}, recipe);
    made.add("narrow", DType::fp32, {5, 5}, "lse");
    made.add("short", DType::fp32, {4, 3}, "lse");
    EXPECT_THROW(make_inputs(made.plan), InputError) << recipe;
  }
}

TEST(Values, SpecialHasOneInEveryFourthRow) {
  const std::vector<float> values = drawn("special", 200, 33);
  int nans = 0, up = 0, down = 0;
  for (std::int64_t row = 0; row < 200; ++row) {
    int odd = 0;
    for (const float value : row_of(values, row, 33)) {
      odd += std::isfinite(value) ? 0 : 1;
      nans += std::isnan(value) ? 1 : 0;
      up += std::isinf(value) && value > 0 ? 1 : 0;
      down += std::isinf(value) && value < 0 ? 1 : 0;
    }
    ASSERT_EQ(odd, row % 4 == 0 ? 1 : 0) << row;
  }
  EXPECT_GT(nans, 5);
  EXPECT_GT(up, 5);
  EXPECT_GT(down, 5);
}

TEST(Values, WeightsAndAroundArePositive) {
  for (const float value : drawn("weights", 4, 1024)) ASSERT_GT(value, 0);
  EXPECT_NEAR(mean(drawn("weights", 4, 1024)), 1, 0.02);
  for (const DType dtype : {DType::bf16, DType::fp32, DType::e4m3}) {
    const std::vector<float> pairs = drawn("weights", 2000, 2, dtype);  // rows so narrow that chance would repeat
    for (std::size_t i = 0; i < pairs.size(); i += 2) ASSERT_NE(pairs[i], pairs[i + 1]);
  }
  for (const float value : drawn("around:0.3", 4, 256, DType::fp32)) {
    ASSERT_GT(value, 0.15f);
    ASSERT_LT(value, 0.45f);
  }
}

TEST(Values, UnitCircle) {
  const std::vector<float> values = drawn("unit_circle", 100, 10, DType::fp32);
  std::array<int, 4> quarters{};
  for (std::int64_t row = 0; row < 100; ++row) {
    const std::vector<float> one = row_of(values, row, 10);
    for (std::size_t i = 0; i < 5; ++i) {
      const double c = one[i];
      const double s = one[i + 5];
      EXPECT_NEAR(c * c + s * s, 1, 1e-6);
      ++quarters[(c < 0 ? 1u : 0u) + (s < 0 ? 2u : 0u)];
    }
  }
  for (const int count : quarters) EXPECT_NEAR(count, 125, 50);
  EXPECT_THROW(drawn("unit_circle", 1, 3), InputError);
}

TEST(Values, IntegersTakeOnlyWhatTheyHold) {
  Made made;
  made.add("x", DType::i32, {2, 2}, "constant:-7");
  EXPECT_THAT(words<std::int32_t>(make_inputs(made.plan).get("x", 0)), Each(-7));
  for (const char* recipe : {"normal:1", "constant:0.5", "constant:3e9"}) {
    made.plan.tensors[0].recipe = recipe;
    EXPECT_THROW(make_inputs(made.plan), InputError) << recipe;
  }
}

// --- layout, padding, threads ---

TEST(Inputs, StridesMoveElementsAndFillGaps) {
  Made dense, strided;
  dense.add("x", DType::bf16, {3, 4}, "normal:1");
  strided.add("x", DType::bf16, {3, 4}, "normal:1", "n", 6, 5);
  const auto tight = words<std::uint16_t>(make_inputs(dense.plan).get("x", 0));
  const auto wide = words<std::uint16_t>(make_inputs(strided.plan).get("x", 0));
  ASSERT_EQ(wide.size(), 23u);
  std::size_t elements = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const bool element = i >= 5 && (i - 5) % 6 < 4;
    if (element) {
      EXPECT_EQ(wide[i], tight[elements++]) << i;
    } else {
      EXPECT_EQ(wide[i], 0x7FC0) << i;
    }
  }
  EXPECT_EQ(elements, tight.size());
  Made integers;
  integers.add("t", DType::i32, {2, 1}, "constant:1", "n", 2);
  EXPECT_THAT(words<std::int32_t>(make_inputs(integers.plan).get("t", 0)), ElementsAre(1, 0x7F7F7F7F, 1, 0x7F7F7F7F));
}

TEST(Inputs, PaddingRowsHaveTheirOwnRecipe) {
  Made made, plain;
  made.padding().tokens = 2;
  made.padding().values = "constant:9";
  made.size();
  made.add("x", DType::bf16, {made.plan.tokens, 3}, "normal:1", "T");
  made.add("w", DType::bf16, {made.plan.tokens}, "normal:1");  // as long as the launch, but not of tokens
  plain.add("x", DType::bf16, {plain.plan.tokens, 3}, "normal:1", "T");
  const std::vector<float> padded = floats(make_inputs(made.plan).get("x", 0), DType::bf16);
  const std::vector<float> live = floats(make_inputs(plain.plan).get("x", 0), DType::bf16);
  ASSERT_EQ(padded.size(), live.size() + 6);
  EXPECT_TRUE(std::equal(live.begin(), live.end(), padded.begin()));  // padding changes no live row
  for (std::size_t i = live.size(); i < padded.size(); ++i) EXPECT_EQ(padded[i], 9.0f);
  for (const float value : floats(make_inputs(made.plan).get("w", 0), DType::bf16)) EXPECT_NE(value, 9.0f);
}

// [heads, T, …], heads apart by more than they hold: a row is a head's of a token.
TEST(Inputs, PaddingRowsOfATensorByHead) {
  Made made;
  made.padding().tokens = 2;
  made.padding().values = "constant:9";
  made.size();
  const std::int64_t tokens = made.plan.tokens, head = tokens * 3 + 5;
  made.add("x", DType::bf16, {4, tokens, 3}, "ladder", "heads", head, 7);
  made.specs.back().shape.emplace_back("T");
  const std::vector<float> got = floats(make_inputs(made.plan).get("x", 0), DType::bf16);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(4 * head + 7));
  const std::string one = digest(make_inputs(made.plan, 1));
  EXPECT_EQ(digest(make_inputs(made.plan, 3)), one);
  std::size_t gaps = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) - 7;
    if (at < 0 || at % head >= tokens * 3) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
      ++gaps;
      continue;
    }
    const std::int64_t token = at % head / 3, row = at / head * tokens + token;
    constexpr float kSigmas[] = {1, 0.1F, 0.03F, 0.01F, 1e-3F};
    if (token < made.plan.live) {
      EXPECT_LT(std::fabs(got[i]), 5 * kSigmas[row % 5]) << i;  // the recipes' rows are the same rows
    } else {
      EXPECT_EQ(got[i], 9.0F) << i;
    }
  }
  EXPECT_EQ(gaps, 7U + 4 * 5);
}

TEST(Inputs, PartialsOfPaddingTokensByRank) {
  Made made;
  made.padding().tokens = 3;
  made.size();
  const std::int64_t tokens = made.plan.tokens;
  made.add("out", DType::fp32, {2, tokens, 8}, "partials:lse", "W");
  made.specs.back().shape.emplace_back("T");
  made.add("lse", DType::fp32, {2, tokens, 2}, "normal:1", "W");
  made.specs.back().shape.emplace_back("T");
  const Inputs inputs = make_inputs(made.plan);
  const std::vector<float> outs = floats(inputs.get("out", 0), DType::fp32), lses = floats(inputs.get("lse", 0), DType::fp32);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const bool live = static_cast<std::int64_t>(i / 8) % tokens < made.plan.live;
    EXPECT_EQ(std::isfinite(outs[i]), live) << i;
    EXPECT_EQ(std::isfinite(lses[i / 4]), live) << i;
  }
}

TEST(Inputs, ThreadsChangeNothing) {
  Made made;
  made.padding().tokens = 300;
  made.size();
  made.add("x", DType::bf16, {made.plan.tokens, 513}, "mixed", "T", 520, 3);
  made.add("table", DType::fp32, {4096, 62}, "unit_circle");
  const std::string one = digest(make_inputs(made.plan, 1));
  for (const int threads : {2, 3, 8}) EXPECT_EQ(digest(make_inputs(made.plan, threads)), one);
  made.plan.value.seed ^= 1;
  EXPECT_NE(digest(make_inputs(made.plan, 1)), one);
}

TEST(Inputs, EmptyLaunch) {
  Made made;
  made.plan.value.geometry.batch.clear();
  made.size();
  made.add("x", DType::bf16, {0, 8}, "normal:1", "T");
  made.add("positions", DType::i64, {0}, "positions", "T");
  made.add("query_start_loc", DType::i32, {1}, "query_start_loc");
  made.add("block_table.mla", DType::i32, {0, 0}, "block_table");
  const Inputs inputs = make_inputs(made.plan);
  EXPECT_TRUE(inputs.get("x", 0).empty());
  EXPECT_THAT(words<std::int32_t>(inputs.get("query_start_loc", 0)), ElementsAre(0));
}

TEST(Inputs, UnknownNamesAreSaid) {
  const Inputs inputs = make_inputs(Made().plan);
  EXPECT_THROW(inputs.get("x", 0), HarnessError);
  EXPECT_THROW(inputs.get("x", 99), HarnessError);
}

// --- geometry ---

TEST(Geometry, PositionsAndStarts) {
  Made made;
  made.padding().tokens = 3;
  made.size();
  made.add("positions", DType::i64, {made.plan.tokens}, "positions", "T");
  made.add("query_start_loc", DType::i32, {3}, "query_start_loc");
  const auto positions = [&] { return words<std::int64_t>(make_inputs(made.plan).get("positions", 0)); };
  std::vector<std::int64_t> live = positions();
  ASSERT_EQ(live.size(), 46u);
  for (std::int64_t token = 0; token < 40; ++token) EXPECT_EQ(live[static_cast<std::size_t>(token)], 5 + token);
  for (std::int64_t token = 0; token < 3; ++token) EXPECT_EQ(live[static_cast<std::size_t>(40 + token)], token);
  for (std::size_t token = 43; token < 46; ++token) {
    EXPECT_GE(live[token], 0);
    EXPECT_LE(live[token], 44);
  }
  EXPECT_THAT(words<std::int32_t>(make_inputs(made.plan).get("query_start_loc", 0)), ElementsAre(0, 40, 43));
  made.padding().positions = "zero";
  EXPECT_EQ(positions().back(), 0);
  made.padding().positions = "stale";
  EXPECT_EQ(positions()[43], 45);
  made.plan.environment["max_position"] = std::int64_t{8192};
  EXPECT_EQ(positions()[43], 8192);
  EXPECT_EQ(positions()[44], 8193);
}

// Ids are given once, never block 0, never more than there are, and 0 where there is nothing to hold.
TEST(Geometry, BlockTable) {
  Made made;
  const auto table = block_table(made.plan, "mla");
  ASSERT_EQ(table.size(), 2u);
  const std::int64_t blocks = std::get<std::int64_t>(made.plan.environment.at("mla.blocks"));
  std::set<std::int64_t> ids;
  for (std::size_t request = 0; request < 2; ++request) {
    ASSERT_EQ(table[request].size(), 6u);
    // 45 and 3 tokens over W = 2, I = 2: rank 0 has 23 and 2 rows, of 8 a block.
    const std::size_t needed = request == 0 ? 3 : 1;
    for (std::size_t column = 0; column < 6; ++column) {
      const std::int64_t id = table[request][column];
      if (column >= needed) {
        EXPECT_EQ(id, 0);
        continue;
      }
      EXPECT_GE(id, 1);
      EXPECT_LT(id, blocks);
      EXPECT_TRUE(ids.insert(id).second);
    }
  }
  EXPECT_EQ(block_table(made.plan, "indexer"), table);  // "same"
  made.plan.value.seed = 43;
  EXPECT_NE(block_table(made.plan, "mla"), table);
  made.plan.environment["mla.blocks"] = std::int64_t{5};
  EXPECT_THROW(block_table(made.plan, "mla"), HarnessError);
}

// With no block to spare, and all needed, the ids are 1 to the last.
TEST(Geometry, BlockZeroIsNoOnes) {
  Made made;
  made.mla().slot_mapping = "replicated";
  made.mla().spare_blocks = 0;
  made.size();
  const std::int64_t blocks = std::get<std::int64_t>(made.plan.environment.at("mla.blocks"));
  std::set<std::int64_t> ids;
  for (const auto& row : block_table(made.plan, "mla")) ids.insert(row.begin(), row.end());
  ids.erase(0);  // columns that hold nothing
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()), blocks - 1);
  EXPECT_EQ(*ids.begin(), 1);
  EXPECT_EQ(*ids.rbegin(), blocks - 1);
}

// Over a DCP group, each token has one owner, at the slot that the formula gives.
TEST(Geometry, DcpSlots) {
  Made made;
  made.padding().tokens = 2;
  made.size();
  const auto table = block_table(made.plan, "mla");
  const dcp::Sharding sharding{16, 2, 2};
  std::vector<std::vector<std::int64_t>> slots;
  for (std::int64_t rank = 0; rank < 4; ++rank) slots.push_back(slots_of(made.plan, "mla", rank));
  EXPECT_EQ(slots[0], slots[2]);  // tp ranks 0 and 2 are both rank 0 of their DCP group
  EXPECT_EQ(slots[1], slots[3]);
  EXPECT_EQ(slots_of(made.plan, "indexer", 1), slots[1]);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const auto& own = slots[static_cast<std::size_t>(rank)];
    ASSERT_EQ(own.size(), 45u);
    std::set<std::int64_t> seen;
    for (std::int64_t token = 0; token < 43; ++token) {
      const std::int64_t request = token < 40 ? 0 : 1;
      const std::int64_t position = token < 40 ? 5 + token : token - 40;
      const std::int64_t slot = own[static_cast<std::size_t>(token)];
      if (position / 2 % 2 != rank) {
        EXPECT_EQ(slot, -1);
        continue;
      }
      const std::int64_t local = dcp::local_index(sharding, position);
      EXPECT_EQ(slot, table[static_cast<std::size_t>(request)][static_cast<std::size_t>(local / 8)] * 8 + local % 8);
      EXPECT_TRUE(seen.insert(slot).second);
    }
    EXPECT_EQ(own[43], -1);
    EXPECT_EQ(own[44], -1);
  }
}

TEST(Geometry, ReplicatedSlotsAreTheSameOnEveryRank) {
  Made made;
  made.mla().slot_mapping = "replicated";
  const auto table = block_table(made.plan, "mla");
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto slots = slots_of(made.plan, "mla", rank);
    for (std::int64_t token = 0; token < 40; ++token) {
      const std::int64_t position = 5 + token;
      EXPECT_EQ(slots[static_cast<std::size_t>(token)], table[0][static_cast<std::size_t>(position / 8)] * 8 + position % 8);
    }
  }
}

TEST(Geometry, ColumnsPastTheTableHaveNoSlot) {
  Made made;
  made.mla().slot_mapping = "replicated";
  made.mla().table_columns = 2;
  made.size();
  const auto slots = slots_of(made.plan, "mla", 0);
  for (std::int64_t token = 0; token < 40; ++token) {
    if (5 + token < 16) {
      EXPECT_GE(slots[static_cast<std::size_t>(token)], 8);
    } else {
      EXPECT_EQ(slots[static_cast<std::size_t>(token)], -1);
    }
  }
}

TEST(Geometry, PaddingSlots) {
  Made made;
  made.padding().tokens = 1;
  made.size();
  const auto last = [&](const char* slots) {
    made.padding().slots = slots;
    return slots_of(made.plan, "mla", 0).back();
  };
  EXPECT_EQ(last("-1"), -1);
  EXPECT_EQ(last("-block"), -8);
  EXPECT_EQ(last("int32_min"), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(last("int64_min"), int64_min);
}

TEST(Geometry, RandomSlots) {
  Made made;
  made.mla().slot_mapping = "random";
  made.mla().spare_blocks = 3;
  made.plan.value.geometry.batch = {{0, 1000}};
  made.padding().tokens = 1;
  made.size();
  const std::int64_t blocks = std::get<std::int64_t>(made.plan.environment.at("mla.blocks"));
  std::set<std::int64_t> used;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto slots = slots_of(made.plan, "mla", rank);
    std::set<std::int64_t> seen;
    std::int64_t negative = 0;
    for (std::size_t token = 0; token < 1000; ++token) {
      if (slots[token] < 0) {
        EXPECT_EQ(slots[token], -1);
        ++negative;
        continue;
      }
      EXPECT_LT(slots[token], blocks * 8);
      EXPECT_NE(slots[token], 7);  // the last of block 0
      EXPECT_TRUE(seen.insert(slots[token]).second);
      used.insert(slots[token] / 8);
    }
    EXPECT_NEAR(static_cast<double>(negative), 250, 70);
    EXPECT_EQ(slots.back(), -1);
    if (rank > 0) {
      EXPECT_NE(slots, slots_of(made.plan, "mla", 0));
    }
  }
  // All ranks together leave the same three blocks alone (those that 3000 draws would else have met), and use block 0.
  EXPECT_EQ(static_cast<std::int64_t>(used.size()), blocks - 3);
  EXPECT_TRUE(used.contains(0));
  EXPECT_EQ(slots_of(made.plan, "indexer", 2), slots_of(made.plan, "mla", 2));
}

TEST(Geometry, ExplicitSlotsAreTheCases) {
  Made made;
  made.mla().slot_mapping = "explicit";
  for (std::int64_t rank = 0; rank < 4; ++rank) made.mla().slots.emplace_back(43, 10 + rank);
  EXPECT_THAT(slots_of(made.plan, "mla", 3), Each(13));
  made.mla().slot_mapping = "none";
  EXPECT_THROW(slots_of(made.plan, "mla", 0), HarnessError);
  EXPECT_THROW(slots_of(made.plan, "other", 0), HarnessError);
}

TEST(Geometry, SlotsByRank) {
  Made made;
  TensorPlan& tensor = made.add("slot_mapping", DType::i64, {43}, "slots:mla", "T");
  made.specs.back().per_rank = true;
  const Inputs inputs = make_inputs(made.plan);
  EXPECT_TRUE(inputs.shared.empty());
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(words<std::int64_t>(inputs.get("slot_mapping", rank)), slots_of(made.plan, "mla", rank));
  }
  tensor.shape = {42};
  EXPECT_THROW(make_inputs(made.plan), InputError);
}

TEST(Geometry, TableRowsFollowIdxMapping) {
  Made made;
  made.plan.value.geometry.batch = {{0, 9}, {0, 30}, {4, 4}, {0, 1}, {0, 17}};
  made.size();
  made.add("block_table.mla", DType::i32, {5, 4}, "block_table", "R", 6, 1);
  const std::int64_t columns = std::get<std::int64_t>(made.plan.environment.at("mla.table_columns"));
  ASSERT_EQ(columns, 4);
  const auto table = block_table(made.plan, "mla");
  const auto rows = [&] { return words<std::int32_t>(make_inputs(made.plan).get("block_table.mla", 0)); };
  const auto same = [&](std::size_t row, std::size_t request) {
    const std::vector<std::int32_t> stored = rows();
    return std::equal(table[request].begin(), table[request].end(), stored.begin() + static_cast<std::ptrdiff_t>(1 + row * 6));
  };
  for (std::size_t request = 0; request < 5; ++request) EXPECT_TRUE(same(request, request));
  made.add("idx_mapping", DType::i32, {5}, "idx_mapping");
  const auto mapping = words<std::int32_t>(make_inputs(made.plan).get("idx_mapping", 0));
  std::vector<std::int32_t> sorted = mapping;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_THAT(sorted, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_NE(mapping, sorted);
  for (std::size_t request = 0; request < 5; ++request) EXPECT_TRUE(same(static_cast<std::size_t>(mapping[request]), request));
}

TEST(Geometry, GroupFieldsInTheOrderOfNames) {
  Made made;
  CacheGroup other;
  other.block_size = 32;
  other.kernel_block_size = 16;
  other.slot_mapping = "replicated";
  other.enabled = false;
  made.plan.value.geometry.caches["zebra"] = other;
  made.size();
  const std::string fields[] = {"block_size", "kernel_block_size", "sharded", "enabled"};
  for (const std::string& field : fields) made.add(field, DType::i32, {3}, "group:" + field);
  const Inputs inputs = make_inputs(made.plan);
  EXPECT_THAT(words<std::int32_t>(inputs.get("block_size", 0)), ElementsAre(16, 16, 32));
  EXPECT_THAT(words<std::int32_t>(inputs.get("kernel_block_size", 0)), ElementsAre(8, 8, 16));
  EXPECT_THAT(words<std::int32_t>(inputs.get("sharded", 0)), ElementsAre(1, 1, 0));  // "same" is as mla
  EXPECT_THAT(words<std::int32_t>(inputs.get("enabled", 0)), ElementsAre(1, 1, 0));
}

// --- the cached prefix ---

std::string text(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TensorPlan cache_plan(const TensorSpec& spec, const std::string& name, const std::string& group) {
  TensorPlan tensor;
  tensor.spec = &spec;
  tensor.name = name;
  tensor.role = Role::cache;
  tensor.cache.group = group;
  tensor.cache.planar = true;  // makes no difference: records are field after field
  tensor.cache.fields = {
      {"codes", DType::e4m3, 20, 0, "scale", 20}, {"scale", DType::fp32, 2, 0, "", 0}, {"rope", DType::bf16, 3, 0, "", 0}};
  tensor.cache.record_bytes = 34;
  return tensor;
}

TEST(Prefix, HoldsTheCachedTokensOnTheirOwners) {
  Made made;
  made.plan.value.geometry.batch = {{100, 4}, {0, 3}, {7, 0}};
  made.size();
  TensorSpec& spec = made.specs.emplace_back();
  made.plan.tensors.push_back(cache_plan(spec, "mla_cache", "mla"));
  made.plan.tensors.push_back(cache_plan(spec, "indexer_cache", "indexer"));
  const Inputs inputs = make_inputs(made.plan, 2);
  const auto& ranks = inputs.prefix.at("mla_cache");
  ASSERT_EQ(ranks.size(), 4u);
  const dcp::Sharding sharding{16, 2, 2};
  const auto table = block_table(made.plan, "mla");
  std::set<std::string> records;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto& own = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(static_cast<std::int64_t>(own.size()),
              dcp::local_length(sharding, 100, rank % 2) + dcp::local_length(sharding, 7, rank % 2));
    for (std::int64_t row = 0; row < dcp::local_length(sharding, 100, rank % 2); ++row) {
      EXPECT_TRUE(own.contains(table[0][static_cast<std::size_t>(row / 8)] * 8 + row % 8));
    }
    for (const auto& [slot, record] : own) {
      ASSERT_EQ(record.size(), 34u);
      records.insert(text(record));
      const auto bytes = words<std::uint8_t>(record);
      for (std::size_t i = 0; i < 20; ++i) EXPECT_NE(bytes[i] & 0x7F, 0x7F);
      for (const float scale : words<float>(Bytes(record.begin() + 20, record.begin() + 28))) {
        int exponent = 0;
        EXPECT_EQ(std::frexp(scale, &exponent), 0.5f);
        EXPECT_GE(exponent - 1, -8);
        EXPECT_LE(exponent - 1, -1);
      }
      for (const float value : floats(Bytes(record.begin() + 28, record.end()), DType::bf16)) EXPECT_LT(std::fabs(value), 5);
    }
  }
  EXPECT_EQ(records.size(), 107u);  // all differ; ranks 2 and 3 have what 0 and 1 have
  EXPECT_EQ(ranks[0], ranks[2]);
  EXPECT_EQ(inputs.prefix.at("indexer_cache")[0].size(), ranks[0].size());
  EXPECT_NE(inputs.prefix.at("indexer_cache")[0], ranks[0]);

  // Whoever holds it, a token's record is the same: the shards together are the whole cache.
  made.mla().slot_mapping = "replicated";
  const Inputs whole = make_inputs(made.plan);
  std::set<std::string> all;
  for (const auto& [slot, record] : whole.prefix.at("mla_cache")[1]) all.insert(text(record));
  EXPECT_EQ(all, records);

  made.mla().slot_mapping = "random";
  const Inputs none = make_inputs(made.plan);
  EXPECT_EQ(none.prefix.at("mla_cache").size(), 4u);
  for (const auto& own : none.prefix.at("mla_cache")) EXPECT_TRUE(own.empty());
}

// One element of each part of a row, wherever it lies in it.
TEST(Sparse, KeepsAsManyElementsAsItSays) {
  std::set<std::size_t> places;
  for (std::int64_t row = 0; row < 40; ++row) {
    RowFiller filler(7, "logits", DType::fp32, 21, parse_recipe("sparse:4"));
    std::array<float, 21> values{};
    filler.fill(row, reinterpret_cast<std::byte*>(values.data()));
    std::array<int, 4> kept{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      places.insert(i);
      for (std::size_t part = 0; part < 4; ++part)
        if (i >= 21 * part / 4 && i < 21 * (part + 1) / 4) ++kept[part];
    }
    EXPECT_THAT(kept, Each(1));
  }
  EXPECT_GT(places.size(), 18U);
  EXPECT_THROW(RowFiller(7, "x", DType::fp32, 3, parse_recipe("sparse:4")), InputError);
}

TEST(Below, FillsIntegersUpToItsBound) {
  RowFiller filler(7, "prompt", DType::i32, 4000, parse_recipe("below:256"));
  std::vector<std::int32_t> ids(4000);
  filler.fill(0, reinterpret_cast<std::byte*>(ids.data()));
  const std::set<std::int32_t> seen(ids.begin(), ids.end());
  EXPECT_EQ(seen.size(), 256U);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 255);
  EXPECT_THROW(RowFiller(7, "x", DType::fp32, 3, parse_recipe("below:4")), InputError);
  EXPECT_NO_THROW(RowFiller(7, "x", DType::u8, 3, parse_recipe("below:256")));
  EXPECT_THROW(RowFiller(7, "x", DType::u8, 3, parse_recipe("below:257")), InputError);
}

}  // namespace
}  // namespace dcpcheck
