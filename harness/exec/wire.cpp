#include "harness/exec/wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // bytes of a message
constexpr milliseconds kSlice{100};                       // between looks at whether a signal came
constexpr milliseconds kMoment{20};                       // between attempts to connect

void check_interrupted(const std::atomic<int>* interrupted) {
  if (interrupted != nullptr && interrupted->load() != 0) throw Interrupted(interrupted->load());
}

// Waits until the descriptor is ready for `events`, has ended, or a slice is over.
void wait_a_slice(int descriptor, short events, Wire::Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Wire::Clock::now()).count() + 1;
  pollfd waited{descriptor, events, 0};
  const auto slice = static_cast<int>(std::clamp<std::int64_t>(left, 0, kSlice.count()));
  if (::poll(&waited, 1, slice) < 0 && errno != EINTR) throw_errno("poll");
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    throw InputError("a socket's path has 1 to " + std::to_string(sizeof(address.sun_path) - 1) + " bytes, not '" + path + "'");
  std::memcpy(static_cast<void*>(address.sun_path), path.data(), path.size());
  return address;
}

int new_socket() {
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) throw_errno("socket");
  return made;
}

}  // namespace

MessageWriter& MessageWriter::number(std::int64_t value) {
  const auto* const from = reinterpret_cast<const std::byte*>(&value);
  message_.insert(message_.end(), from, from + sizeof(value));
  return *this;
}

MessageWriter& MessageWriter::text(std::string_view value) {
  return bytes(std::as_bytes(std::span(value.data(), value.size())));
}

MessageWriter& MessageWriter::bytes(std::span<const std::byte> value) {
  number(static_cast<std::int64_t>(value.size()));
  message_.insert(message_.end(), value.begin(), value.end());
  return *this;
}

std::span<const std::byte> MessageReader::take(std::int64_t count) {
  if (count < 0 || count > static_cast<std::int64_t>(rest_.size())) throw HarnessError("a message of a rank is too short");
  const auto part = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(part.size());
  return part;
}

std::int64_t MessageReader::number() {
  std::int64_t value = 0;
  std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
  return value;
}

std::string MessageReader::text() {
  const std::span<const std::byte> part = view();
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

std::span<const std::byte> MessageReader::view() { return take(number()); }

Wire::~Wire() { static_cast<void>(::close(socket_)); }  // nothing is buffered here that could be lost

Wire::Outcome Wire::move(std::byte* data, std::size_t bytes, bool out, Clock::time_point deadline,
                         const std::atomic<int>* interrupted) {
  for (std::size_t at = 0; at < bytes;) {
    check_interrupted(interrupted);
    const ssize_t moved = out ? ::send(socket_, data + at, bytes - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                              : ::recv(socket_, data + at, bytes - at, MSG_DONTWAIT);
    if (moved > 0) {
      at += static_cast<std::size_t>(moved);
      continue;
    }
    if (moved == 0 && !out) return Outcome::closed;
    if (moved < 0 && (errno == EPIPE || errno == ECONNRESET)) return Outcome::closed;
    if (moved < 0 && errno != EAGAIN && errno != EINTR) throw_errno(out ? "send to a rank" : "recv from a rank");
    if (Clock::now() > deadline) return Outcome::late;
    wait_a_slice(socket_, static_cast<short>(out ? POLLOUT : POLLIN), deadline);
  }
  return Outcome::done;
}

Wire::Outcome Wire::send(const Bytes& message, Clock::time_point deadline, const std::atomic<int>* interrupted) {
  const std::scoped_lock lock(sending_);
  std::int64_t length = static_cast<std::int64_t>(message.size());
  const Outcome begun = move(reinterpret_cast<std::byte*>(&length), sizeof(length), true, deadline, interrupted);
  if (begun != Outcome::done) return begun;
  // Not written to: move() is one for both ways.
  return move(const_cast<std::byte*>(message.data()), message.size(), true, deadline, interrupted);
}

Wire::Outcome Wire::receive(Bytes& message, Clock::time_point deadline, const std::atomic<int>* interrupted) {
  std::int64_t length = 0;
  const Outcome begun = move(reinterpret_cast<std::byte*>(&length), sizeof(length), false, deadline, interrupted);
  if (begun != Outcome::done) return begun;
  if (length < 0 || length > kLongest)
    throw HarnessError("a message of a rank says that it has " + std::to_string(length) + " bytes");
  message.resize(static_cast<std::size_t>(length));
  return move(message.data(), message.size(), false, deadline, interrupted);
}

bool Wire::stirs() const {
  pollfd looked{socket_, POLLIN | POLLRDHUP, 0};
  const int ready = ::poll(&looked, 1, 0);
  if (ready < 0 && errno != EINTR) throw_errno("poll");
  return ready > 0;
}

std::int64_t Wire::peer() const {
  ucred other{};
  socklen_t size = sizeof(other);
  if (::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) throw_errno("getsockopt(SO_PEERCRED)");
  if (other.uid != ::geteuid()) throw HarnessError("a process of another user came to the ranks' meeting");
  return other.pid;
}

Meeting::Meeting(std::string path) : path_(std::move(path)) {
  const sockaddr_un address = address_of(path_);
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) throw_errno("unlink of " + path_);
  socket_ = new_socket();
  const mode_t mask = ::umask(077);  // other users must not connect
  const int bound = ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  ::umask(mask);
  errno = error;
  if (bound != 0 || ::listen(socket_, SOMAXCONN) != 0) {
    const int why = errno;
    static_cast<void>(::close(socket_));
    errno = why;
    throw_errno(path_);
  }
}

Meeting::~Meeting() {
  static_cast<void>(::close(socket_));
  static_cast<void>(::unlink(path_.c_str()));  // it may be gone already
}

std::unique_ptr<Wire> Meeting::next(Wire::Clock::time_point deadline, const std::atomic<int>* interrupted) {
  while (true) {
    check_interrupted(interrupted);
    const int one = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (one >= 0) return std::make_unique<Wire>(one);
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) throw_errno("accept at " + path_);
    if (Wire::Clock::now() > deadline) return nullptr;
    wait_a_slice(socket_, POLLIN, deadline);
  }
}

std::unique_ptr<Wire> go_to_meeting(const std::string& path, Wire::Clock::time_point deadline,
                                    const std::atomic<int>* interrupted) {
  const sockaddr_un address = address_of(path);
  while (true) {
    check_interrupted(interrupted);
    const int one = new_socket();
    if (::connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return std::make_unique<Wire>(one);
    const int error = errno;
    static_cast<void>(::close(one));
    errno = error;
    if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) throw_errno("connect to " + path);
    if (Wire::Clock::now() > deadline) return nullptr;
    std::this_thread::sleep_for(kMoment);
  }
}

}  // namespace dcpcheck
