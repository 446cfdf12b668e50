#include <cstring>
#include <thread>

#include "harness/core/error.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/views.hpp"

namespace dcpcheck {
namespace {

class HostPlacement : public Placement {
 public:
  HostPlacement(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena)
      : plan_(plan), inputs_(inputs), rank_(rank), arena_(arena) {
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.role != Role::in || lies_in_arena(tensor.name)) continue;
      const Bytes& storage = inputs.get(tensor.name, rank);
      HostMemory memory(static_cast<std::int64_t>(storage.size()), tensor.spec->bounded);
      if (!storage.empty()) std::memcpy(memory.data(), storage.data(), storage.size());
      addresses_[tensor.name] = memory.data();
      memory_.emplace(tensor.name, std::move(memory));
    }
  }

  LaunchError run(const Kernel& kernel, std::span<std::byte> image, int threads) override {
    Launch launch{plan_, rank_, make_views(plan_, arena_, image.data(), addresses_), threads, nullptr};
    return kernel.host(launch);
  }

  std::vector<std::string> changed_inputs() override {
    std::vector<std::string> changed;
    for (const auto& [name, memory] : memory_) {
      const Bytes& storage = inputs_.get(name, rank_);
      if (!storage.empty() && std::memcmp(memory.data(), storage.data(), storage.size()) != 0) changed.push_back(name);
    }
    return changed;
  }

 private:
  bool lies_in_arena(std::string_view name) const {
    for (const ArenaBuffer& buffer : arena_.buffers) {
      if (buffer.name == name) return true;
    }
    return false;
  }

  const Plan& plan_;
  const Inputs& inputs_;
  std::int64_t rank_;
  const ArenaLayout& arena_;
  std::map<std::string, HostMemory, std::less<>> memory_;
  std::map<std::string, std::byte*, std::less<>> addresses_;
};

class HostBackend : public Backend {
 public:
  std::string name() const override { return "host"; }
  std::string description() const override { return std::to_string(std::thread::hardware_concurrency()) + " CPU threads"; }
  bool can_run(const Kernel& kernel) const override { return static_cast<bool>(kernel.host); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override {
    auto memory = std::make_shared<HostMemory>(bytes);
    return {memory, memory->data()};
  }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank,
                                   const ArenaLayout& arena) override {
    return std::make_unique<HostPlacement>(plan, inputs, rank, arena);
  }
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

#ifndef DCPCHECK_HAVE_CUDA
std::unique_ptr<Backend> make_cuda_backend() {
  std::string why;
  cuda_available(&why);
  throw InputError("--backend cuda: " + why);
}

bool cuda_available(std::string* why_not) {
  if (why_not) *why_not = "this build has no CUDA backend: no nvcc was found when it was configured";
  return false;
}
#endif

}  // namespace dcpcheck
