// A launch of one variant of a manifest, worked out: everything that the CUDA driver is told, but for memory yet to be taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/adapters/manifest.hpp"
#include "harness/exec/kernel.hpp"

namespace dcpcheck {

// Device memory that a launch has for itself; its address goes to byte `offset` of parameter `parameter`.
struct Scratch {
  std::size_t parameter = 0, offset = 0;
  std::int64_t bytes = 0;
  bool zeroed = false;
  std::vector<std::byte> contents;  // not empty: what it holds, `bytes` of it
};

struct Invocation {
  const Variant* variant = nullptr;
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool clustered = false;
  std::int64_t shared_bytes = 0;
  std::vector<std::vector<std::byte>> parameters;  // as they lie in memory
  std::vector<Scratch> scratch;

  // There is nothing to do: CUDA has no empty grid.
  bool empty() const { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
};

// The launch of the manifest's first variant that fits; or why there is none: skipped where no variant fits, refused where the
// one that does asks for what CUDA does not have. Of tensors' memory only the addresses are looked at.
std::variant<Invocation, LaunchError> work_out(const Manifest& manifest, const Launch& launch);

// Axes of a tensor, a cache's counted as kernels are given it: {blocks, rows of one, bytes of a record}.
std::size_t axes_of(const TensorSpec& tensor);

// What CUDA has against these extents of a launch: half a sentence, or nothing.
std::string refusal_of_extents(const std::array<std::int64_t, 3>& grid, const std::array<std::int64_t, 3>& block,
                               const std::array<std::int64_t, 3>& cluster);

// The first of the variant's parameters that is not as many bytes as the entry takes, as a sentence; or nothing.
std::string parameters_mismatch(const Variant& variant, const std::vector<std::int64_t>& entry_takes);

}  // namespace dcpcheck
