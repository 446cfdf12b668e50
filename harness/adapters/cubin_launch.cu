// cuLibraryLoadData, cuLaunchKernelEx and what a launch needs of memory. All of it may be called while the stream is captured
// into a graph.
#include <cuda.h>
#include <cuda_runtime.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapters/cubin_launch.hpp"
#include "harness/adapters/invocation.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/cuda_driver.hpp"

namespace dcpcheck {
namespace {

// The driver's calls for modules and launches, found at run time.
struct ModuleDriver {
  decltype(&cuLibraryLoadData) load = nullptr;
  decltype(&cuLibraryUnload) unload = nullptr;
  decltype(&cuLibraryGetKernel) kernel = nullptr;
  decltype(&cuKernelGetFunction) function = nullptr;
  decltype(&cuFuncSetAttribute) set_attribute = nullptr;
  decltype(&cuFuncGetParamInfo) parameter = nullptr;  // since CUDA 12.4; older drivers have none
  decltype(&cuLaunchKernelEx) launch = nullptr;
  decltype(&cuMemsetD32Async) set_words = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;

  ModuleDriver() {
    require_driver_function("cuLibraryLoadData", load);
    require_driver_function("cuLibraryUnload", unload);
    require_driver_function("cuLibraryGetKernel", kernel);
    require_driver_function("cuKernelGetFunction", function);
    require_driver_function("cuFuncSetAttribute", set_attribute);
    static_cast<void>(find_driver_function("cuFuncGetParamInfo", 12040, parameter));
    require_driver_function("cuLaunchKernelEx", launch);
    require_driver_function("cuMemsetD32Async", set_words);
    require_driver_function("cuGetErrorName", error_name);
  }

  std::string name_of(CUresult status) const {
    const char* text = nullptr;
    return error_name(status, &text) == CUDA_SUCCESS && text != nullptr ? text : "unknown error";
  }
  void check(CUresult status, const char* call) const {
    if (status != CUDA_SUCCESS) throw_cuda(call, name_of(status));
  }
};

// A manifest's modules on the GPU.
class Modules {
 public:
  Modules(const Manifest& manifest, const std::string& source) {
    DCPCHECK_CUDA_CALL(cudaFree(nullptr));  // makes the primary context, where functions live
    try {
      for (const auto& [name, bytes] : manifest.modules) libraries_[name] = load(name, *bytes, source);
      for (const Variant& variant : manifest.variants) functions_[&variant] = function(variant, source);
    } catch (...) {
      unload();
      throw;
    }
  }
  ~Modules() { unload(); }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  const ModuleDriver& driver() const { return driver_; }
  CUfunction function(const Variant& variant) const { return functions_.at(&variant); }

 private:
  CUlibrary load(const std::string& name, const std::string& bytes, const std::string& source) const {
    std::array<char, 4096> log{};
    std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
    CUlibrary library = nullptr;
    // c_str(): PTX ends with a 0.
    const CUresult status = driver_.load(&library, bytes.c_str(), options.data(), values.data(), 2, nullptr, nullptr, 0);
    if (status == CUDA_SUCCESS) return library;
    log.back() = '\0';
    std::string why = log.data();
    why = why.substr(0, why.find('\n'));
    throw InputError(source + ": this GPU cannot load " + name + ": " + driver_.name_of(status) +
                     (why.empty() ? "" : ", " + why));
  }

  CUfunction function(const Variant& variant, const std::string& source) const {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    CUresult status = driver_.kernel(&kernel, libraries_.at(variant.module), variant.entry.c_str());
    if (status == CUDA_SUCCESS) status = driver_.function(&function, kernel);
    if (status != CUDA_SUCCESS)
      throw InputError(source + ": " + variant.place + ": this GPU cannot load " + variant.entry + " of " + variant.module +
                       ": " + driver_.name_of(status));
    const std::string why = driver_.parameter == nullptr ? "" : parameters_mismatch(variant, parameters_of(function));
    if (!why.empty()) throw InputError(source + ": " + why);
    return function;
  }

  std::vector<std::int64_t> parameters_of(CUfunction function) const {
    std::vector<std::int64_t> bytes;
    for (;;) {
      std::size_t offset = 0;
      std::size_t size = 0;
      const CUresult status = driver_.parameter(function, bytes.size(), &offset, &size);
      if (status == CUDA_ERROR_INVALID_VALUE) return bytes;  // there is no such parameter
      driver_.check(status, "cuFuncGetParamInfo");
      bytes.push_back(static_cast<std::int64_t>(size));
    }
  }

  void unload() {
    // Not checked: at the program's end the driver may be gone.
    for (const auto& [name, library] : libraries_)
      if (library != nullptr) static_cast<void>(driver_.unload(library));
    libraries_.clear();
  }

  ModuleDriver driver_;
  std::map<std::string, CUlibrary> libraries_;
  std::map<const Variant*, CUfunction> functions_;
};

// A launch's own device memory, given back behind it on the stream.
class Memory {
 public:
  Memory(const ModuleDriver& driver, Invocation& invocation, cudaStream_t stream) : stream_(stream) {
    try {
      for (const Scratch& scratch : invocation.scratch) take(driver, scratch, invocation);
    } catch (...) {
      release();
      throw;
    }
  }
  ~Memory() { release(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  void take(const ModuleDriver& driver, const Scratch& scratch, Invocation& invocation) {
    void* memory = nullptr;
    const std::size_t words = (static_cast<std::size_t>(scratch.bytes) + 3) / 4;
    DCPCHECK_CUDA_CALL(cudaMallocAsync(&memory, std::max<std::size_t>(4 * words, 4), stream_));
    taken_.push_back(memory);
    const auto base = reinterpret_cast<CUdeviceptr>(memory);
    constexpr unsigned pattern = 0xFFC1FFC1;  // a NaN as fp32 and as bf16, and a large number as an integer
    if (scratch.contents.empty()) {
      if (words > 0) driver.check(driver.set_words(base, scratch.zeroed ? 0 : pattern, words, stream_), "cuMemsetD32Async");
    } else {
      // Word by word, by value: a graph that copied from our memory would do so when it is replayed.
      std::vector<unsigned> values(words);
      std::memcpy(values.data(), scratch.contents.data(), scratch.contents.size());
      for (std::size_t i = 0; i < words; ++i)
        driver.check(driver.set_words(base + 4 * i, values[i], 1, stream_), "cuMemsetD32Async");
    }
    std::memcpy(invocation.parameters.at(scratch.parameter).data() + scratch.offset, &base, sizeof base);
  }

  void release() {
    // Not checked: where this fails the device is lost, and the next checked call says so.
    for (void* memory : taken_) static_cast<void>(cudaFreeAsync(memory, stream_));
    taken_.clear();
  }

  cudaStream_t stream_;
  std::vector<void*> taken_;
};

std::vector<CUlaunchAttribute> attributes_of(const Invocation& invocation) {
  std::vector<CUlaunchAttribute> attributes;
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    attributes.emplace_back();
    attributes.back().id = id;
    return attributes.back().value;
  };
  if (invocation.variant->cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (invocation.variant->programmatic_stream_serialization)
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
  if (invocation.clustered) {
    auto& cluster = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    cluster.x = static_cast<unsigned>(invocation.cluster[0]);
    cluster.y = static_cast<unsigned>(invocation.cluster[1]);
    cluster.z = static_cast<unsigned>(invocation.cluster[2]);
  }
  return attributes;
}

LaunchError launch_on(const Modules& modules, Invocation& invocation, cudaStream_t stream) {
  const ModuleDriver& driver = modules.driver();
  CUfunction function = modules.function(*invocation.variant);
  const auto refused = [&](CUresult status) {
    return LaunchError(invocation.variant->entry + " (" + invocation.variant->name + "): " + driver.name_of(status));
  };
  constexpr std::int64_t portable_cluster = 8;
  if (invocation.cluster[0] * invocation.cluster[1] * invocation.cluster[2] > portable_cluster) {
    const CUresult status = driver.set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (status != CUDA_SUCCESS) return refused(status);
  }
  if (invocation.shared_bytes > 0) {
    const CUresult status = driver.set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 static_cast<int>(invocation.shared_bytes));
    if (status != CUDA_SUCCESS) return refused(status);
  }
  const Memory memory(driver, invocation, stream);
  std::vector<void*> parameters;
  for (std::vector<std::byte>& bytes : invocation.parameters) parameters.push_back(bytes.data());
  std::vector<CUlaunchAttribute> attributes = attributes_of(invocation);
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(invocation.grid[0]);
  config.gridDimY = static_cast<unsigned>(invocation.grid[1]);
  config.gridDimZ = static_cast<unsigned>(invocation.grid[2]);
  config.blockDimX = static_cast<unsigned>(invocation.block[0]);
  config.blockDimY = static_cast<unsigned>(invocation.block[1]);
  config.blockDimZ = static_cast<unsigned>(invocation.block[2]);
  config.sharedMemBytes = static_cast<unsigned>(invocation.shared_bytes);
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  const CUresult status = driver.launch(&config, function, parameters.data(), nullptr);
  return status == CUDA_SUCCESS ? LaunchError() : refused(status);
}

}  // namespace

std::function<LaunchError(const Launch&)> cubin_launcher(std::shared_ptr<const Manifest> manifest, const std::string& source) {
  if (!cuda_available(nullptr)) {
    return [](const Launch&) -> LaunchError { throw HarnessError("a launch came where there is no CUDA device"); };
  }
  const auto modules = std::make_shared<const Modules>(*manifest, source);
  return [manifest = std::move(manifest), modules](const Launch& launch) -> LaunchError {
    auto worked_out = work_out(*manifest, launch);
    if (auto* const error = std::get_if<LaunchError>(&worked_out)) return std::move(*error);
    Invocation& invocation = std::get<Invocation>(worked_out);
    if (invocation.empty()) return {};
    return launch_on(*modules, invocation, static_cast<cudaStream_t>(launch.stream));
  };
}

}  // namespace dcpcheck
