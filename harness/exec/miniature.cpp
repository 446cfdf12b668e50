#include "harness/exec/miniature.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/core/bf16.hpp"

namespace dcpcheck::miniature {
namespace {

float bf16_at(const std::byte* at, std::int64_t index) {
  std::uint16_t code = 0;
  std::memcpy(&code, at + index * 2, sizeof code);
  return decode_bf16(code);
}

float fp32_at(const std::byte* at, std::int64_t index) {
  float value = 0;
  std::memcpy(&value, at + index * 4, sizeof value);
  return value;
}

}  // namespace

Bytes embed(const Plan& plan, const Inputs& inputs, std::string_view name, std::span<const std::int32_t> ids) {
  const TensorPlan& table = plan.tensor(name);
  const Bytes& from = inputs.get(name, 0);
  const auto row = static_cast<std::size_t>(table.columns() * size_of(table.dtype));
  Bytes out(ids.size() * row);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(std::max(ids[i], 0));
    if (row > 0) std::memcpy(out.data() + i * row, from.data() + id * row, row);
  }
  return out;
}

Bytes queries(const Plan& plan, const Inputs& inputs, std::span<const std::byte> q_c_out,
              std::span<const std::int64_t> positions, std::int64_t first_head, std::int64_t heads) {
  const Case& value = plan.value;
  const std::int64_t lora = value.integer("q_lora_rank"), nope = value.integer("qk_nope_head_dim");
  const std::int64_t rope = value.integer("qk_rope_head_dim"), half = rope / 2;
  const bool interleaved = value.flag("rope_interleaved");
  const TensorPlan* const table = plan.find("cos_sin_cache");
  const std::byte* const turns = table == nullptr ? nullptr : inputs.get("cos_sin_cache", 0).data();
  const bool wide = table != nullptr && table->dtype == DType::fp32;
  const auto turn = [&](std::int64_t position, std::int64_t i) {
    return wide ? fp32_at(turns, position * rope + i) : bf16_at(turns, position * rope + i);
  };
  const auto tokens = static_cast<std::int64_t>(positions.size());
  std::vector<float> out(static_cast<std::size_t>(tokens * heads * (nope + rope)));
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::byte* const row = q_c_out.data() + token * lora * 2;
    for (std::int64_t h = 0; h < heads; ++h) {
      float* const q = out.data() + (token * heads + h) * (nope + rope);
      const std::int64_t start = 97 * (first_head + h);
      for (std::int64_t d = 0; d < nope; ++d) q[d] = bf16_at(row, (start + d) % lora);
      const auto part = [&](std::int64_t d) { return bf16_at(row, (lora / 2 + start + d) % lora); };
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
        const float cosine = turn(positions[static_cast<std::size_t>(token)], i);
        const float sine = turn(positions[static_cast<std::size_t>(token)], half + i);
        const float x = part(first), y = part(second);
        q[nope + first] = x * cosine - y * sine;
        q[nope + second] = y * cosine + x * sine;
      }
    }
  }
  Bytes bytes(out.size() * sizeof(float));
  if (!out.empty()) std::memcpy(bytes.data(), out.data(), bytes.size());
  return bytes;
}

std::vector<float> logits(const Plan& plan, const Inputs& inputs, std::span<const float> outputs) {
  const std::byte* const table = inputs.get("logits", 0).data();
  const std::int64_t columns = plan.tensor("logits").columns();
  std::vector<float> all(static_cast<std::size_t>(vocabulary));
  for (std::int64_t id = 0; id < vocabulary; ++id) {
    float sum = 0;
    for (std::int64_t i = 0; i < columns; ++i)
      sum = sum + fp32_at(table, id * columns + i) * outputs[static_cast<std::size_t>(i)];
    all[static_cast<std::size_t>(id)] = sum;
  }
  return all;
}

std::int32_t greedy(std::span<const float> logits) {
  std::int32_t best = -1;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id])) continue;
    if (best < 0 || logits[id] > logits[static_cast<std::size_t>(best)]) best = static_cast<std::int32_t>(id);
  }
  return best;
}

}  // namespace dcpcheck::miniature
