// Arrays in NumPy's file format, version 1.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/dtype.hpp"

namespace dcpcheck {

// How an element is kept in a file: "<u2" of bf16, "|u1" of e4m3 and u8 (their codes), "<f4", "<i4", "<i8", "<f8".
std::string_view npy_type(DType dtype);

// The file of an array, in C order: `bytes` are its elements, as many as `shape` says.
std::string npy_file(std::string_view type, const std::vector<std::int64_t>& shape, std::string_view bytes);

}  // namespace dcpcheck
