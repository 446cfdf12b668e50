#include "harness/exec/nccl_transport.hpp"

#ifdef DCPCHECK_HAVE_CUDA

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

constexpr std::chrono::microseconds kMoment{50};

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw HarnessError(std::string(call) + ": " + cudaGetErrorName(status) + ", " + cudaGetErrorString(status));
}

std::string seat_name(std::int64_t seat, int device) {
  return "rank " + std::to_string(seat) + " (device " + std::to_string(device) + ")";
}

}  // namespace

// Memory of the GPU that messages lie in; grows.
class NcclEnd::Staging {
 public:
  Staging() = default;
  ~Staging() { static_cast<void>(cudaFree(data_)); }  // not checked: where it fails the device is lost, and others say so
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::byte* reserve(std::size_t bytes) {
    if (bytes <= bytes_) return static_cast<std::byte*>(data_);
    check(cudaFree(data_), "cudaFree");
    data_ = nullptr;
    bytes_ = 0;
    check(cudaMalloc(&data_, bytes), "cudaMalloc");
    bytes_ = bytes;
    return static_cast<std::byte*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

NcclEnd::NcclEnd(std::shared_ptr<const NcclLibrary> library, int device, const NcclId& id, std::int64_t seat,
                 std::int64_t seats, Clock::time_point deadline, const Hopeless& hopeless)
    : library_(std::move(library)),
      device_(device),
      seat_(seat),
      to_(std::make_unique<Staging>()),
      from_(std::make_unique<Staging>()) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = stream;
  try {
    NcclConfig config;  // calls that do not wait: one that did could not be given up
    library_->check(library_->init_rank(&comm_, static_cast<int>(seats), id, static_cast<int>(seat), &config),
                    "ncclCommInitRankConfig", true);
    wait_for_nccl("for the other ranks to meet it", deadline, hopeless);
    sound_ = true;
  } catch (...) {
    close();
    throw;
  }
}

NcclEnd::~NcclEnd() { close(); }

// Not checked: whether this succeeds changes nothing any more.
void NcclEnd::close() noexcept {
  static_cast<void>(cudaSetDevice(device_));
  // A sound one is left to the end of the process: NCCL takes a group down in threads of its own, which that end must not meet.
  if (comm_ != nullptr && !sound_) static_cast<void>(library_->abort(comm_));
  comm_ = nullptr;
  to_.reset();
  from_.reset();
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(stream_)));
  stream_ = nullptr;
}

void NcclEnd::look(const char* what, Clock::time_point deadline, const Hopeless& hopeless) {
  if (hopeless && hopeless())
    throw RankLost(Status::crash, seat_name(seat_, device_) + " waited " + what + ": another is gone");
  if (Clock::now() > deadline)
    throw RankLost(Status::hang, seat_name(seat_, device_) + " waited " + what + ", and its time is over");
  std::this_thread::sleep_for(kMoment);
}

void NcclEnd::wait_for_nccl(const char* what, Clock::time_point deadline, const Hopeless& hopeless) {
  while (true) {
    NcclResult state = NcclResult::success;
    library_->check(library_->async_error(comm_, &state), "ncclCommGetAsyncError");
    if (state == NcclResult::success) return;
    if (state == NcclResult::remote_error)
      throw RankLost(Status::crash, seat_name(seat_, device_) + " waited " + what + ": " + library_->text_of(state));
    library_->check(state, what, true);
    look(what, deadline, hopeless);
  }
}

void NcclEnd::wait_for_stream(Clock::time_point deadline, const Hopeless& hopeless) {
  constexpr const char* what = "for what others send it";
  while (true) {
    const cudaError_t status = cudaStreamQuery(static_cast<cudaStream_t>(stream_));
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "cudaStreamQuery");
    NcclResult state = NcclResult::success;
    library_->check(library_->async_error(comm_, &state), "ncclCommGetAsyncError");
    if (state != NcclResult::success && state != NcclResult::in_progress)
      throw RankLost(Status::crash, seat_name(seat_, device_) + " waited " + what + ": " + library_->text_of(state));
    look(what, deadline, hopeless);
  }
}

std::vector<Bytes> NcclEnd::exchange(const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                                     Clock::time_point deadline, const Hopeless& hopeless) {
  if (!sound_) throw HarnessError("an end of a group that failed is used again");
  sound_ = false;
  check(cudaSetDevice(device_), "cudaSetDevice");
  const auto stream = static_cast<cudaStream_t>(stream_);
  std::size_t sent = 0, received = 0;
  for (const Outgoing& message : outgoing) sent += message.bytes.size();
  for (const Incoming& message : incoming) received += static_cast<std::size_t>(message.bytes);
  std::byte* const to = to_->reserve(sent);
  std::byte* const from = from_->reserve(received);
  std::size_t at = 0;
  for (const Outgoing& message : outgoing) {
    check(cudaMemcpyAsync(to + at, message.bytes.data(), message.bytes.size(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    at += message.bytes.size();
  }
  library_->check(library_->group_start(), "ncclGroupStart");
  at = 0;
  for (const Outgoing& message : outgoing) {
    library_->check(
        library_->send(to + at, message.bytes.size(), NcclLibrary::kBytes, static_cast<int>(message.to), comm_, stream_),
        "ncclSend", true);
    at += message.bytes.size();
  }
  at = 0;
  for (const Incoming& message : incoming) {
    const auto bytes = static_cast<std::size_t>(message.bytes);
    library_->check(library_->receive(from + at, bytes, NcclLibrary::kBytes, static_cast<int>(message.from), comm_, stream_),
                    "ncclRecv", true);
    at += bytes;
  }
  library_->check(library_->group_end(), "ncclGroupEnd", true);
  wait_for_nccl("for what it sends and receives to be under way", deadline, hopeless);
  wait_for_stream(deadline, hopeless);
  std::vector<Bytes> arrived;
  at = 0;
  for (const Incoming& message : incoming) {
    Bytes& bytes = arrived.emplace_back(static_cast<std::size_t>(message.bytes));
    check(cudaMemcpyAsync(bytes.data(), from + at, bytes.size(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    at += bytes.size();
  }
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  sound_ = true;
  return arrived;
}

NcclTransport::NcclTransport(std::shared_ptr<const NcclLibrary> library, std::vector<int> devices)
    : library_(std::move(library)), devices_(std::move(devices)), ends_(devices_.size()) {}

NcclTransport::~NcclTransport() = default;

// Calls f(seat, hopeless) in a thread of each seat's. Where one fails the others are told so, and the first failure is thrown.
template <class F>
void NcclTransport::on_seats(F f) {
  std::atomic<bool> failed{false};
  std::exception_ptr first;
  std::mutex guard;
  {
    std::vector<std::jthread> team;
    for (std::size_t seat = 0; seat < devices_.size(); ++seat) {
      team.emplace_back([&, seat] {
        try {
          f(seat, [&failed] { return failed.load(); });
        } catch (...) {
          const std::scoped_lock lock(guard);
          if (!first) first = std::current_exception();
          failed = true;
        }
      });
    }
  }
  if (!first) return;
  for (std::unique_ptr<NcclEnd>& end : ends_) {
    if (end != nullptr) end->give_up();
    end.reset();
  }
  try {
    std::rethrow_exception(first);
  } catch (const HarnessError& error) {
    throw HarnessError(name() + ": " + error.what());
  }
}

std::vector<Bytes> NcclTransport::carry(std::span<const Parcel> parcels) {
  const auto seats = static_cast<std::int64_t>(devices_.size());
  std::vector<Bytes> arrived = carry_through_host(parcels);  // what goes to another seat is replaced by what comes there
  const std::vector<Route> routes = routes_of(parcels, seats);
  if (routes.empty()) return arrived;
  for (const Route& route : routes)
    for (const std::size_t i : route.parcels) arrived[i].clear();
  const auto deadline = NcclEnd::Clock::now() + rank_patience();
  if (std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end == nullptr; })) {
    NcclId id;
    library_->check(library_->get_unique_id(&id), "ncclGetUniqueId");
    on_seats([&](std::size_t seat, const NcclEnd::Hopeless& hopeless) {
      ends_[seat] =
          std::make_unique<NcclEnd>(library_, devices_[seat], id, static_cast<std::int64_t>(seat), seats, deadline, hopeless);
    });
  }
  std::vector<std::vector<Bytes>> messages(devices_.size());
  on_seats([&](std::size_t seat, const NcclEnd::Hopeless& hopeless) {
    std::vector<NcclEnd::Outgoing> outgoing;
    std::vector<NcclEnd::Incoming> incoming;
    for (const Route& route : routes) {
      if (route.from == static_cast<std::int64_t>(seat)) outgoing.push_back({route.to, message_on(route, parcels)});
      if (route.to == static_cast<std::int64_t>(seat)) incoming.push_back({route.from, route.bytes});
    }
    if (!outgoing.empty() || !incoming.empty()) messages[seat] = ends_[seat]->exchange(outgoing, incoming, deadline, hopeless);
  });
  std::vector<std::size_t> taken(devices_.size());
  for (const Route& route : routes) {
    const auto to = static_cast<std::size_t>(route.to);
    deliver(route, parcels, messages[to][taken[to]++], arrived);
  }
  return arrived;
}

}  // namespace dcpcheck

#endif
