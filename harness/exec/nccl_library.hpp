// NCCL, found at run time: no Debian package has it, and few runs need it. Its interface as libnccl.so.2 has had it since 2.14.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace dcpcheck {

// What NCCL's calls answer.
enum class NcclResult : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

// Names a group of ranks that are about to meet; made by one of them.
struct NcclId {
  std::array<char, 128> bytes{};
};

// As of 2.14: a later NCCL takes its defaults for what it knows besides.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeefU;
  unsigned version = 21400;
  int blocking = 0;
};

using NcclComm = void*;    // a rank's end of the group
using NcclStream = void*;  // a cudaStream_t

class NcclLibrary {
 public:
  // libnccl.so.2 as the system finds it (LD_LIBRARY_PATH), or `file`; null, and why, where there is none that can be used.
  static std::shared_ptr<const NcclLibrary> find(std::string* why_not = nullptr, const std::string& file = "libnccl.so.2");

  const std::string& version() const { return version_; }  // "2.28.9"
  // Throws HarnessError where `result` is neither success nor, `may_go_on`, in progress.
  void check(NcclResult result, const char* call, bool may_go_on = false) const;
  std::string text_of(NcclResult result) const;

  NcclResult (*get_version)(int* version) = nullptr;
  NcclResult (*get_unique_id)(NcclId* id) = nullptr;
  NcclResult (*init_rank)(NcclComm* comm, int ranks, NcclId id, int rank, NcclConfig* config) = nullptr;
  NcclResult (*async_error)(NcclComm comm, NcclResult* error) = nullptr;
  NcclResult (*finalize)(NcclComm comm) = nullptr;
  NcclResult (*destroy)(NcclComm comm) = nullptr;
  NcclResult (*abort)(NcclComm comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*send)(const void* from, std::size_t count, int type, int peer, NcclComm comm, NcclStream stream) = nullptr;
  NcclResult (*receive)(void* to, std::size_t count, int type, int peer, NcclComm comm, NcclStream stream) = nullptr;
  const char* (*error_string)(NcclResult result) = nullptr;

  static constexpr int kBytes = 1;  // the type of plain bytes (ncclUint8)

 private:
  NcclLibrary() = default;
  std::string version_;
};

}  // namespace dcpcheck
