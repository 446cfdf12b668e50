// Carries parcels between GPUs through NCCL.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "harness/exec/nccl_library.hpp"
#include "harness/exec/transport.hpp"

namespace dcpcheck {

// One seat's end of a group: its GPU, a stream there, and memory that messages go from and come to. Used by one thread.
class NcclEnd {
 public:
  using Clock = std::chrono::steady_clock;
  // Asked every now and then while others are waited for; true: they will not come.
  using Hopeless = std::function<bool()>;

  struct Outgoing {
    std::int64_t to = 0;  // seat
    Bytes bytes;
  };
  struct Incoming {
    std::int64_t from = 0;  // seat
    std::int64_t bytes = 0;
  };

  // Meets the group's other ends, which are made at the same time. Throws RankLost where they do not come in time, or
  // `hopeless`, and HarnessError where CUDA or NCCL fail.
  NcclEnd(std::shared_ptr<const NcclLibrary> library, int device, const NcclId& id, std::int64_t seat, std::int64_t seats,
          Clock::time_point deadline, const Hopeless& hopeless);
  ~NcclEnd();
  NcclEnd(const NcclEnd&) = delete;
  NcclEnd& operator=(const NcclEnd&) = delete;

  // Sends and receives in one step; what came in, in order. At most one message either way between two seats. Throws as the
  // constructor does; the end is of no use then.
  std::vector<Bytes> exchange(const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                              Clock::time_point deadline, const Hopeless& hopeless);

  // Others of the group are gone: it is taken down with this end.
  void give_up() { sound_ = false; }

 private:
  class Staging;
  void wait_for_nccl(const char* what, Clock::time_point deadline, const Hopeless& hopeless);
  void wait_for_stream(Clock::time_point deadline, const Hopeless& hopeless);
  void look(const char* what, Clock::time_point deadline, const Hopeless& hopeless);
  void close() noexcept;

  std::shared_ptr<const NcclLibrary> library_;
  int device_;
  std::int64_t seat_;
  void* stream_ = nullptr;
  NcclComm comm_ = nullptr;
  bool sound_ = false;  // nothing of the last step is still under way
  std::unique_ptr<Staging> to_, from_;
};

// All seats of a case in this process, a thread for each while parcels are carried.
class NcclTransport {
 public:
  // `devices`: by seat, each a GPU of its own.
  NcclTransport(std::shared_ptr<const NcclLibrary> library, std::vector<int> devices);
  ~NcclTransport();
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  std::string name() const { return "nccl " + library_->version(); }
  // Throws RankLost where a seat fails or is late; the next call begins with a new group.
  std::vector<Bytes> carry(std::span<const Parcel> parcels);

 private:
  template <class F>
  void on_seats(F f);

  std::shared_ptr<const NcclLibrary> library_;
  std::vector<int> devices_;
  std::vector<std::unique_ptr<NcclEnd>> ends_;
};

}  // namespace dcpcheck
