// The element types that tensors and cache records are made of.
#pragma once

#include <cstdint>
#include <string_view>

namespace dcpcheck {

// fp64 is only what references from elsewhere say of a value: no tensor of an op has it.
enum class DType : std::uint8_t { u8, bf16, e4m3, fp32, i32, i64, fp64 };

// Bytes of one element.
constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::u8:
    case DType::e4m3: return 1;
    case DType::bf16: return 2;
    case DType::fp32:
    case DType::i32: return 4;
    case DType::i64:
    case DType::fp64: return 8;
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::u8: return "u8";
    case DType::bf16: return "bf16";
    case DType::e4m3: return "e4m3";
    case DType::fp32: return "fp32";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::fp64: return "fp64";
  }
  return "?";
}

// Whether elements are floats: values, of which some are NaN.
constexpr bool is_float(DType type) { return type == DType::bf16 || type == DType::fp32 || type == DType::e4m3; }

// The type of a tensor called `name`; throws InputError naming the known ones.
DType dtype_named(std::string_view name);

}  // namespace dcpcheck
