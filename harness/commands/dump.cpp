#include "harness/commands/dump.hpp"

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {

void check_dump(const NamedCase& named) {
  const Op& op = *named.op;
  if (!op.pipeline.empty())
    throw InputError(named.reference + ": " + op.name + " is many launches, of " + text::list(op.pipeline) +
                     ": dump takes a case of one of them");
  for (const auto& [name, group] : named.file.value.geometry.caches)
    if (group.sparse)
      throw InputError(named.reference + ": /case/geometry/caches/" + name +
                       "/sparse is true, but dump takes no case whose cache has addresses without memory");
}

Prepared prepare_dump(const Context& context, const NamedCase& named, const RunSettings& settings) {
  check_dump(named);
  const Op& op = *named.op;
  return prepare(op, context.references.at(op.name), named.file.value, settings.memory, settings.threads, named.reference);
}

std::vector<std::int64_t> dense_shape(const TensorPlan& tensor) {
  if (tensor.cache.group.empty()) return tensor.shape;
  return {tensor.cache.blocks, tensor.cache.block_stride};
}

std::string dense_elements(const TensorPlan& tensor, const std::byte* storage) {
  if (!tensor.cache.group.empty()) return {reinterpret_cast<const char*>(storage), static_cast<std::size_t>(tensor.bytes())};
  const std::int64_t size = size_of(tensor.dtype);
  const std::int64_t rows = tensor.rows();
  // Only axis 0 is ever strided: a row lies in one piece.
  const std::int64_t row_bytes = tensor.columns() * size;
  const std::int64_t stride = tensor.shape.empty() ? 0 : tensor.strides.front() * size;
  std::string out;
  out.reserve(static_cast<std::size_t>(rows * row_bytes));
  for (std::int64_t row = 0; row < rows; ++row)
    out.append(reinterpret_cast<const char*>(storage) + tensor.offset * size + row * stride,
               static_cast<std::size_t>(row_bytes));
  return out;
}

json::Value case_document(const NamedCase& named) {
  json::Object document{{"schema", "dcpcheck.case/1"}};
  if (!named.file.name.empty()) document.emplace_back("name", named.file.name);
  if (!named.file.source.empty()) document.emplace_back("source", named.file.source);
  document.emplace_back("case", case_to_json(*named.op, named.file.value));
  return document;
}

}  // namespace dcpcheck
