#include "harness/campaign/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

class JournalTest : public testing::Test {
 protected:
  JournalTest() { fs::remove_all(folder_), fs::create_directories(folder_); }
  ~JournalTest() override { fs::remove_all(folder_); }

  static json::Value record(int number) { return json::Object{{"number", number}, {"text", "ünd\n\"quoted\""}}; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  fs::path folder_ = fs::path(testing::TempDir()) / ("journal-" + std::to_string(::getpid()));
  std::string path_ = (folder_ / "journal").string();
};

TEST_F(JournalTest, ReadsBackWhatWasAppended) {
  {
    Journal journal(path_);
    for (int i = 0; i < 5; ++i) journal.append(record(i));
  }
  {
    Journal journal(path_);
    journal.append(record(5));
    EXPECT_EQ(journal.torn(), "");
  }
  const JournalContents contents = read_journal(path_);
  EXPECT_EQ(contents.torn, "");
  ASSERT_EQ(contents.records.size(), 6U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(contents.records[static_cast<std::size_t>(i)], record(i));
}

// Wherever the end of the process or the disk came.
TEST_F(JournalTest, ATornLastLineIsDroppedAndSaidAndTheRestGoesOn) {
  {
    Journal journal(path_);
    for (int i = 0; i < 3; ++i) journal.append(record(i));
  }
  const std::string whole = text();
  const std::size_t second = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t end = second; end <= whole.size(); ++end) {
    write(whole.substr(0, end));
    const JournalContents contents = read_journal(path_);
    const bool torn = end != second && end != whole.size();
    EXPECT_EQ(contents.records.size(), end == whole.size() ? 3U : 2U) << end;
    EXPECT_EQ(contents.torn.empty(), !torn) << end;
    Journal journal(path_);
    EXPECT_EQ(journal.torn().empty(), !torn) << end;
    journal.append(record(9));
    EXPECT_EQ(read_journal(path_).records.back(), record(9)) << end;
  }
}

TEST_F(JournalTest, ALastLineOfWrongBytesIsTornAndOneBeforeItIsDamage) {
  {
    Journal journal(path_);
    for (int i = 0; i < 3; ++i) journal.append(record(i));
  }
  const std::string whole = text();
  std::string last = whole;
  last[whole.size() - 4] ^= 1;
  write(last);
  EXPECT_EQ(read_journal(path_).records.size(), 2U);
  EXPECT_NE(read_journal(path_).torn, "");
  std::string first = whole;
  first[20] ^= 1;
  write(first);
  EXPECT_THROW(read_journal(path_), InputError);
}

TEST_F(JournalTest, IsOneCampaignsAtATime) {
  Journal journal(path_);
  try {
    Journal second(path_);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("another campaign"));
  }
}

// A limit on a file's size stands for a disk that is full.
TEST_F(JournalTest, WhereTheDiskIsFullWhatIsThereStaysValid) {
  Journal journal(path_);
  journal.append(record(1));
  const std::string before = text();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  rlimit small = limit;
  small.rlim_cur = before.size() + 10;
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said;
  try {
    journal.append(record(2));
  } catch (const HarnessError& error) {
    said = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  static_cast<void>(::signal(SIGXFSZ, old));
  EXPECT_THAT(said, testing::HasSubstr("the campaign stops"));
  EXPECT_EQ(text(), before);
  journal.append(record(3));  // it has ended: nothing comes behind what may be missing
  EXPECT_EQ(text(), before);
}

TEST_F(JournalTest, AFolderThatThereIsNotIsSaid) { EXPECT_THROW(Journal((folder_ / "no" / "journal").string()), InputError); }

}  // namespace
}  // namespace dcpcheck
