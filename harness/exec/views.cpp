#include "harness/exec/views.hpp"

namespace dcpcheck {

std::map<std::string, View, std::less<>> make_views(const Plan& plan, const ArenaLayout& arena, std::byte* arena_base,
                                                    const std::map<std::string, std::byte*, std::less<>>& placed) {
  std::map<std::string, View, std::less<>> views;
  for (const TensorPlan& tensor : plan.tensors) {
    const auto found = placed.find(tensor.name);
    // An input that was not placed on its own is one that an output lies on.
    std::byte* storage = found != placed.end()
                             ? found->second
                             : arena_base + arena.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of).offset;
    views[tensor.name] = {storage + tensor.offset * size_of(tensor.dtype), tensor.dtype, tensor.shape, tensor.strides};
  }
  return views;
}

}  // namespace dcpcheck
