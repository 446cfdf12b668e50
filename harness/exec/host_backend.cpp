#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/views.hpp"
#include "harness/memory/sparse_memory.hpp"

namespace dcpcheck {
namespace {

// Memory of placements that are gone, for the next ones: mapping pages anew takes longer than filling them.
class Spare {
 public:
  // What must end flush is of that very size, other memory may be larger.
  HostMemory take(std::int64_t bytes, bool flush) {
    {
      const std::scoped_lock lock(guard_);
      const auto found = memory_.lower_bound({flush, bytes});
      if (found != memory_.end() && found->first.first == flush && found->first.second <= (flush ? 1 : 2) * bytes) {
        HostMemory memory = std::move(found->second);
        memory_.erase(found);
        held_ -= memory.size();
        return memory;
      }
    }
    return HostMemory(bytes, flush);
  }
  void give(HostMemory memory, bool flush) {
    const std::scoped_lock lock(guard_);
    if (held_ + memory.size() > kMost) return;
    held_ += memory.size();
    memory_.emplace(std::pair(flush, memory.size()), std::move(memory));
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{256} << 20;
  std::mutex guard_;
  std::multimap<std::pair<bool, std::int64_t>, HostMemory> memory_;
  std::int64_t held_ = 0;
};

class HostPlacement : public Placement {
 public:
  HostPlacement(Spare& spare, const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena)
      : spare_(spare), plan_(plan), inputs_(inputs), rank_(rank), arena_(arena) {
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.role != Role::in || arena.has(tensor.name)) continue;
      const Bytes& storage = inputs.get(tensor.name, rank);
      const auto bytes = static_cast<std::int64_t>(storage.size());
      HostMemory memory = spare.take(bytes, tensor.spec->bounded);
      if (!storage.empty()) std::memcpy(memory.data(), storage.data(), storage.size());
      addresses_[tensor.name] = memory.data();
      memory_.emplace(tensor.name, std::move(memory));
    }
  }

  ~HostPlacement() override {
    for (auto& [name, memory] : memory_) spare_.give(std::move(memory), plan_.tensor(name).spec->bounded);
  }
  HostPlacement(const HostPlacement&) = delete;
  HostPlacement& operator=(const HostPlacement&) = delete;

  LaunchError run(const Kernel& kernel, std::span<std::byte> image, int threads) override {
    touched_.clear();
    // Made anew for each run, so that nothing of it was touched before.
    std::vector<SparseMemory> sparse;
    std::map<std::string, std::byte*, std::less<>> addresses = addresses_;
    for (const ArenaBuffer& buffer : arena_.buffers) {
      if (!buffer.sparse()) continue;
      sparse.emplace_back(buffer).bring(image);
      addresses[buffer.name] = sparse.back().data();
    }
    const Launch launch{plan_, rank_, make_views(plan_, arena_, image.data(), addresses), threads, nullptr, image};
    LaunchError refused = kernel.host(launch);
    for (const SparseMemory& memory : sparse) {
      memory.fetch(image);
      for (Touched& page : memory.touched()) touched_.push_back(std::move(page));
    }
    return refused;
  }

  std::vector<Touched> touched() const override { return touched_; }

  std::vector<ChangedInput> changed_inputs() override {
    std::vector<ChangedInput> changed;
    for (const auto& [name, memory] : memory_) compare_input(name, inputs_.get(name, rank_), memory.data(), changed);
    return changed;
  }

 private:
  Spare& spare_;
  const Plan& plan_;
  const Inputs& inputs_;
  std::int64_t rank_;
  const ArenaLayout& arena_;
  std::map<std::string, HostMemory, std::less<>> memory_;
  std::map<std::string, std::byte*, std::less<>> addresses_;
  std::vector<Touched> touched_;
};

class HostBackend : public Backend {
 public:
  explicit HostBackend(std::vector<int> devices) : devices_(std::move(devices)) {}

  std::string name() const override { return "host"; }
  std::string description() const override { return std::to_string(std::thread::hardware_concurrency()) + " CPU threads"; }
  bool can_run(const Kernel& kernel) const override { return static_cast<bool>(kernel.host); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override {
    auto memory = std::make_shared<HostMemory>(bytes);
    return {memory, memory->data()};
  }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                   std::int64_t /*seat*/) override {
    return std::make_unique<HostPlacement>(spare_, plan, inputs, rank, arena);
  }
  std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const int device : devices_) names.push_back(std::to_string(device) + ": the CPU");
    return names;
  }
  std::string transport() const override { return devices_.size() > 1 ? "host" : "none"; }
  std::vector<Bytes> carry(std::span<const Parcel> parcels) override { return carry_through_host(parcels); }

 private:
  std::vector<int> devices_;
  Spare spare_;
};

}  // namespace

void compare_input(const std::string& name, const Bytes& placed, const std::byte* now, std::vector<ChangedInput>& changed) {
  if (placed.empty() || std::memcmp(now, placed.data(), placed.size()) == 0) return;
  ChangedInput found{name, 0, -1};
  for (std::size_t byte = 0; byte < placed.size(); ++byte) {
    if (now[byte] == placed[byte]) continue;
    if (found.bytes++ == 0) found.first = static_cast<std::int64_t>(byte);
  }
  changed.push_back(std::move(found));
}

std::unique_ptr<Backend> make_host_backend(const Spread& spread) {
  if (spread.transport == Spread::Transport::nccl)
    throw InputError("--transport nccl: NCCL moves data between GPUs, and the backend is host");
  return std::make_unique<HostBackend>(spread.devices.empty() ? std::vector<int>{0} : spread.devices);
}

#ifndef DCPCHECK_HAVE_CUDA
std::unique_ptr<Backend> make_cuda_backend(const Spread& /*spread*/) {
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
