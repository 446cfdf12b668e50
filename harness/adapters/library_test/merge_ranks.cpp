// A right kernel of merge_ranks: it can take its op's place in a pipeline.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dcpcheck_kernel.h"

namespace {

constexpr dcpcheck_option kOptions[] = {{"lse_base", "e"}};
constexpr const char* kTensors[] = {"partial_out", "partial_lse", "out", "lse"};
constexpr dcpcheck_description kDescription = {
    DCPCHECK_ABI_VERSION, DCPCHECK_HOST, "merge_ranks", "naive", nullptr, kOptions, 1, kTensors, 4, nullptr, 0};

}  // namespace

const dcpcheck_description* dcpcheck_describe() { return &kDescription; }

int dcpcheck_run(const dcpcheck_launch* launch) {
  const dcpcheck_tensor& parts = *dcpcheck_find_tensor(launch, "partial_out");
  const dcpcheck_tensor& part_lse = *dcpcheck_find_tensor(launch, "partial_lse");
  const dcpcheck_tensor& out = *dcpcheck_find_tensor(launch, "out");
  const dcpcheck_tensor& lse = *dcpcheck_find_tensor(launch, "lse");
  const std::int64_t ranks = dcpcheck_find_scalar(launch, "W")->integer;
  const std::int64_t heads = dcpcheck_find_scalar(launch, "heads")->integer;
  const std::int64_t width = dcpcheck_find_scalar(launch, "v_head_dim")->integer;
  for (std::int64_t token = 0; token < out.shape[0]; ++token) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto lse_of = [&](std::int64_t rank) {
        return static_cast<const float*>(part_lse.data)[rank * part_lse.strides[0] + token * part_lse.strides[1] + head];
      };
      float largest = -INFINITY;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        if (std::isfinite(lse_of(rank))) largest = std::fmax(largest, lse_of(rank));
      float* const to = static_cast<float*>(out.data) + token * out.strides[0] + head * width;
      float sum = 0;
      for (std::int64_t i = 0; i < width; ++i) to[i] = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        if (!std::isfinite(lse_of(rank))) continue;
        const float weight = std::exp(lse_of(rank) - largest);
        const float* const from =
            static_cast<const float*>(parts.data) + rank * parts.strides[0] + token * parts.strides[1] + head * width;
        sum += weight;
        for (std::int64_t i = 0; i < width; ++i) to[i] += weight * from[i];
      }
      for (std::int64_t i = 0; i < width && sum > 0; ++i) to[i] /= sum;
      static_cast<float*>(lse.data)[token * lse.strides[0] + head] = sum > 0 ? largest + std::log(sum) : -INFINITY;
    }
  }
  return DCPCHECK_OK;
}
