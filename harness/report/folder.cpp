#include "harness/report/folder.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

// Brings `bytes` to the disk; errno says why where false.
bool write_whole(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  bool good = true;
  while (good && !bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  good = good && ::fsync(file) == 0;
  const int error = errno;
  if (::close(file) == 0)
    errno = error;  // on some file systems only this says that a write failed
  else
    good = false;
  return good;
}

}  // namespace

ReportFolder::ReportFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  if (path_.empty()) throw InputError("the folder to write to has no name");
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path_, error);
  if (fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(path_, error)))
    throw InputError(path_ + ": is there already, and nothing is overwritten");
  const fs::path parent = fs::path(path_).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error))
    throw InputError(path_ + ": there is no folder " + parent.string() + " to make it in");
}

ReportFolder::~ReportFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void ReportFolder::write(const std::string& name, std::string_view bytes) {
  const auto check = [&](const std::error_code& error) {
    if (error) throw HarnessError(path_ + "/" + name + ": it could not be written: " + error.message());
  };
  std::error_code error;
  if (temporary_.empty()) {
    const fs::path path(path_);
    const std::string beside =
        (path.parent_path() / ("." + path.filename().string() + "." + std::to_string(::getpid()) + ".tmp"));
    fs::remove_all(beside, error);  // of a killed process that had our number
    fs::create_directory(beside, error);
    check(error);
    temporary_ = beside;
  }
  const fs::path file = fs::path(temporary_) / name;
  fs::create_directories(file.parent_path(), error);
  check(error);
  if (!write_whole(file.string(), bytes)) throw_errno(path_ + "/" + name + ": it could not be written");
}

void ReportFolder::finish() {
  if (temporary_.empty()) throw HarnessError(path_ + ": nothing was written to it");
  // In the place of an empty folder, but of nothing else: what came there since is kept.
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno(path_ + ": the folder could not be given its name");
  temporary_.clear();
}

}  // namespace dcpcheck
