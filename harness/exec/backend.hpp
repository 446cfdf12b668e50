// Where a kernel runs: the host, or a CUDA device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"
#include "harness/exec/kernel.hpp"
#include "harness/exec/transport.hpp"
#include "harness/memory/arena.hpp"

namespace dcpcheck {

// An input that a kernel wrote to: how many bytes differ, and the first of them.
struct ChangedInput {
  std::string name;
  std::int64_t bytes = 0, first = 0;
};

// Adds the input to `changed` where its bytes `now` are not those that were `placed`.
void compare_input(const std::string& name, const Bytes& placed, const std::byte* now, std::vector<ChangedInput>& changed);

// One rank's inputs, placed where the kernel will read them, and room for the arena of its outputs.
class Placement {
 public:
  virtual ~Placement() = default;
  // Runs `kernel` once on the arena image: brings it to the kernel, launches, waits, and brings it back.
  // Returns why the launch was refused, or "". Throws HarnessError where the device is lost.
  virtual LaunchError run(const Kernel& kernel, std::span<std::byte> image, int threads) = 0;
  // What the last run touched of sparse buffers outside their windows.
  virtual std::vector<Touched> touched() const = 0;
  // The inputs that no longer hold what was placed.
  virtual std::vector<ChangedInput> changed_inputs() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // "host", "cuda"
  virtual std::string description() const = 0;  // "8 cores", "NVIDIA H200"
  virtual bool can_run(const Kernel& kernel) const = 0;
  // Memory for an arena image that this backend moves fast; released with the last copy of the pointer.
  virtual std::shared_ptr<std::byte> image_memory(std::int64_t bytes) = 0;
  // `seat` is the rank of the case that launches as rank `rank` of the plan, a pipeline's part: it says on which device.
  virtual std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                           std::int64_t seat) = 0;

  // The devices that ranks are spread over, one a seat: "0: NVIDIA H200".
  virtual std::vector<std::string> devices() const = 0;
  // How what one rank holds gets to another on another seat: "none" (there is but one seat), "host", "nccl 2.28.9".
  virtual std::string transport() const = 0;
  // The parcels as they arrive, in order. Throws RankLost where one does not within its time.
  virtual std::vector<Bytes> carry(std::span<const Parcel> parcels) = 0;
};

// On the host, devices are mere labels. Throws InputError where NCCL is asked for.
std::unique_ptr<Backend> make_host_backend(const Spread& spread = {});
// Throws InputError where this build has no CUDA backend or the machine none of the devices, or NCCL is asked for and not to
// be had.
std::unique_ptr<Backend> make_cuda_backend(const Spread& spread = {});
// Whether make_cuda_backend would succeed; `why_not` says what is missing.
bool cuda_available(std::string* why_not = nullptr);

}  // namespace dcpcheck
