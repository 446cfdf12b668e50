#include "harness/commands/machine.hpp"

#include <sys/utsname.h>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#ifdef DCPCHECK_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace dcpcheck {
namespace {

// What follows "<key><separator>" on the first line of `path` that starts with `key`; empty where there is none.
std::string value_in(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    line.erase(0, at + 1);
    std::erase(line, '"');
    line.erase(0, line.find_first_not_of(" \t"));
    return line;
  }
  return {};
}

std::string os_name() {
  utsname names{};
  const std::string kernel =
      uname(&names) == 0 ? std::string(names.sysname) + " " + names.release + " " + names.machine : "unknown";
  const std::string pretty = value_in("/etc/os-release", "PRETTY_NAME", '=');
  return pretty.empty() ? kernel : pretty + ", " + kernel;
}

std::string cpu_name() {
  const std::string name = value_in("/proc/cpuinfo", "model name", ':');
  return name.empty() ? "unknown" : name;
}

std::string compiler_name() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

#ifdef DCPCHECK_HAVE_CUDA
std::string cuda_version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

// "550.54.15" out of the kernel module's line; empty where there is none.
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && std::isdigit(static_cast<unsigned char>(word[0])) != 0) return word;
  return {};
}
#endif

}  // namespace

CudaFacts cuda_facts() {
  CudaFacts facts;
#ifdef DCPCHECK_HAVE_CUDA
  facts.toolkit = cuda_version(CUDART_VERSION);
  int number = 0;
  if (cudaDriverGetVersion(&number) == cudaSuccess && number > 0) {
    const std::string version = module_version();
    facts.driver = (version.empty() ? "" : version + ", ") + "CUDA " + cuda_version(number);
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
    facts.devices.push_back(std::to_string(device) + ": " + properties.name + ", compute capability " +
                            std::to_string(properties.major) + "." + std::to_string(properties.minor) + ", " +
                            std::to_string(properties.totalGlobalMem >> 20) + " MiB");
  }
#endif
  return facts;
}

Machine describe_machine(int threads, const Backend* backend) {
  Machine machine{os_name(), cpu_name(), threads, compiler_name(), {}, {}, {}, {}, "none"};
#ifdef DCPCHECK_HAVE_CUDA
  machine.cuda = cuda_version(CUDART_VERSION);
#endif
  if (backend == nullptr) return machine;
  machine.devices = backend->devices();
  machine.transport = backend->transport();
  if (backend->name() != "cuda") return machine;
  const CudaFacts facts = cuda_facts();
  if (!facts.driver.empty()) machine.driver = facts.driver;
  machine.device = backend->description();
  return machine;
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") != 0) features.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx") != 0) features.emplace_back("avx");
  if (__builtin_cpu_supports("avx2") != 0) features.emplace_back("avx2");
  if (__builtin_cpu_supports("fma") != 0) features.emplace_back("fma");
  if (__builtin_cpu_supports("avx512f") != 0) features.emplace_back("avx512f");
#endif
  return features;
}

std::vector<std::pair<std::string, std::string>> packages() {
  return {
      {"OpenSSL", DCPCHECK_OPENSSL_VERSION}, {"nlohmann_json", DCPCHECK_NLOHMANN_VERSION}, {"CLI11", DCPCHECK_CLI11_VERSION}};
}

}  // namespace dcpcheck
