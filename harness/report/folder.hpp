// A folder of files that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace dcpcheck {

class ReportFolder {
 public:
  // `path` is to be: nothing, or an empty folder. Throws InputError where anything else is there, or it lies in no folder.
  explicit ReportFolder(std::string path);
  // Removes what was written, unless finish() was called.
  ~ReportFolder();
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  // Writes a file of the folder, "rank0/q_c.npy". Throws HarnessError where that does not succeed.
  void write(const std::string& name, std::string_view bytes);
  // Gives the folder its name. Throws HarnessError where that does not succeed.
  void finish();

 private:
  std::string path_;       // as it was given
  std::string temporary_;  // beside it; empty: there is none (yet, or any more)
};

}  // namespace dcpcheck
