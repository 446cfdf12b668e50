// The CUDA backend: a stream a placement, the arena moved through pinned memory, one launch per op and rank.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/cuda_driver.hpp"
#include "harness/exec/cuda_sparse.cuh"
#include "harness/exec/nccl_transport.hpp"
#include "harness/exec/views.hpp"

namespace dcpcheck {
namespace {

// Device memory whose last byte is the last of its mapping; what follows is reserved and never mapped.
class FlushMemory {
 public:
  FlushMemory(const Driver& driver, int device, std::int64_t bytes) : driver_(driver) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    std::size_t unit = 0;
    driver.check(driver.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
    mapped_ = (static_cast<std::size_t>(bytes) + unit - 1) / unit * unit;
    reserved_ = mapped_ + unit;
    driver.check(driver.reserve(&base_, reserved_, 0, 0, 0), "cuMemAddressReserve");
    try {
      CUmemGenericAllocationHandle handle{};
      driver.check(driver.create(&handle, mapped_, &properties, 0), "cuMemCreate");
      const CUresult status = driver.map(base_, mapped_, 0, handle, 0);
      driver.check(driver.release(handle), "cuMemRelease");  // the mapping keeps the memory
      driver.check(status, "cuMemMap");
      is_mapped_ = true;
      CUmemAccessDesc access{};
      access.location = properties.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      driver.check(driver.set_access(base_, mapped_, &access, 1), "cuMemSetAccess");
    } catch (...) {
      release();
      throw;
    }
  }
  ~FlushMemory() { release(); }
  FlushMemory(const FlushMemory&) = delete;
  FlushMemory& operator=(const FlushMemory&) = delete;

  std::size_t mapped() const { return mapped_; }
  // Where `bytes` bytes start that end flush.
  std::byte* flush(std::int64_t bytes) const {
    return reinterpret_cast<std::byte*>(base_ + mapped_ - static_cast<std::size_t>(bytes));
  }

 private:
  void release() {
    // A destructor cannot throw; a driver that fails here has failed before, in a call that is checked.
    if (is_mapped_) static_cast<void>(driver_.unmap(base_, mapped_));
    if (base_) static_cast<void>(driver_.free_address(base_, reserved_));
    base_ = 0;
    is_mapped_ = false;
  }

  const Driver& driver_;
  CUdeviceptr base_ = 0;
  std::size_t mapped_ = 0, reserved_ = 0;
  bool is_mapped_ = false;
};

// What every placement on a device shares: several threads may have one each.
class Device {
 public:
  explicit Device(int index) : index_(index) {
    choose();
    cudaDeviceProp properties{};
    DCPCHECK_CUDA_CALL(cudaGetDeviceProperties(&properties, index));
    name_ = properties.name;
    // Freed memory stays in the pool: cases follow one another, and each asks for much the same.
    cudaMemPool_t pool = nullptr;
    DCPCHECK_CUDA_CALL(cudaDeviceGetDefaultMemPool(&pool, index));
    std::uint64_t keep = UINT64_MAX;
    DCPCHECK_CUDA_CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  ~Device() {
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  // Makes it the one that this thread's calls are about.
  void choose() const { DCPCHECK_CUDA_CALL(cudaSetDevice(index_)); }
  const Driver& driver() const { return driver_; }
  // To be held while a kernel is launched: how much shared memory it may have is set for the whole process just before.
  std::mutex& launching() { return launching_; }

  std::unique_ptr<FlushMemory> take(std::int64_t bytes) {
    const std::scoped_lock lock(guard_);
    auto found = spare_.lower_bound(static_cast<std::size_t>(bytes));
    if (found == spare_.end() || found->first > 2 * static_cast<std::size_t>(bytes) + (std::size_t{4} << 20)) {
      return std::make_unique<FlushMemory>(driver_, index_, std::max<std::int64_t>(bytes, 1));
    }
    auto memory = std::move(found->second);
    spare_.erase(found);
    return memory;
  }
  void give(std::unique_ptr<FlushMemory> memory) {
    const std::scoped_lock lock(guard_);
    const std::size_t mapped = memory->mapped();
    spare_.emplace(mapped, std::move(memory));
  }

  cudaStream_t take_stream() {
    const std::scoped_lock lock(guard_);
    cudaStream_t stream = nullptr;
    if (streams_.empty()) {
      DCPCHECK_CUDA_CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    } else {
      stream = streams_.back();
      streams_.pop_back();
    }
    return stream;
  }
  void give_stream(cudaStream_t stream) {
    const std::scoped_lock lock(guard_);
    streams_.push_back(stream);
  }

 private:
  int index_ = 0;
  std::string name_;
  Driver driver_;
  std::mutex guard_, launching_;
  // Of placements that are gone; making either takes long.
  std::multimap<std::size_t, std::unique_ptr<FlushMemory>> spare_;  // by mapped size
  std::vector<cudaStream_t> streams_;
};

class CudaPlacement : public Placement {
 public:
  CudaPlacement(Device& device, const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena)
      : device_(device), plan_(plan), inputs_(inputs), rank_(rank), arena_(arena) {
    device_.choose();
    stream_ = device_.take_stream();
    try {
      arena_base_ = allocate(arena.bytes);
      for (const ArenaBuffer& buffer : arena.buffers) {
        if (buffer.sparse()) sparse_.push_back(std::make_unique<SparseDeviceMemory>(device.driver(), device.index(), buffer));
      }
      for (const TensorPlan& tensor : plan.tensors) {
        if (tensor.role != Role::in || arena.has(tensor.name)) continue;
        const Bytes& storage = inputs.get(tensor.name, rank);
        const auto bytes = static_cast<std::int64_t>(storage.size());
        std::byte* address = nullptr;
        if (tensor.spec->bounded) {
          flush_.push_back(device.take(bytes));
          address = flush_.back()->flush(bytes);
        } else {
          address = allocate(bytes);
        }
        if (bytes > 0) {
          DCPCHECK_CUDA_CALL(cudaMemcpyAsync(address, storage.data(), storage.size(), cudaMemcpyHostToDevice, stream_));
        }
        addresses_[tensor.name] = address;
      }
    } catch (...) {
      release();
      throw;
    }
  }
  ~CudaPlacement() override { release(); }

  LaunchError run(const Kernel& kernel, std::span<std::byte> image, int threads) override {
    device_.choose();
    DCPCHECK_CUDA_CALL(cudaMemcpyAsync(arena_base_, image.data(), image.size(), cudaMemcpyHostToDevice, stream_));
    auto addresses = addresses_;
    for (const auto& memory : sparse_) {
      memory->bring(image, stream_);
      addresses[memory->name()] = memory->data();
    }
    const Launch launch{plan_,   rank_,   make_views(plan_, arena_, arena_base_, addresses),
                        threads, stream_, {arena_base_, image.size()}};
    const LaunchError refused = plan_.value.graph ? run_graph(kernel, launch) : queue(kernel, launch);
    DCPCHECK_CUDA_CALL(cudaMemcpyAsync(image.data(), arena_base_, image.size(), cudaMemcpyDeviceToHost, stream_));
    for (const auto& memory : sparse_) memory->fetch(image, stream_);
    DCPCHECK_CUDA_CALL(cudaStreamSynchronize(stream_));
    touched_.clear();
    for (const auto& memory : sparse_) {
      for (Touched& piece : memory->touched()) touched_.push_back(std::move(piece));
    }
    return refused;
  }

  std::vector<Touched> touched() const override { return touched_; }

  std::vector<ChangedInput> changed_inputs() override {
    device_.choose();
    std::vector<ChangedInput> changed;
    for (const auto& [name, address] : addresses_) {
      const Bytes& storage = inputs_.get(name, rank_);
      if (storage.empty()) continue;
      Bytes now(storage.size());
      DCPCHECK_CUDA_CALL(cudaMemcpyAsync(now.data(), address, now.size(), cudaMemcpyDeviceToHost, stream_));
      DCPCHECK_CUDA_CALL(cudaStreamSynchronize(stream_));
      compare_input(name, storage, now.data(), changed);
    }
    return changed;
  }

 private:
  LaunchError queue(const Kernel& kernel, const Launch& launch) {
    const std::scoped_lock lock(device_.launching());
    return kernel.cuda(launch);
  }

  // The launch captured once and replayed, as an engine's CUDA graph does.
  LaunchError run_graph(const Kernel& kernel, const Launch& launch) {
    cudaGraph_t graph = nullptr;
    DCPCHECK_CUDA_CALL(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    LaunchError refused = queue(kernel, launch);
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (!refused.empty()) {
      if (graph) DCPCHECK_CUDA_CALL(cudaGraphDestroy(graph));
      return refused;
    }
    check_cuda(ended, "cudaStreamEndCapture");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
    DCPCHECK_CUDA_CALL(cudaGraphDestroy(graph));
    check_cuda(made, "cudaGraphInstantiate");
    const cudaError_t launched = cudaGraphLaunch(executable, stream_);
    const cudaError_t finished = cudaStreamSynchronize(stream_);
    DCPCHECK_CUDA_CALL(cudaGraphExecDestroy(executable));
    check_cuda(launched, "cudaGraphLaunch");
    check_cuda(finished, "cudaStreamSynchronize");
    return refused;
  }

  std::byte* allocate(std::int64_t bytes) {
    void* memory = nullptr;
    DCPCHECK_CUDA_CALL(cudaMallocAsync(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), stream_));
    pooled_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  void release() {
    // Not checked: where these fail the device is lost, and the next checked call says so.
    static_cast<void>(cudaSetDevice(device_.index()));
    for (void* memory : pooled_) static_cast<void>(cudaFreeAsync(memory, stream_));
    static_cast<void>(cudaStreamSynchronize(stream_));
    for (auto& memory : flush_) device_.give(std::move(memory));
    device_.give_stream(stream_);
    pooled_.clear();
    flush_.clear();
    sparse_.clear();
  }

  Device& device_;
  cudaStream_t stream_ = nullptr;
  const Plan& plan_;
  const Inputs& inputs_;
  std::int64_t rank_;
  const ArenaLayout& arena_;
  std::byte* arena_base_ = nullptr;
  std::vector<void*> pooled_;
  std::vector<std::unique_ptr<FlushMemory>> flush_;
  std::vector<std::unique_ptr<SparseDeviceMemory>> sparse_;
  std::map<std::string, std::byte*, std::less<>> addresses_;
  std::vector<Touched> touched_;
};

// The devices of the spread that there are; each stays on this list as often as it stands there.
std::vector<int> devices_in(const Spread& spread) {
  int count = 0;
  DCPCHECK_CUDA_CALL(cudaGetDeviceCount(&count));
  std::vector<int> devices = spread.devices;
  if (spread.all) {
    devices.clear();
    for (int device = 0; device < count; ++device) devices.push_back(device);
  }
  if (devices.empty()) {
    int first = 0;
    DCPCHECK_CUDA_CALL(cudaGetDevice(&first));
    devices.push_back(first);
  }
  for (const int device : devices) {
    if (device >= 0 && device < count) continue;
    throw InputError("--devices: there is no device " + std::to_string(device) + ": the machine has " + std::to_string(count) +
                     ", which count from 0");
  }
  return devices;
}

// Null: through the host.
std::unique_ptr<NcclTransport> nccl_between(const std::vector<int>& seats, Spread::Transport asked) {
  if (asked == Spread::Transport::host) return nullptr;
  std::string why;
  if (std::set<int>(seats.begin(), seats.end()).size() < seats.size())
    why = "NCCL takes a device once, and --devices has one several times";
  std::shared_ptr<const NcclLibrary> library;
  if (why.empty() && (seats.size() > 1 || asked == Spread::Transport::nccl)) library = NcclLibrary::find(&why);
  if (!why.empty() && asked == Spread::Transport::nccl) throw InputError("--transport nccl: " + why);
  if (library == nullptr || seats.size() < 2) return nullptr;
  return std::make_unique<NcclTransport>(std::move(library), seats);
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const Spread& spread) : seats_(devices_in(spread)) {
    nccl_ = nccl_between(seats_, spread.transport);
    for (const int index : seats_)
      if (!devices_.contains(index)) devices_[index] = std::make_unique<Device>(index);
    // What is loaded or asked without a placement is about the first one.
    devices_.at(seats_.front())->choose();
  }

  std::string name() const override { return "cuda"; }
  std::string description() const override { return devices_.at(seats_.front())->name(); }
  bool can_run(const Kernel& kernel) const override { return static_cast<bool>(kernel.cuda); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override {
    void* memory = nullptr;
    DCPCHECK_CUDA_CALL(
        cudaHostAlloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), cudaHostAllocPortable));
    return {static_cast<std::byte*>(memory), [](std::byte* held) { static_cast<void>(cudaFreeHost(held)); }};
  }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                   std::int64_t seat) override {
    Device& device = *devices_.at(seats_[static_cast<std::size_t>(seat) % seats_.size()]);
    return std::make_unique<CudaPlacement>(device, plan, inputs, rank, arena);
  }

  std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const int index : seats_) names.push_back(std::to_string(index) + ": " + devices_.at(index)->name());
    return names;
  }
  std::string transport() const override {
    if (nccl_ != nullptr) return nccl_->name();
    return seats_.size() > 1 ? "host" : "none";
  }
  std::vector<Bytes> carry(std::span<const Parcel> parcels) override {
    return nccl_ != nullptr ? nccl_->carry(parcels) : carry_through_host(parcels);
  }

 private:
  std::vector<int> seats_;
  std::map<int, std::unique_ptr<Device>> devices_;  // by index
  std::unique_ptr<NcclTransport> nccl_;             // null: through the host
};

}  // namespace

bool cuda_available(std::string* why_not) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return true;
  if (why_not)
    *why_not = status == cudaSuccess ? "this machine has no CUDA device"
                                     : std::string("no CUDA device: ") + cudaGetErrorString(status);
  return false;
}

std::unique_ptr<Backend> make_cuda_backend(const Spread& spread) {
  std::string why;
  if (!cuda_available(&why)) throw InputError("--backend cuda: " + why);
  return std::make_unique<CudaBackend>(spread);
}

}  // namespace dcpcheck
