#include "harness/report/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// A file descriptor that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  // Closes it now: on some file systems only this says that a write failed.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

void write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_errno(path + ": the report could not be written");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Removes the file unless it got its final name.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace

ReportFile::ReportFile(std::string path) : path_(std::move(path)) {
  namespace fs = std::filesystem;
  if (path_.empty()) throw InputError("the report's file has no name: give one, or - for stdout");
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::is_directory(status)) throw InputError(path_ + " is a folder: the report needs a file");
  // A rename would put a plain file in the place of a device, a pipe, or what /dev/stdout leads to.
  direct_ = path_.starts_with("/dev/") || path_.starts_with("/proc/") || (fs::exists(status) && !fs::is_regular_file(status));
  const fs::path resolved = fs::exists(status) ? fs::canonical(path_, error) : fs::path(path_);
  target_ = (error && resolved.empty()) ? path_ : resolved.string();
  const fs::path folder = fs::path(target_).parent_path();
  if (!direct_ && !folder.empty() && !fs::is_directory(folder, error))
    throw InputError(path_ + ": there is no folder " + folder.string() + " to write the report in");
}

void ReportFile::write(std::string_view text) const {
  if (direct_) {
    // Without waiting: a pipe that nobody reads from would hold the program for ever.
    Descriptor file(::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) throw_errno(path_ + ": the report could not be written");
    const int flags = ::fcntl(file.get(), F_GETFL);
    if (flags < 0 || ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK) != 0)
      throw_errno(path_ + ": the report could not be written");
    write_all(file.get(), text, path_);
    if (!file.close()) throw_errno(path_ + ": the report could not be written");
    return;
  }
  const std::filesystem::path target(target_);
  std::string name = ".";
  name.append(target.filename().string()).append(".").append(std::to_string(::getpid())).append(".tmp");
  const std::string beside = (target.parent_path() / name).string();
  ::unlink(beside.c_str());  // of a killed process that had our number
  Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) throw_errno(path_ + ": the report could not be written");
  Temporary temporary(beside);
  write_all(file.get(), text, path_);
  if (::fsync(file.get()) != 0 || !file.close() || ::rename(beside.c_str(), target_.c_str()) != 0)
    throw_errno(path_ + ": the report could not be written");
  temporary.keep();
  // The name itself is on the disk once the folder is. Some file systems refuse to sync one: the data is safe anyway.
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  const Descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) ::fsync(parent.get());
}

}  // namespace dcpcheck
