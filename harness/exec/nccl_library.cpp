#include "harness/exec/nccl_library.hpp"

#include <dlfcn.h>

#include <type_traits>

#include "harness/core/error.hpp"

namespace dcpcheck {

std::shared_ptr<const NcclLibrary> NcclLibrary::find(std::string* why_not, const std::string& file) {
  const auto refuse = [&](const std::string& why) -> std::shared_ptr<const NcclLibrary> {
    if (why_not != nullptr) *why_not = why;
    return nullptr;
  };
  // Never closed: NCCL has threads of its own.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    return refuse("NCCL is not found: " + std::string(error == nullptr ? file : error) +
                  " (LD_LIBRARY_PATH says where to look)");
  }
  const std::shared_ptr<NcclLibrary> library(new NcclLibrary);
  std::string missing;
  const auto look_up = [&](const char* name, auto& function) {
    void* const address = ::dlsym(handle, name);
    if (address == nullptr && missing.empty()) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  look_up("ncclGetVersion", library->get_version);
  look_up("ncclGetUniqueId", library->get_unique_id);
  look_up("ncclCommInitRankConfig", library->init_rank);
  look_up("ncclCommGetAsyncError", library->async_error);
  look_up("ncclCommFinalize", library->finalize);
  look_up("ncclCommDestroy", library->destroy);
  look_up("ncclCommAbort", library->abort);
  look_up("ncclGroupStart", library->group_start);
  look_up("ncclGroupEnd", library->group_end);
  look_up("ncclSend", library->send);
  look_up("ncclRecv", library->receive);
  look_up("ncclGetErrorString", library->error_string);
  if (!missing.empty()) return refuse(file + " has no " + missing + ": NCCL 2.14 or later is needed");
  int version = 0;
  if (const NcclResult result = library->get_version(&version); result != NcclResult::success)
    return refuse(file + ": ncclGetVersion: " + library->text_of(result));
  if (version < 21400)
    return refuse(file + " is NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                  ": 2.14 or later is needed");
  library->version_ =
      std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  return library;
}

void NcclLibrary::check(NcclResult result, const char* call, bool may_go_on) const {
  if (result == NcclResult::success || (may_go_on && result == NcclResult::in_progress)) return;
  throw HarnessError(std::string(call) + ": " + text_of(result));
}

std::string NcclLibrary::text_of(NcclResult result) const {
  const char* const text = error_string(result);
  return text == nullptr ? "NCCL error " + std::to_string(static_cast<int>(result)) : text;
}

}  // namespace dcpcheck
