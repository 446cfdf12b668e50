#include "properties/ranges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <utility>

#include "harness/core/json.hpp"
#include "harness/core/recipe.hpp"

namespace dcpcheck {
namespace {

constexpr int kEdges = 4;            // the first bucket of lengths that is a boundary of blocks
constexpr std::int64_t kShort = 16;  // tokens, where there are no blocks to compare with

bool power_of_two(std::int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

std::vector<ValueBucket> integer_buckets(const Param& param) {
  // Past these, widths cost time and show nothing that narrower ones do not: beside the ends and what the op prefers.
  constexpr std::int64_t widest_power = 4096, widest_other = 200;
  std::vector<ValueBucket> out;
  std::set<std::int64_t> taken;
  const auto one = [&](std::string name, int weight, std::int64_t value) {
    if (taken.insert(value).second) out.push_back({std::move(name), weight, {value}});
  };
  one("min", 2, param.min);
  for (const ParamValue& value : param.prefer) {
    const std::int64_t preferred = std::get<std::int64_t>(value);
    one(std::to_string(preferred), 3, preferred);
  }
  one("max", 1, param.max);
  ValueBucket power{"2^k", 2, {}}, below{"2^k-1", 2, {}}, above{"2^k+1", 2, {}}, other{"other", 3, {}};
  const auto add = [&](ValueBucket& bucket, std::int64_t value) {
    if (value >= param.min && value <= param.max && taken.insert(value).second) bucket.values.emplace_back(value);
  };
  for (std::int64_t k = 1; k <= widest_power; k *= 2) add(power, k);
  for (std::int64_t k = 4; k <= widest_power; k *= 2) {
    add(below, k - 1);
    add(above, k + 1);
  }
  for (std::int64_t value = param.min; value <= std::min(param.max, param.min + widest_other); ++value) add(other, value);
  for (ValueBucket* bucket : {&power, &below, &above, &other}) {
    if (!bucket->values.empty()) out.push_back(std::move(*bucket));
  }
  return out;
}

std::vector<ValueBucket> number_buckets(const Param& param) {
  std::vector<ValueBucket> out;
  std::set<float> taken;
  const auto one = [&](std::string name, int weight, float value) {
    if (taken.insert(value).second) out.push_back({std::move(name), weight, {value}});
  };
  one("min", 1, param.least);
  for (const ParamValue& value : param.prefer) one(json::dump(double{std::get<float>(value)}), 3, std::get<float>(value));
  one("default", 3, std::get<float>(param.value));
  one("max", 1, param.most);
  ValueBucket other{"other", 1, {}};
  for (const float part : {0x1p-20f, 0x1p-10f, 0x1p-3f}) {
    const float value = param.least + (param.most - param.least) * part;
    if (taken.insert(value).second) other.values.emplace_back(value);
  }
  if (!other.values.empty()) out.push_back(std::move(other));
  return out;
}

using Kind = Recipe::Kind;

// The families of a float tensor, without its default. In a case of NaNs little can be seen, so those are drawn seldom.
struct KnownFamily {
  const char* name;
  int weight;
  std::vector<Kind> kinds;
  std::vector<std::string> recipes;
};

const std::vector<KnownFamily>& known_families() {
  static const std::vector<KnownFamily> families = {
      {"normal", 3, {Kind::normal, Kind::ladder}, {"normal:1", "normal:0.03", "ladder"}},
      {"zero", 1, {Kind::zero}, {"zero"}},
      {"signs", 1, {Kind::signs, Kind::constant}, {"signs", "constant:1", "constant:-0.5"}},
      {"critical", 2, {Kind::critical}, {"critical"}},
      {"large_mean", 1, {Kind::large_mean}, {"large_mean"}},
      {"extreme", 1, {Kind::saturating, Kind::tiny}, {"saturating", "tiny"}},
      {"mixed", 2, {Kind::mixed}, {"mixed"}},
      {"weights", 1, {Kind::weights, Kind::around}, {"weights", "around:2"}},
      {"special", 1, {Kind::special, Kind::nan}, {"special", "nan"}},
  };
  return families;
}

bool is_integer(const TensorSpec& input) {
  const std::string& dtype = input.dtype.text();
  return dtype == "'u8'" || dtype == "'i32'" || dtype == "'i64'";
}

bool divides_codes(const Op& op, const TensorSpec& input) {
  for (const TensorSpec& cache : op.tensors) {
    for (const Record& record : cache.records) {
      const bool has_field = std::any_of(record.fields.begin(), record.fields.end(),
                                         [&](const Field& field) { return field.scaled_by == input.name; });
      if (has_field) return true;
    }
  }
  return false;
}

bool is_lse(const Op& op, const TensorSpec& input) {
  const Kind own = parse_recipe(input.values).kind;
  if (own == Kind::lse || own == Kind::empty) return true;
  return std::any_of(op.tensors.begin(), op.tensors.end(),
                     [&](const TensorSpec& other) { return other.values == "partials:" + input.name; });
}

}  // namespace

int bucket_in(const Ranges& ranges, std::int64_t value) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (value >= ranges[i].least && value <= ranges[i].most) return static_cast<int>(i);
  }
  return -1;
}

std::vector<std::string> names_of(const Ranges& ranges) {
  std::vector<std::string> names;
  names.reserve(ranges.size());
  for (const Range& range : ranges) names.push_back(range.name);
  return names;
}

std::vector<ValueBucket> buckets_of(const Param& param) {
  switch (param.kind) {
    case Param::Kind::flag: return {{"false", 1, {false}}, {"true", 1, {true}}};
    case Param::Kind::integer: return integer_buckets(param);
    case Param::Kind::number: return number_buckets(param);
    case Param::Kind::choice: break;
  }
  std::vector<ValueBucket> out;
  for (const std::string& choice : param.choices) out.push_back({choice, 1, {choice}});
  return out;
}

int bucket_of(const Param& param, const std::vector<ValueBucket>& buckets, const ParamValue& value) {
  int other = -1;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const ValueBucket& bucket = buckets[i];
    if (std::find(bucket.values.begin(), bucket.values.end(), value) != bucket.values.end()) return static_cast<int>(i);
    if (bucket.name == "other") other = static_cast<int>(i);
    if (param.kind != Param::Kind::integer) continue;
    // Powers past those that are drawn.
    const std::int64_t number = std::get<std::int64_t>(value);
    if ((bucket.name == "2^k" && power_of_two(number)) || (bucket.name == "2^k-1" && number > 2 && power_of_two(number + 1)) ||
        (bucket.name == "2^k+1" && number > 4 && power_of_two(number - 1))) {
      return static_cast<int>(i);
    }
  }
  return other;
}

std::vector<RecipeFamily> recipe_families(const Op& op, const TensorSpec& input) {
  std::vector<RecipeFamily> out = {{"default", 4, {input.values}}};
  if (is_integer(input)) {
    out.push_back({"zero", 1, {"zero"}});
    out.push_back({"constant", 1, {"constant:1"}});
    return out;
  }
  if (divides_codes(op, input)) {
    out.push_back({"constant", 2, {"constant:0.25", "constant:1", "constant:0.003", "constant:64"}});
    return out;
  }
  for (const KnownFamily& family : known_families()) out.push_back({family.name, family.weight, family.recipes});
  if (is_lse(op, input)) {
    out.push_back({"lse", 3, {"lse"}});
    out.push_back({"empty", 2, {"empty"}});
  }
  for (std::size_t i = 1; i < out.size();) {
    auto& recipes = out[i].recipes;
    recipes.erase(std::remove(recipes.begin(), recipes.end(), input.values), recipes.end());
    if (recipes.empty()) {
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return out;
}

std::vector<RecipeFamily> padding_families() {
  return {{"default", 4, {"nan"}},
          {"normal", 2, {"normal:1"}},
          {"zero", 1, {"zero"}},
          {"extreme", 1, {"saturating", "tiny"}},
          {"special", 1, {"special"}}};
}

int family_of(const std::vector<RecipeFamily>& families, std::string_view recipe) {
  if (families.front().recipes.front() == recipe) return 0;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto& recipes = families[i].recipes;
    if (std::find(recipes.begin(), recipes.end(), recipe) != recipes.end()) return static_cast<int>(i);
  }
  const Kind kind = parse_recipe(recipe).kind;
  for (const KnownFamily& known : known_families()) {
    if (std::find(known.kinds.begin(), known.kinds.end(), kind) == known.kinds.end()) continue;
    for (std::size_t i = 0; i < families.size(); ++i) {
      if (families[i].name == known.name) return static_cast<int>(i);
    }
  }
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (families[i].name == "constant" && kind == Kind::constant) return static_cast<int>(i);
  }
  return -1;
}

const std::vector<std::string>& length_buckets(bool grouped) {
  static const std::vector<std::string> all = {"0", "1", "short", "long", "v", "v-1", "v+1", "B", "B-1", "B+1"};
  static const std::vector<std::string> few(all.begin(), all.begin() + kEdges);
  return grouped ? all : few;
}

int bucket_of(const Lengths& lengths, std::int64_t tokens) {
  if (tokens <= 1) return static_cast<int>(tokens);
  if (lengths.block == 0) return tokens <= kShort ? 2 : 3;
  const std::array<std::int64_t, 6> edges = {lengths.span,  lengths.span - 1,  lengths.span + 1,
                                             lengths.block, lengths.block - 1, lengths.block + 1};
  const auto edge = std::find(edges.begin(), edges.end(), tokens);
  if (edge != edges.end()) return kEdges + static_cast<int>(edge - edges.begin());
  return tokens < lengths.span ? 2 : 3;
}

std::vector<std::int64_t> lengths_in(const Lengths& lengths, int bucket) {
  const std::int64_t v = lengths.span, b = lengths.block;
  std::vector<std::int64_t> candidates;
  if (bucket < 2) return {bucket};
  if (bucket == 2) {
    for (std::int64_t tokens = 2; tokens <= (b == 0 ? kShort : std::min<std::int64_t>(v - 2, 128)); ++tokens) {
      candidates.push_back(tokens);
    }
  } else if (bucket == 3 && b == 0) {
    candidates = {17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 300};
  } else if (bucket == 3) {
    candidates = {2 * v - 1, 2 * v, 2 * v + 1, 3 * v - 1, 3 * v, 3 * v + 1, 4 * v + 7};
    for (std::int64_t tokens = v + 2; tokens < v + 32; tokens += 3) candidates.push_back(tokens);
  } else {
    candidates = {std::array<std::int64_t, 6>{v, v - 1, v + 1, b, b - 1, b + 1}[static_cast<std::size_t>(bucket - kEdges)]};
  }
  // Where B is small or W is 1, some boundaries are others, too.
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [&](std::int64_t tokens) { return tokens < 0 || bucket_of(lengths, tokens) != bucket; }),
                   candidates.end());
  return candidates;
}

}  // namespace dcpcheck
