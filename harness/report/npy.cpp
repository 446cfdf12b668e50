#include "harness/report/npy.hpp"

namespace dcpcheck {

std::string_view npy_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::e4m3: return "|u1";
    case DType::bf16: return "<u2";
    case DType::fp32: return "<f4";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::fp64: return "<f8";
  }
  return "|V1";
}

std::string npy_file(std::string_view type, const std::vector<std::int64_t>& shape, std::string_view bytes) {
  std::string header = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t axis : shape) header += std::to_string(axis) + (shape.size() == 1 ? "," : ", ");
  header += "), }";
  // What comes before the elements ends in a newline, at a multiple of 64 bytes.
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  std::string file = "\x93NUMPY";
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file.append(header).append(bytes);
}

}  // namespace dcpcheck
