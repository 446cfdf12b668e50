#include "harness/exec/divergence.hpp"

#include <cstring>

#include "harness/core/digest.hpp"
#include "harness/exec/launch.hpp"
#include "harness/exec/portable.hpp"

namespace dcpcheck {
namespace {

struct Left {
  std::string digest;
  Bytes elements;  // of all spans that must be written, one after the other
};

std::optional<Left> left_by(const Plan& plan, const Inputs& inputs, const ArenaLayout& arena, const Kernel& kernel,
                            std::int64_t rank, const std::string& buffer, Backend& backend, int threads) {
  if (!backend.can_run(kernel)) return std::nullopt;
  LaunchMemory memory(backend);
  RankLaunch launch(plan, arena, kernel, backend, memory, rank, rank, threads);
  const Side side{&inputs, {}};
  if (!launch.run(side, side).empty()) return std::nullopt;
  Left left{launch.digests().at(buffer), {}};
  launch.each_written(buffer, [&](const Span&, std::span<const std::byte> bytes) {
    left.elements.insert(left.elements.end(), bytes.begin(), bytes.end());
  });
  return left;
}

Left canonical(const Plan& plan, const Inputs& inputs, const ArenaLayout& arena, const TensorPlan& tensor,
               const std::vector<Span>& spans, const Expected& expected, std::int64_t rank) {
  Left left;
  const ArenaBuffer& buffer = arena.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of);
  const HostMemory image(arena.bytes);
  for (const Span& span : spans) {
    if (span.duty != Duty::must) continue;
    const Bytes bytes = canonical_bytes(plan, tensor, span, expected, inputs, rank);
    if (!bytes.empty()) std::memcpy(image.data() + buffer.place(span.begin), bytes.data(), bytes.size());
    left.elements.insert(left.elements.end(), bytes.begin(), bytes.end());
  }
  left.digest = digest_buffer(tensor, buffer, spans, {image.data(), image.data(), image.data(), image.data()});
  return left;
}

std::optional<Divergence> compare(const TensorPlan& tensor, const std::vector<Span>& spans, const Bytes& was, const Bytes& is) {
  Divergence first;
  std::size_t at = 0;
  for (const Span& span : spans) {
    if (span.duty != Duty::must) continue;
    const FieldPlan* field = tensor.role == Role::cache ? &tensor.cache.fields[static_cast<std::size_t>(span.field)] : nullptr;
    const DType dtype = field == nullptr ? tensor.dtype : field->dtype;
    const auto size = static_cast<std::size_t>(size_of(dtype));
    const auto bytes = static_cast<std::size_t>(span.end - span.begin);
    const auto from = static_cast<std::ptrdiff_t>(at), to = static_cast<std::ptrdiff_t>(at + bytes);
    Bytes a(was.begin() + from, was.begin() + to), b(is.begin() + from, is.begin() + to);
    canonicalise_nans(a, dtype);  // as digests do
    canonicalise_nans(b, dtype);
    at += bytes;
    for (std::size_t i = 0; i < bytes; i += size) {
      if (std::memcmp(&a[i], &b[i], size) == 0) continue;
      const std::int64_t column = span.column + static_cast<std::int64_t>(i / size);
      const std::int64_t token = element_token(tensor, span, column);
      if (first.count++ > 0 && token >= first.token) continue;
      first.token = token;
      first.index = element_index(tensor, span, column);
      first.field = field == nullptr ? "" : field->name;
      first.was = describe_code(&a[i], dtype);
      first.is = describe_code(&b[i], dtype);
    }
  }
  if (first.count == 0) return std::nullopt;
  return first;
}

}  // namespace

std::optional<Divergence> first_divergence(Prepared& prepared, std::int64_t rank, const std::string& buffer,
                                           const std::string& digest, const std::vector<const Kernel*>& others,
                                           const Kernel& now, Backend& backend, const RunOptions& options) {
  const Plan& plan = prepared.plan;
  const Inputs& inputs = prepared.inputs;
  const TensorPlan* const tensor = plan.find(buffer);
  if (tensor == nullptr || tensor->role == Role::in) return std::nullopt;
  const ArenaLayout arena = arena_layout(plan);
  const std::vector<Span> spans = write_set(plan, *tensor, inputs, rank);
  std::optional<Left> was =
      canonical(plan, inputs, arena, *tensor, spans, expected_on(prepared, rank, now.lanes, options.threads), rank);
  for (std::size_t i = 0; i < others.size() && (!was || was->digest != digest); ++i) {
    check_interrupted(options);
    was = left_by(plan, inputs, arena, *others[i], rank, buffer, backend, options.threads);
  }
  if (!was || was->digest != digest) return std::nullopt;
  const std::optional<Left> is = left_by(plan, inputs, arena, now, rank, buffer, backend, options.threads);
  if (!is || is->elements.size() != was->elements.size()) return std::nullopt;
  return compare(*tensor, spans, was->elements, is->elements);
}

}  // namespace dcpcheck
