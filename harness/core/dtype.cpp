#include "harness/core/dtype.hpp"

#include <string>

#include "harness/core/error.hpp"

namespace dcpcheck {

DType dtype_named(std::string_view name) {
  std::string known;
  for (const DType type : {DType::u8, DType::bf16, DType::e4m3, DType::fp32, DType::i32, DType::i64}) {
    if (name_of(type) == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(name_of(type));
  }
  throw InputError("'" + std::string(name) + "' is no dtype: one of " + known);
}

}  // namespace dcpcheck
