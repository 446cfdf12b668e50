// Where a report goes: a file that appears whole or not at all, or stdout.
#pragma once

#include <string>
#include <string_view>

namespace dcpcheck {

// A file to be written at the end of a run. What can be known beforehand is checked when it is made, so that an hour's
// work is not lost to a mistyped path.
class ReportFile {
 public:
  // Throws InputError where `path` is a folder, or lies in none.
  explicit ReportFile(std::string path);

  // Writes `text` under a name of its own beside the file, brings it to the disk, and renames it; a device or a pipe
  // is written directly. Throws HarnessError, and leaves nothing behind, where that does not succeed.
  void write(std::string_view text) const;

 private:
  std::string path_;    // as it was given
  std::string target_;  // symbolic links followed
  bool direct_ = false;
};

}  // namespace dcpcheck
