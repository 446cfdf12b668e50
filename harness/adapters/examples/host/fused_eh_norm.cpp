// An example of a kernel for dcpcheck: fused_eh_norm on the host, in C++, from the header alone.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dcpcheck_kernel.h"

namespace {

float from_bf16(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// To nearest, ties to even; NaN stays NaN.
std::uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  word += 0x7FFF + (word >> 16 & 1);
  return static_cast<std::uint16_t>(word >> 16);
}

// One of the two inputs, with what belongs to it.
struct Half {
  const std::uint16_t* rows;
  std::int64_t stride;
  const std::uint16_t* weight;
  float eps;
};

Half half_of(const dcpcheck_launch* launch, const char* rows, const char* weight, const char* eps) {
  const dcpcheck_tensor* const tensor = dcpcheck_find_tensor(launch, rows);
  return {static_cast<const std::uint16_t*>(tensor->data), tensor->strides[0],
          static_cast<const std::uint16_t*>(dcpcheck_find_tensor(launch, weight)->data),
          dcpcheck_find_scalar(launch, eps)->number};
}

void norm_row(const Half& half, std::int64_t token, std::int64_t width, bool zeroed, bool rounded, std::uint16_t* out) {
  const std::uint16_t* const row = half.rows + token * half.stride;
  const auto element = [&](std::int64_t i) { return zeroed ? 0.0F : from_bf16(row[i]); };
  float squares = 0;
  for (std::int64_t i = 0; i < width; ++i) squares += element(i) * element(i);
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(width) + half.eps);
  for (std::int64_t i = 0; i < width; ++i) {
    const float normed = element(i) * scale;
    out[i] = to_bf16((rounded ? from_bf16(to_bf16(normed)) : normed) * from_bf16(half.weight[i]));
  }
}

constexpr dcpcheck_option kOptions[] = {{"norm_round", "none"}, {"norm_round", "bf16"}, {"division", "rn"}};

constexpr dcpcheck_description kDescription = {
    DCPCHECK_ABI_VERSION,
    DCPCHECK_HOST,
    "fused_eh_norm",
    "fused_eh_norm example",
    "One thread, a row after the other.",
    kOptions,
    sizeof kOptions / sizeof *kOptions,
    nullptr,
    0,
    nullptr,
    0,
};

}  // namespace

const dcpcheck_description* dcpcheck_describe() { return &kDescription; }

int dcpcheck_run(const dcpcheck_launch* launch) {
  const Half embeds = half_of(launch, "embeds", "embeds_weight", "embeds_eps");
  const Half hidden = half_of(launch, "previous_hidden", "hidden_weight", "hidden_eps");
  const auto* const positions = static_cast<const std::int64_t*>(dcpcheck_find_tensor(launch, "positions")->data);
  const dcpcheck_tensor* const out = dcpcheck_find_tensor(launch, "out");
  const std::int64_t width = dcpcheck_find_scalar(launch, "hidden_size")->integer;
  const bool rounded = std::strcmp(dcpcheck_find_scalar(launch, "option.norm_round")->text, "bf16") == 0;
  for (std::int64_t token = 0; token < out->shape[0]; ++token) {
    auto* const row = static_cast<std::uint16_t*>(out->data) + token * out->strides[0];
    norm_row(embeds, token, width, positions[token] == 0, rounded, row);
    norm_row(hidden, token, width, false, rounded, row + width);
  }
  return DCPCHECK_OK;
}
