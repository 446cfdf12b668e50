#include "harness/bisect/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "harness/adapters/child.hpp"
#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSlice = 50;                                // ms between looks at the clock and at signals
constexpr std::size_t kMostKept = std::size_t{64} << 20;  // bytes of a program's output
constexpr std::size_t kLastWords = 300;

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// In the child, between fork and exec: nothing here may take memory.
[[noreturn]] void become(char* const* argv, char* const* environment, const char* folder, int in, int out, int err) {
  static_cast<void>(::setpgid(0, 0));
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) ::_exit(126);
  if (*folder != '\0' && ::chdir(folder) != 0) ::_exit(126);
  sigset_t none;
  ::sigemptyset(&none);
  static_cast<void>(::sigprocmask(SIG_SETMASK, &none, nullptr));
  static_cast<void>(::signal(SIGPIPE, SIG_DFL));
  ::execvpe(argv[0], argv, environment);
  ::_exit(127);
}

// This process's environment without what tells git to work elsewhere.
std::vector<char*> environment_without_git() {
  std::vector<char*> kept;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view name = std::string_view(*one).substr(0, std::string_view(*one).find('='));
    constexpr std::array<std::string_view, 8> kGit{"GIT_DIR",       "GIT_WORK_TREE",          "GIT_INDEX_FILE",
                                                   "GIT_PREFIX",    "GIT_COMMON_DIR",         "GIT_OBJECT_DIRECTORY",
                                                   "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES"};
    if (std::find(kGit.begin(), kGit.end(), name) == kGit.end()) kept.push_back(*one);
  }
  kept.push_back(nullptr);
  return kept;
}

// Takes what has come; false at the end of the stream.
bool take(int from, std::string& into) {
  std::array<char, 65536> piece{};
  const ssize_t size = ::read(from, piece.data(), piece.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (size < 0) throw_errno("read of a program's output");
  into.append(piece.data(), std::min(static_cast<std::size_t>(size), kMostKept - std::min(kMostKept, into.size())));
  return size > 0;
}

// The process, until it has been waited for: whatever ends this one's wait ends that process's group.
class Running {
 public:
  explicit Running(pid_t pid) : pid_(pid) {}
  ~Running() {
    if (pid_ < 0) return;
    kill();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool has_ended(int& status) {
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got < 0 && errno != EINTR) throw_errno("waitpid");
    if (got == pid_) pid_ = -1;
    return got > 0;
  }
  // It and whatever it has started, as kernels' processes, which are in groups of their own.
  void kill() const {
    const std::vector<pid_t> family = descendants_of(pid_);
    static_cast<void>(::kill(-pid_, SIGKILL));
    static_cast<void>(::kill(pid_, SIGKILL));                                // it may not have its group yet
    for (const pid_t one : family) static_cast<void>(::kill(one, SIGKILL));  // where it has gone there is nothing to end
  }

 private:
  pid_t pid_;
};

}  // namespace

std::string how_it_ended(const ProgramEnd& end, std::chrono::milliseconds limit) {
  if (end.late) return "after " + std::to_string((limit.count() + 999) / 1000) + " s it had not ended";
  if (end.signal != 0) return "signal " + std::to_string(end.signal) + " (" + ::strsignal(end.signal) + ")";
  return "exit code " + std::to_string(end.code);
}

std::string last_words(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  std::string words = text.substr(0, end + 1);
  if (words.size() > kLastWords) words = "…" + words.substr(words.size() - kLastWords);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

ProgramEnd run_program(const std::vector<std::string>& words, const ProgramOptions& options) {
  Pipe out = make_pipe(), err = make_pipe();
  Descriptor log;
  if (!options.log.empty()) {
    log = Descriptor(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (log.get() < 0) throw_errno("open of " + options.log);
  }
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.get() < 0) throw_errno("open of /dev/null");
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = environment_without_git();
  const bool one_stream = log.get() >= 0;
  const pid_t pid = ::fork();
  if (pid < 0) throw_errno("fork");
  if (pid == 0)
    become(argv.data(), environment.data(), options.folder.c_str(), nothing.get(), out.write.get(),
           one_stream ? out.write.get() : err.write.get());
  Running running(pid);
  static_cast<void>(::setpgid(pid, pid));  // whichever of the two comes first
  out.write.close();
  err.write.close();
  const Clock::time_point deadline = Clock::now() + options.limit;
  ProgramEnd ended;
  int status = 0;
  // What it started may hold its streams open for as long as it likes: its own end is what counts.
  bool over = false;
  while (true) {
    if (options.interrupted != nullptr)
      if (const int signal = options.interrupted->load(); signal != 0) throw Interrupted(signal);
    std::array<pollfd, 2> streams{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
    if (::poll(streams.data(), streams.size(), over ? 0 : kSlice) < 0 && errno != EINTR) throw_errno("poll");
    bool came = false;
    const std::size_t before = ended.out.size();
    if (out.read.get() >= 0 && streams[0].revents != 0) {
      came = true;
      if (!take(out.read.get(), ended.out)) out.read.close();
    }
    if (err.read.get() >= 0 && streams[1].revents != 0) {
      came = true;
      if (!take(err.read.get(), ended.err)) err.read.close();
    }
    if (one_stream && ended.out.size() > before) {
      const std::size_t size = ended.out.size() - before;
      if (::write(log.get(), ended.out.data() + before, size) != static_cast<ssize_t>(size))
        throw_errno("write of " + options.log);
    }
    if (over && !came) break;
    if (!over) over = running.has_ended(status);
    if (!over && options.limit.count() > 0 && Clock::now() > deadline) {
      ended.late = true;
      running.kill();
    }
  }
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  return ended;
}

}  // namespace dcpcheck
