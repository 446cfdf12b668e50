#include "harness/adapters/builtin/make.hpp"

namespace dcpcheck::builtin {

const View& view(const Launch& launch, std::string_view name) {
  const auto found = launch.tensors.find(name);
  if (found == launch.tensors.end()) {
    throw HarnessError("a launch of " + launch.plan.op->name + " came without its tensor " + std::string(name));
  }
  return found->second;
}

void* address(const Launch& launch, std::string_view name) {
  return launch.plan.find(name) != nullptr ? view(launch, name).data : nullptr;
}

std::int64_t row_stride(const Launch& launch, std::string_view name) {
  return launch.plan.find(name) != nullptr ? view(launch, name).strides.at(0) : 0;
}

kernels::RopeTable rope_table(const Launch& launch, std::string_view name, std::string_view interleaved) {
  kernels::RopeTable table;
  if (launch.plan.find(name) == nullptr) return table;
  const View& found = view(launch, name);
  table.data = found.data;
  table.rows = found.shape.at(0);
  table.width = found.shape.at(1);
  table.bf16 = found.dtype == DType::bf16;
  table.interleaved = launch.plan.value.flag(interleaved);
  return table;
}

kernels::MlaLayout mla_layout(const Launch& launch) {
  const std::string& name = launch.plan.value.choice("mla_layout");
  if (name == "bf16") return kernels::MlaLayout::bf16;
  if (name == "fp8") return kernels::MlaLayout::fp8;
  if (name == "fp8_ds_mla") return kernels::MlaLayout::fp8_ds_mla;
  throw HarnessError("builtin:" + launch.plan.op->name + " knows no mla_layout " + name);
}

}  // namespace dcpcheck::builtin
