// Runs the built program as a person would: words in; exit code or signal, stdout and stderr out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "harness/core/slow_test.hpp"

namespace dcpcheck {

// How a process ended: by exit code or by signal, never a bare number.
struct Ended {
  int code = -1;
  int signal = 0;
  std::string out, err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A test with a folder of its own, which is gone after it.
class Program : public testing::Test {
 public:
  Program() { std::filesystem::create_directories(folder_); }
  ~Program() override { std::filesystem::remove_all(folder_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  // Starts the program; stdout and stderr go to files of the folder, or stdout to `out`.
  pid_t start(const std::vector<std::string>& words, const std::string& out = "") const {
    const std::string out_path = out.empty() ? path(".stdout") : out;
    const std::string err_path = path(".stderr");
    std::vector<char*> argv{const_cast<char*>(DCPCHECK_PROGRAM)};
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::dup2(::open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    static_cast<void>(::signal(SIGINT, SIG_DFL));  // ctest may have been started in the background, where it is ignored
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  Ended wait(pid_t child) const {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    Ended ended;
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
    ended.out = read_file(path(".stdout"));
    ended.err = read_file(path(".stderr"));
    return ended;
  }

  Ended run(const std::vector<std::string>& words, const std::string& out = "") const { return wait(start(words, out)); }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("dcpcheck-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace dcpcheck
