// For tests: kernels in fp32, in many legitimate orders of operations, and with faults. They store what a kernel would, by
// field; they are no kernels and know no slots. First what all have in common, then fused_norm_rope.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "harness/oracle/narrow.hpp"
#include "reference/decode.hpp"

namespace dcpcheck::reference::testing {

using Floats = std::vector<float>;

// Which of the right ways to compute.
struct Variation {
  static constexpr int sums = 7;
  int sum = 0;       // order of a sum
  int rsqrt = 0;     // -2 .. 2: ulps that rsqrt is off by; 3: 1 / sqrt
  int product = 0;   // which two of x, rstd, weight are multiplied first
  bool fma = false;  // contract a * b + c
  bool reciprocal_mean = false;
  int division_ulps = 0;  // contract division: full

  static Variation number(std::int64_t i) {
    Variation v;
    v.sum = static_cast<int>(i % sums);
    v.rsqrt = static_cast<int>(i / sums % 6) - 2;
    v.product = static_cast<int>(i / 5 % 3);
    v.fma = i / 3 % 2 == 0;
    v.reciprocal_mean = i / 11 % 2 == 0;
    v.division_ulps = static_cast<int>(i / 13 % 5) - 2;
    return v;
  }
};

enum class Fault : std::uint8_t {
  none,
  bf16_before_weight,
  mean_over_more,
  mean_over_less,
  truncation,
  no_eps,
  eps_of_other,
  rstd_in_bf16,
  last_dropped,
  weight_of_neighbour,
  pairing_swapped,
  sine_negated,
  largest_code_447,
  no_floor,
  exponent_floored,
  scale_of_neighbour,
  codes_truncated,
};

// The sum of x in the order that `how` says.
inline float sum_of(const Floats& x, int how) {
  Floats part;
  float total = 0;
  switch (how) {
    case 0:
      for (const float v : x) total += v;
      return total;
    case 1:
      for (std::size_t i = x.size(); i-- > 0;) total += x[i];
      return total;
    case 2:  // evens, then odds
      for (std::size_t i = 0; i < x.size(); i += 2) total += x[i];
      for (std::size_t i = 1; i < x.size(); i += 2) total += x[i];
      return total;
    case 3: part = x; break;  // a binary tree
    default: {                // running sums, then a tree
      const std::size_t lanes = how == 4 ? 128 : how == 5 ? 32 : 8;
      part.assign(lanes, 0);
      for (std::size_t i = 0; i < x.size(); ++i) part[i % lanes] += x[i];
    }
  }
  while (part.size() > 1) {
    const std::size_t half = (part.size() + 1) / 2;
    for (std::size_t i = 0; i + half < part.size(); ++i) part[i] += part[i + half];
    part.resize(half);
  }
  return part.empty() ? 0 : part[0];
}

// What a kernel stored for one token, field by field; scales among them.
using Stored = std::map<std::string, std::vector<std::byte>, std::less<>>;

// What all ops' test kernels compute with. `rank`: whose inputs they read.
class TestArithmetic {
 public:
  TestArithmetic(const Plan& plan, const Inputs& inputs, std::int64_t rank, Fault fault)
      : plan_(plan), inputs_(inputs), rank_(rank), fault_(fault), full_(chosen("division", "full")) {
    policy_ = {!chosen("e4m3_overflow", "nan"), chosen("nan", "clamp")};
    for (const TensorPlan& tensor : plan.tensors) {
      const bool numbers = tensor.dtype != DType::i64 && tensor.dtype != DType::i32;
      if (tensor.role == Role::in && tensor.shape.size() == 1 && numbers) {
        fixed_[tensor.name] = floats(Reader(plan, inputs, tensor.name, rank).all());
      }
    }
  }

 protected:
  bool chosen(const std::string& option, const std::string& choice) const {
    const auto found = plan_.value.contract.find(option);
    return found != plan_.value.contract.end() && found->second == choice;
  }
  static Floats floats(const std::vector<double>& x) { return {x.begin(), x.end()}; }
  static float bf16(float x) { return static_cast<float>(widen_bf16(narrow_bf16(x))); }
  static float step(float x, int ulps) {
    for (; ulps > 0; --ulps) x = std::nextafter(x, std::numeric_limits<float>::infinity());
    for (; ulps < 0; ++ulps) x = std::nextafter(x, -std::numeric_limits<float>::infinity());
    return x;
  }
  bool is(Fault fault) const { return fault_ == fault; }

  Floats row(std::string_view name, std::int64_t token) const {
    std::vector<double> x;
    Reader(plan_, inputs_, name, rank_).read_row(token, x);
    return floats(x);
  }
  Floats row(std::string_view name, std::int64_t i, std::int64_t j) const {
    std::vector<double> x;
    Reader(plan_, inputs_, name, rank_).read_row(i, j, x);
    return floats(x);
  }
  std::int64_t position(std::int64_t token) const { return Reader(plan_, inputs_, "positions", rank_).integer(token); }
  float divide(float a, float b) const {
    const float quotient = a / b;
    return full_ && std::isnormal(quotient) ? step(quotient, how_.division_ulps) : quotient;
  }
  float mean(float sum, std::size_t n) const {
    const auto count = static_cast<float>(n + (is(Fault::mean_over_more) ? 1 : 0) - (is(Fault::mean_over_less) ? 1 : 0));
    return how_.reciprocal_mean ? sum * (1 / count) : sum / count;
  }
  float rsqrt(float x) const {
    const float root = how_.rsqrt == 3 ? 1 / std::sqrt(x) : static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
    const float right = how_.rsqrt == 3 || !std::isnormal(root) ? root : step(root, how_.rsqrt);
    return is(Fault::rstd_in_bf16) ? bf16(right) : right;
  }
  float scaled(float x, float rstd, float weight) const {
    switch (how_.product) {
      case 0: return x * rstd * weight;
      case 1: return x * (rstd * weight);
      default: return x * weight * rstd;
    }
  }
  float times_plus(float a, float b, float c) const { return how_.fma ? std::fma(a, b, c) : a * b + c; }

  Floats rms_norm(const Floats& x, const Floats& weight, float eps, float other_eps, bool rounded) const {
    Floats squares;
    for (const float v : x) squares.push_back(v * v);
    if (is(Fault::last_dropped)) squares.back() = 0;
    const float used = is(Fault::no_eps) ? 0 : is(Fault::eps_of_other) ? other_eps : eps;
    const float rstd = rsqrt(mean(sum_of(squares, how_.sum), x.size()) + used);
    Floats y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float w = weight[is(Fault::weight_of_neighbour) ? (i + 1) % x.size() : i];
      y.push_back(rounded || is(Fault::bf16_before_weight) ? bf16(x[i] * rstd) * w : scaled(x[i], rstd, w));
    }
    return y;
  }

  void rope(Floats& x, std::string_view table, std::int64_t position, bool interleaved) const {
    const Floats angles = row(table, position);
    const std::size_t half = angles.size() / 2;
    if (is(Fault::pairing_swapped)) interleaved = !interleaved;
    for (std::size_t i = 0; i < half; ++i) {
      float &a = x[interleaved ? 2 * i : i], &b = x[interleaved ? 2 * i + 1 : i + half];
      const float c = angles[i], s = is(Fault::sine_negated) ? -angles[half + i] : angles[half + i], x0 = a, x1 = b;
      a = times_plus(x0, c, -(x1 * s));
      b = times_plus(x1, c, x0 * s);
    }
  }

  void put(const std::string& name, const void* data, std::size_t bytes) {
    auto& out = stored_[name];
    const auto* const first = static_cast<const std::byte*>(data);
    out.insert(out.end(), first, first + bytes);
  }
  void store(const std::string& name, const Floats& x) {
    for (const float v : x) {
      std::uint16_t code = narrow_bf16(v);
      if (is(Fault::truncation)) code = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16);
      put(name, &code, sizeof code);
    }
  }
  // Codes of x[begin, end) against `scale`.
  void store_codes(const std::string& name, const Floats& x, std::size_t begin, std::size_t end, float scale) {
    for (std::size_t i = begin; i < end; ++i) {
      const float quotient = divide(x[i], scale);
      std::uint8_t code = narrow_e4m3(quotient, policy_);
      if (is(Fault::codes_truncated) && std::isfinite(quotient) && std::abs(widen_e4m3(code)) > std::abs(quotient)) --code;
      put(name, &code, 1);
    }
  }
  Floats quantised(const Floats& x) const {
    Floats y = x;
    if (chosen("pre_quant_round", "bf16")) std::transform(x.begin(), x.end(), y.begin(), bf16);
    return y;
  }
  static float largest(const Floats& x, std::size_t begin, std::size_t end) {
    float amax = 0;
    for (std::size_t i = begin; i < end; ++i) amax = std::fmax(amax, std::abs(x[i]));
    return amax;
  }
  float power(float x) const {
    if (std::isinf(x)) return x;
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    return std::ldexp(1.0F, mantissa == 0.5F || is(Fault::exponent_floored) ? exponent - 1 : exponent);
  }
  // The UE8M0 scale of x, all of it one tile.
  float ue8m0_scale(const Floats& x) const {
    const float amax = largest(x, 0, x.size()), most = is(Fault::largest_code_447) ? 447 : 448;
    return power(divide(is(Fault::no_floor) ? amax : std::max(amax, 1e-4F), most));
  }

  const Plan& plan_;
  const Inputs& inputs_;
  std::int64_t rank_;
  Fault fault_;
  bool full_;
  E4m3Policy policy_;
  std::map<std::string, Floats, std::less<>> fixed_;  // weights and scalars
  Variation how_;
  Stored stored_;
};

class TestKernel : public TestArithmetic {
 public:
  TestKernel(const Plan& plan, const Inputs& inputs, Fault fault = Fault::none) : TestArithmetic(plan, inputs, 0, fault) {}

  Stored run(std::int64_t token, const Variation& how) {
    how_ = how;
    stored_.clear();
    const bool rounded = plan_.value.option("norm_round") == "bf16";
    const Case& value = plan_.value;
    store("q_c_out", rms_norm(row("q_c", token), fixed_["q_weight"], value.number("q_eps"), value.number("kv_eps"), rounded));
    const Floats kv = rms_norm(row("kv_c", token), fixed_["kv_weight"], value.number("kv_eps"), value.number("q_eps"), rounded);
    store("kv_c_out", kv);
    if (plan_.find("mla_cache") != nullptr) store_kv(kv);
    if (plan_.find("k_pe") != nullptr) {
      Floats key = row("k_pe", token);
      rope(key, "cos_sin_cache", position(token), value.flag("rope_interleaved"));
      store("k_pe_out", key);
      store_k_pe(key);
    }
    if (plan_.find("index_k") != nullptr) index(token);
    return stored_;
  }

 private:
  Floats layer_norm(const Floats& x) const {
    const Floats &weight = fixed_.at("index_weight"), &bias = fixed_.at("index_bias");
    const float average = mean(sum_of(x, how_.sum), x.size());
    Floats squares;
    for (const float v : x) squares.push_back((v - average) * (v - average));
    if (is(Fault::last_dropped)) squares.back() = 0;
    const float eps = is(Fault::no_eps) ? 0 : plan_.value.number(is(Fault::eps_of_other) ? "kv_eps" : "index_eps");
    const float rstd = rsqrt(mean(sum_of(squares, how_.sum), x.size()) + eps);
    Floats y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float c = x[i] - average, w = weight[is(Fault::weight_of_neighbour) ? (i + 1) % x.size() : i];
      y.push_back(how_.fma && how_.product == 0 ? std::fma(c * rstd, w, bias[i]) : scaled(c, rstd, w) + bias[i]);
    }
    return y;
  }

  float tile_scale(float amax) const {
    const std::string& rule = plan_.value.option("tile_scale");
    const float most = is(Fault::largest_code_447) ? 447 : 448;
    const float quotient = rule == "fp32_mul" ? amax * (1 / most) : divide(amax, most);
    if (is(Fault::no_floor)) return rule == "pow2" ? power(quotient) : quotient;
    return rule == "pow2" ? power(std::max(quotient, 1e-4F)) : std::max(quotient, std::numeric_limits<float>::min());
  }
  void store_kv(const Floats& kv) {
    const std::string& layout = plan_.value.choice("mla_layout");
    if (layout == "bf16") return store("mla_cache.kv_c", kv);
    const Floats values = quantised(kv);
    if (layout == "fp8") return store_codes("mla_cache.kv_c", values, 0, values.size(), fixed_["mla_scale"][0]);
    Floats scales;
    for (std::size_t i = 0; i < values.size(); i += 128) scales.push_back(tile_scale(largest(values, i, i + 128)));
    if (is(Fault::scale_of_neighbour)) std::rotate(scales.begin(), scales.begin() + 1, scales.end());
    for (std::size_t i = 0; i < values.size(); i += 128) store_codes("mla_cache.kv_c", values, i, i + 128, scales[i / 128]);
    put("mla_cache.tile_scales", scales.data(), scales.size() * sizeof(float));
  }
  void store_k_pe(const Floats& key) {
    if (plan_.find("mla_cache") == nullptr) return;
    if (plan_.value.choice("mla_layout") != "fp8") return store("mla_cache.k_pe", key);
    store_codes("mla_cache.k_pe", quantised(key), 0, key.size(), fixed_["mla_scale"][0]);
  }
  void index(std::int64_t token) {
    Floats key = layer_norm(row("index_k", token));
    if (plan_.value.option("pre_rope_round") == "bf16") std::transform(key.begin(), key.end(), key.begin(), bf16);
    if (plan_.find("index_cos_sin_cache") != nullptr) {
      rope(key, "index_cos_sin_cache", position(token), plan_.value.flag("index_rope_interleaved"));
    }
    if (plan_.find("index_k_out") != nullptr) store("index_k_out", key);
    if (plan_.find("indexer_cache") == nullptr) return;
    const Floats values = quantised(key);
    const float scale = ue8m0_scale(values);
    store_codes("indexer_cache.codes", values, 0, values.size(), scale);
    put("indexer_cache.scale", &scale, sizeof scale);
  }
};

}  // namespace dcpcheck::reference::testing
