// Messages between two processes of one host over a stream socket, and what messages are made of.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/inputs.hpp"

namespace dcpcheck {

// A message that is being written: numbers, texts and bytes, one after the other.
class MessageWriter {
 public:
  MessageWriter& number(std::int64_t value);
  MessageWriter& text(std::string_view value);
  MessageWriter& bytes(std::span<const std::byte> value);
  const Bytes& message() const { return message_; }

 private:
  Bytes message_;
};

// … and one that is read, in the same order. Throws HarnessError where the message is too short.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> message) : rest_(message) {}
  std::int64_t number();
  std::string text();
  Bytes bytes() {
    const std::span<const std::byte> part = view();
    return {part.begin(), part.end()};
  }
  std::span<const std::byte> view();  // bytes(), where they lie in the message

 private:
  std::span<const std::byte> take(std::int64_t count);
  std::span<const std::byte> rest_;
};

class Wire {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome { done, closed, late };

  explicit Wire(int socket) : socket_(socket) {}  // which it closes
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Both throw Interrupted once `interrupted` has a signal, where it is given. One thread may send while another receives.
  Outcome send(const Bytes& message, Clock::time_point deadline, const std::atomic<int>* interrupted = nullptr);
  Outcome receive(Bytes& message, Clock::time_point deadline, const std::atomic<int>* interrupted = nullptr);
  // Whether something can be received, or the other side is gone.
  bool stirs() const;
  // The process at the other end. Throws HarnessError where it is another user's.
  std::int64_t peer() const;

 private:
  Outcome move(std::byte* data, std::size_t bytes, bool out, Clock::time_point deadline, const std::atomic<int>* interrupted);

  int socket_;
  std::mutex sending_;
};

// A socket at `path` that others can connect to; what lay there before is gone, and the file with the object.
class Meeting {
 public:
  explicit Meeting(std::string path);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // The next one that comes; null where none does until the deadline.
  std::unique_ptr<Wire> next(Wire::Clock::time_point deadline, const std::atomic<int>* interrupted);

 private:
  std::string path_;
  int socket_ = -1;
};

// Connects to a Meeting that may yet have to be made; null where there is none until the deadline.
std::unique_ptr<Wire> go_to_meeting(const std::string& path, Wire::Clock::time_point deadline,
                                    const std::atomic<int>* interrupted);

}  // namespace dcpcheck
