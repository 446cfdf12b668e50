#include "harness/campaign/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kChecksum = 16;  // hex digits of the SHA-256 of the record's text
constexpr json::Limits kLimits{.bytes = std::size_t{8} << 20, .depth = 48};

std::string line_of(const json::Value& record) {
  const std::string text = json::dump(record);
  return sha256_hex(text).substr(0, kChecksum) + " " + text + "\n";
}

// What is wrong with a line; "" where it is whole.
std::string damage(std::string_view line) {
  if (line.size() <= kChecksum || line[kChecksum] != ' ') return "it has no checksum";
  if (sha256_hex(line.substr(kChecksum + 1)).substr(0, kChecksum) != line.substr(0, kChecksum))
    return "its checksum is not that of its text";
  return "";
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(text::printable(path) + ": the journal cannot be read: " + std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw InputError(text::printable(path) + ": the journal cannot be read to its end");
  return text;
}

// Up to where `text` has whole lines, as far as the last one is whole, too; what is wrong with what follows.
std::pair<std::size_t, std::string> whole_lines(const std::string& text) {
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return {0, text.empty() ? "" : "the first line has no end"};
  const std::size_t begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
  if (const std::string wrong = damage(std::string_view(text).substr(begin, end - begin)); !wrong.empty())
    return {begin, wrong};
  return {end + 1, end + 1 == text.size() ? "" : "it has no end"};
}

std::string said_of(const std::string& path, const std::string& torn) {
  if (torn.empty()) return "";
  return text::printable(path) + ": the last line was torn (" + torn + ") and is left out; what it told is run again";
}

}  // namespace

JournalContents read_journal(const std::string& path) {
  const std::string text = contents_of(path);
  const auto [end, torn] = whole_lines(text);
  JournalContents contents;
  contents.torn = said_of(path, torn);
  std::int64_t number = 1;
  for (std::size_t at = 0; at < end; ++number) {
    const std::size_t stop = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, stop - at);
    const std::string source = text::printable(path) + ", line " + std::to_string(number);
    if (const std::string wrong = damage(line); !wrong.empty())
      throw InputError(source + " is damaged: " + wrong +
                       "; it is not the last, so the journal was changed after it was written");
    contents.records.push_back(json::parse(line.substr(kChecksum + 1), source, kLimits));
    at = stop + 1;
  }
  return contents;
}

Journal::Journal(std::string path) : path_(std::move(path)) {
  const std::string shown = text::printable(path_);
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file_.get() < 0) throw InputError(shown + ": the journal cannot be opened: " + std::strerror(errno));
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno("flock of " + shown);
    throw InputError(shown + ": another campaign is writing into this folder; give this one a folder of its own with --out");
  }
  const auto [end, torn] = whole_lines(contents_of(path_));
  torn_ = said_of(path_, torn);
  struct stat now {};
  if (::fstat(file_.get(), &now) != 0) throw_errno("fstat of " + shown);
  if (static_cast<std::size_t>(now.st_size) != end && ::ftruncate(file_.get(), static_cast<off_t>(end)) != 0)
    throw_errno("ftruncate of " + shown);
}

void Journal::append(const json::Value& record) {
  if (failed_) return;
  const std::string line = line_of(record);
  struct stat before {};
  if (::fstat(file_.get(), &before) != 0) throw_errno("fstat of " + path_);
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t wrote = ::write(file_.get(), line.data() + at, line.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      failed_ = true;
      // Half a line would be dropped when it is read; without it there is nothing to say about it.
      static_cast<void>(::ftruncate(file_.get(), before.st_size));
      static_cast<void>(::fdatasync(file_.get()));
      errno = error;
      throw_errno(path_ +
                  ": the campaign stops, as its journal could not be written; what it has done until now is kept (--resume)");
    }
    at += static_cast<std::size_t>(wrote);
  }
  dirty_ = true;
  sync(false);
}

void Journal::sync(bool now) {
  if (!dirty_ || failed_ || (!now && Clock::now() - synced_ < std::chrono::seconds(1))) return;
  if (::fdatasync(file_.get()) != 0) {
    failed_ = true;
    throw_errno(path_ + ": the campaign stops, as its journal could not be brought to the disk");
  }
  dirty_ = false;
  synced_ = Clock::now();
}

}  // namespace dcpcheck
