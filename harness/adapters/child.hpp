// A process that is spoken to by lines: asked on its stdin, heard on its stdout, and what it says on stderr kept.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace dcpcheck {

// A file descriptor of this process's, closed with the object, and not handed on to processes by itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return number_; }
  void close();

 private:
  int number_ = -1;
};

// The processes that `ancestor` has started, and those that they have, as far as they can be told now.
std::vector<pid_t> descendants_of(pid_t ancestor);

class Child {
 public:
  using Clock = std::chrono::steady_clock;

  // The child's descriptor of the memory that it is handed.
  static constexpr int kMemory = 3;
  // Bytes of a line of its; a longer one is End::too_long.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // Starts "/bin/sh -c <command>" in a process group of its own, with `memory` as descriptor 3 and else nothing but stdin,
  // stdout and stderr. Throws HarnessError where no process can be had; a command that there is not is one that ends at once.
  Child(const std::string& command, const Descriptor& memory);
  // Closes its stdin, which tells it to end, and kills its group if it does not soon.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class End {
    line,      // a whole line
    closed,    // it ended, or closed its stdout; Heard::text has what came of a line
    late,      // nothing whole until the deadline; Heard::text has what came of a line
    too_long,  // more bytes than a line may have
  };
  struct Heard {
    End end = End::late;
    std::string text;
  };
  // Sends `line` and a newline, then waits for a line. Throws Interrupted once `interrupted` has a signal.
  Heard ask(const std::string& line, Clock::time_point deadline, const std::atomic<int>* interrupted);
  // Waits for a line.
  Heard hear(Clock::time_point deadline, const std::atomic<int>* interrupted) { return exchange("", deadline, interrupted); }

  // What it has said on stdout that was not heard, as far as it has come by now.
  const std::string& unheard();
  // How it ended, as "exit code 3" or "signal 11 (Segmentation fault)"; waits a moment. "" where it still runs.
  std::string how_it_ended();
  // The last lines of its stderr, on one line; "" where there are none.
  std::string last_words();
  // Its number; below 0 once it has been waited for.
  pid_t pid() const { return pid_; }
  // Ends it and its group at once.
  void kill();

 private:
  Heard exchange(const std::string& text, Clock::time_point deadline, const std::atomic<int>* interrupted);
  bool take_line(Heard& heard);
  // Reads what has come. False at the end of the stream.
  bool read_stdout();
  void read_stderr();
  bool has_ended() const;
  void wait_for_end(std::chrono::milliseconds patience) const;

  pid_t pid_ = -1;
  Descriptor stdin_, stdout_, stderr_;
  std::string heard_;  // of stdout, not yet taken
  std::string words_;  // of stderr: its end
};

}  // namespace dcpcheck
