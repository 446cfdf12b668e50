// What a campaign has done, in a file that only grows: a line a record, each with a checksum before it, so that a line that was
// torn by the end of a process or of the disk's room is known for one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "harness/adapters/child.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

struct JournalContents {
  std::vector<json::Value> records;
  std::string torn;  // what was wrong with the last line, as a sentence; "" where nothing was. It is not among the records
};

// The records of the journal `path`. Throws InputError where it cannot be read, or a line before the last is damaged.
JournalContents read_journal(const std::string& path);

class Journal {
 public:
  // Opens `path` to append to, or makes it, and locks it until the object is gone; what follows the last whole line is cut off.
  // Throws InputError where another process has it locked, or there is no such folder.
  explicit Journal(std::string path);

  // What was cut off, as JournalContents::torn.
  const std::string& torn() const { return torn_; }
  // Appends a record, and brings it to the disk where the last time is a second ago. Throws HarnessError where it does not
  // arrive whole, as on a full disk; what was appended before is still valid, and nothing is appended any more.
  void append(const json::Value& record);
  // Brings to the disk what has not been for a second; or whatever has not been, where `now`.
  void sync(bool now);

 private:
  using Clock = std::chrono::steady_clock;
  std::string path_, torn_;
  Descriptor file_;
  bool failed_ = false, dirty_ = false;
  Clock::time_point synced_ = Clock::now();
};

}  // namespace dcpcheck
