// Other programs, run to their end: git, a build, dcpcheck itself.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace dcpcheck {

struct ProgramOptions {
  std::string folder;                  // it runs in; "": this process's
  std::string log;                     // file that its stdout and stderr are appended to; "": both are kept in memory alone
  std::chrono::milliseconds limit{0};  // after which it is ended; 0: none
  const std::atomic<int>* interrupted = nullptr;
};

struct ProgramEnd {
  int code = -1;  // exit code; -1 where a signal ended it
  int signal = 0;
  bool late = false;     // it passed the limit, and was ended for that
  std::string out, err;  // `err` is empty where there is a log, and `out` holds both

  bool ok() const { return code == 0; }
};

// "exit code 3", "signal 11 (Segmentation fault)", "after 60 s it had not ended".
std::string how_it_ended(const ProgramEnd& end, std::chrono::milliseconds limit);

// Runs words[0], sought on PATH, with these arguments, nothing on stdin, and none of git's own variables (GIT_DIR, …), in a
// process group of its own, and waits until it ends. Throws HarnessError where no process can be had, and Interrupted, the
// group ended, once a signal came.
ProgramEnd run_program(const std::vector<std::string>& words, const ProgramOptions& options);

// The last lines of `text`, on one line.
std::string last_words(const std::string& text);

}  // namespace dcpcheck
