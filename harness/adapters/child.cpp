#include "harness/adapters/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWordsKept = 4096;  // bytes of stderr
constexpr std::size_t kLinesShown = 3;    // of them
constexpr milliseconds kSlice{100};       // between looks at whether it has ended, or a signal came
constexpr milliseconds kPatience{2000};   // for it to end once nothing more can come of it
constexpr milliseconds kMoment{5};

void check(int error, const char* call) {
  if (error == 0) return;
  errno = error;
  throw_errno(call);
}

// The same descriptor where no redirection of a child's can be in its way.
Descriptor out_of_the_way(int number, const char* call) {
  if (number < 0) throw_errno(call);
  const Descriptor low(number);
  const int high = ::fcntl(number, F_DUPFD_CLOEXEC, 16);
  if (high < 0) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  return Descriptor(high);
}

void make_nonblocking(const Descriptor& descriptor) {
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) < 0) throw_errno("fcntl(F_SETFL)");
}

struct Ends {
  Descriptor ours, theirs;
};

Ends pipe_to_us() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  Ends made{out_of_the_way(ends[0], "pipe2"), out_of_the_way(ends[1], "pipe2")};
  make_nonblocking(made.ours);
  return made;
}

// A socket in place of a pipe: writing to one that nobody reads any more can be kept from raising a signal.
Ends socket_to_them() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("socketpair");
  Ends made{out_of_the_way(ends[0], "socketpair"), out_of_the_way(ends[1], "socketpair")};
  make_nonblocking(made.ours);
  return made;
}

class Actions {
 public:
  Actions() { check(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init"); }
  ~Actions() { static_cast<void>(::posix_spawn_file_actions_destroy(&actions_)); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  void hand(const Descriptor& descriptor, int as) {
    check(::posix_spawn_file_actions_adddup2(&actions_, descriptor.get(), as), "posix_spawn_file_actions_adddup2");
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// A process group of its own, so that what it starts ends with it; no signal blocked or ignored that this process does.
class Attributes {
 public:
  Attributes() {
    check(::posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    sigset_t none{}, standard{};
    ::sigemptyset(&none);
    ::sigemptyset(&standard);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGURG}) ::sigaddset(&standard, signal);
    check(::posix_spawnattr_setsigmask(&attributes_, &none), "posix_spawnattr_setsigmask");
    check(::posix_spawnattr_setsigdefault(&attributes_, &standard), "posix_spawnattr_setsigdefault");
    check(::posix_spawnattr_setpgroup(&attributes_, 0), "posix_spawnattr_setpgroup");
    check(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP),
          "posix_spawnattr_setflags");
  }
  ~Attributes() { static_cast<void>(::posix_spawnattr_destroy(&attributes_)); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::string signal_in_words(int signal) {
  const char* const name = ::sigdescr_np(signal);
  return "signal " + std::to_string(signal) + (name == nullptr ? "" : " (" + std::string(name) + ")");
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entries("/proc", error), end; !error && entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entries->path() / "stat");
    std::string stat;
    std::getline(file, stat);  // "<pid> (<name>) <state> <parent> …", the name being anything
    const std::size_t after = stat.rfind(')');
    if (after == std::string::npos || after + 4 >= stat.size()) continue;
    children.emplace(std::atoi(stat.c_str() + after + 4), std::atoi(name.c_str()));
  }
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
  }
  found.erase(found.begin());
  return found;
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void Descriptor::close() {
  // Nothing is written through one that is buffered, so that there is nothing to lose.
  if (number_ >= 0) static_cast<void>(::close(number_));
  number_ = -1;
}

Child::Child(const std::string& command, const Descriptor& memory) {
  Ends in = socket_to_them(), out = pipe_to_us(), err = pipe_to_us();
  Actions actions;
  actions.hand(in.theirs, STDIN_FILENO);
  actions.hand(out.theirs, STDOUT_FILENO);
  actions.hand(err.theirs, STDERR_FILENO);
  actions.hand(memory, kMemory);
  const Attributes attributes;
  std::string shell = "sh", flag = "-c", words = command;
  const std::array<char*, 4> arguments{shell.data(), flag.data(), words.data(), nullptr};
  check(::posix_spawn(&pid_, "/bin/sh", actions.get(), attributes.get(), arguments.data(), environ), "posix_spawn of /bin/sh");
  stdin_ = std::move(in.ours);
  stdout_ = std::move(out.ours);
  stderr_ = std::move(err.ours);
}

Child::~Child() {
  if (pid_ < 0) return;
  stdin_.close();
  wait_for_end(kPatience);
  kill();
}

void Child::kill() {
  if (pid_ < 0) return;
  // Not yet waited for, so that the group's number is still its own. A group whose members have all gone cannot be killed.
  static_cast<void>(::kill(-pid_, SIGKILL));
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool Child::has_ended() const {
  if (pid_ < 0) return true;
  siginfo_t info{};
  // WNOWAIT: it is waited for where it is killed. One that cannot be waited for is no more.
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_;
}

void Child::wait_for_end(milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  while (!has_ended() && Clock::now() < deadline) std::this_thread::sleep_for(kMoment);
}

std::string Child::how_it_ended() {
  wait_for_end(kPatience);
  if (!has_ended() || pid_ < 0) return "";
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) throw_errno("waitid");
  if (info.si_code != CLD_EXITED) return signal_in_words(info.si_status);
  const std::string code = "exit code " + std::to_string(info.si_status);
  // As a shell tells of a signal to a command of its.
  const int signal = info.si_status - 128;
  return signal > 0 && ::sigdescr_np(signal) != nullptr ? code + ", as after " + signal_in_words(signal) : code;
}

bool Child::read_stdout() {
  std::array<char, 4096> some{};
  while (heard_.size() <= kLongestLine) {
    const ssize_t got = ::read(stdout_.get(), some.data(), some.size());
    if (got > 0) {
      heard_.append(some.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return true;
    throw_errno("read of a process's stdout");
  }
  return true;
}

void Child::read_stderr() {
  std::array<char, 4096> some{};
  while (stderr_.get() >= 0) {
    const ssize_t got = ::read(stderr_.get(), some.data(), some.size());
    if (got > 0) {
      words_.append(some.data(), static_cast<std::size_t>(got));
      if (words_.size() > kWordsKept) words_.erase(0, words_.size() - kWordsKept);
      // One that never stops must not keep its answer from being heard.
      if (static_cast<std::size_t>(got) == some.size()) return;
      continue;
    }
    if (got == 0) return stderr_.close();
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return;
    throw_errno("read of a process's stderr");
  }
}

const std::string& Child::unheard() {
  static_cast<void>(read_stdout());
  return heard_;
}

std::string Child::last_words() {
  read_stderr();
  std::vector<std::string> lines(1);
  for (const char c : words_) {
    if (c == '\n' && !lines.back().empty()) lines.emplace_back();
    if (c != '\n') lines.back() += c;
  }
  if (lines.back().empty()) lines.pop_back();
  std::string last;
  for (std::size_t i = lines.size() - std::min(lines.size(), kLinesShown); i < lines.size(); ++i)
    last += (last.empty() ? "" : " | ") + lines[i];
  return last;
}

bool Child::take_line(Heard& heard) {
  const std::size_t end = heard_.find('\n');
  if (end == std::string::npos && heard_.size() <= kLongestLine) return false;
  heard.end = end > kLongestLine ? End::too_long : End::line;
  heard.text = heard_.substr(0, std::min(end, kLongestLine));
  heard_.erase(0, end == std::string::npos ? end : end + 1);
  return true;
}

Child::Heard Child::ask(const std::string& line, Clock::time_point deadline, const std::atomic<int>* interrupted) {
  return exchange(line + "\n", deadline, interrupted);
}

Child::Heard Child::exchange(const std::string& text, Clock::time_point deadline, const std::atomic<int>* interrupted) {
  Heard heard;
  std::size_t sent = 0;
  while (true) {
    if (interrupted != nullptr && interrupted->load() != 0) throw Interrupted(interrupted->load());
    const bool ended = has_ended();  // asked before reading: nothing can come after
    const bool open = read_stdout();
    read_stderr();
    if (take_line(heard)) return heard;
    if (!open || ended) return {End::closed, heard_};
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return {End::late, heard_};
    while (sent < text.size()) {
      const ssize_t some = ::send(stdin_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0 && errno == EAGAIN) break;
      if (some < 0 && (errno == EPIPE || errno == ECONNRESET)) {
        // It reads no more. What it still has to say is waited for.
        sent = text.size();
        break;
      }
      if (some < 0) throw_errno("send to a process's stdin");
      sent += static_cast<std::size_t>(some);
    }
    std::array<pollfd, 3> waited{
        {{stdout_.get(), POLLIN, 0}, {stderr_.get(), POLLIN, 0}, {sent < text.size() ? stdin_.get() : -1, POLLOUT, 0}}};
    const auto slice = std::min<std::int64_t>(left.count() + 1, kSlice.count());
    if (::poll(waited.data(), waited.size(), static_cast<int>(slice)) < 0 && errno != EINTR) throw_errno("poll");
  }
}

}  // namespace dcpcheck
