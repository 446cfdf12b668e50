// An example of a kernel of one's own op: insert_mxfp4 on the host. A cache's tensor is {kernel blocks, rows of one, bytes of a
// record}, its strides in bytes; a record is its fields one after the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dcpcheck_kernel.h"

namespace {

constexpr std::int64_t kTile = 32;

float from_bf16(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// The E2M1 code of a value that is already divided by its scale. Each bound is the middle between two values; of a middle
// itself the even code is right.
std::uint8_t encode(float value) {
  const float magnitude = std::fabs(value);
  std::uint8_t code = 0;
  if (magnitude > 0.25F) code = 1;
  if (magnitude >= 0.75F) code = 2;
  if (magnitude > 1.25F) code = 3;
  if (magnitude >= 1.75F) code = 4;
  if (magnitude > 2.5F) code = 5;
  if (magnitude >= 3.5F) code = 6;
  if (magnitude > 5.0F) code = 7;
  return std::signbit(value) ? code | 8 : code;
}

void store(const std::uint16_t* row, std::int64_t width, std::uint8_t* record) {
  std::uint8_t* const scales = record + width / 2;
  for (std::int64_t tile = 0; tile < width / kTile; ++tile) {
    const std::uint16_t* const from = row + tile * kTile;
    std::uint8_t* const codes = record + tile * kTile / 2;
    float largest = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < kTile; ++i) {
      largest = std::max(largest, std::fabs(from_bf16(from[i])));
      finite = finite && std::isfinite(from_bf16(from[i]));
    }
    if (!finite) {
      scales[tile] = 255;
      std::fill(codes, codes + kTile / 2, std::uint8_t{0});
      continue;
    }
    int exponent = -127;
    if (largest > 0) exponent = std::max(std::ilogb(largest) - 2, -127);
    scales[tile] = static_cast<std::uint8_t>(exponent + 127);
    for (std::int64_t i = 0; i < kTile; i += 2) {
      const std::uint8_t even = encode(std::ldexp(from_bf16(from[i]), -exponent));
      const std::uint8_t odd = encode(std::ldexp(from_bf16(from[i + 1]), -exponent));
      codes[i / 2] = static_cast<std::uint8_t>(even | odd << 4);
    }
  }
}

constexpr dcpcheck_description kDescription = {DCPCHECK_ABI_VERSION,
                                               DCPCHECK_HOST,
                                               "insert_mxfp4",
                                               "insert_mxfp4 example",
                                               "One thread, a row after the other.",
                                               nullptr,
                                               0,
                                               nullptr,
                                               0,
                                               nullptr,
                                               0};

}  // namespace

const dcpcheck_description* dcpcheck_describe() { return &kDescription; }

int dcpcheck_run(const dcpcheck_launch* launch) {
  const dcpcheck_tensor* const rows = dcpcheck_find_tensor(launch, "rows");
  const dcpcheck_tensor* const cache = dcpcheck_find_tensor(launch, "kv_cache");
  const auto* const slots = static_cast<const std::int64_t*>(dcpcheck_find_tensor(launch, "slot_mapping")->data);
  for (std::int64_t token = 0; token < rows->shape[0]; ++token) {
    const std::int64_t slot = slots[token];
    if (slot < 0) continue;
    store(static_cast<const std::uint16_t*>(rows->data) + token * rows->strides[0], rows->shape[1],
          static_cast<std::uint8_t*>(cache->data) + slot / cache->shape[1] * cache->strides[0] +
              slot % cache->shape[1] * cache->strides[1]);
  }
  return DCPCHECK_OK;
}
