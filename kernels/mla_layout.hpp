// How the MLA cache keeps a token's record, for the kernels that write it and those that read it.
#pragma once

#include <cstdint>

namespace kernels {

enum class MlaLayout : std::uint8_t {
  bf16,        // kv_c | k_pe
  fp8,         // the same in e4m3, both divided by mla_scale
  fp8_ds_mla,  // 656 bytes: kv_c in 512 e4m3, 4 tiles of 128 | the tiles' fp32 scales | k_pe in 64 bf16
};

// How many codes of fp8_ds_mla share one scale.
inline constexpr std::int64_t kTile = 128;

}  // namespace kernels
