#include "harness/report/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 public:
  Output() { fs::create_directories(folder_); }
  ~Output() override { fs::remove_all(folder_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

 protected:
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // What lies in the folder: a file that was left behind would show.
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_ = fs::path(testing::TempDir()) / ("dcpcheck-output-" + std::to_string(::getpid()) + "-" +
                                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Output, ReplacesAFileWhole) {
  const fs::path path = folder_ / "report.json";
  ReportFile(path.string()).write("a long first text");
  ReportFile(path.string()).write("short");
  EXPECT_EQ(read(path), "short");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, FollowsASymbolicLink) {
  fs::create_symlink("real.json", folder_ / "link.json");
  std::ofstream(folder_ / "real.json") << "old";
  ReportFile((folder_ / "link.json").string()).write("new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(read(folder_ / "real.json"), "new");
}

TEST_F(Output, RefusesWhatCannotBeAFileBeforehand) {
  EXPECT_THROW(ReportFile(folder_.string()), InputError);
  EXPECT_THROW(ReportFile((folder_ / "no" / "such.json").string()), InputError);
  EXPECT_THROW(ReportFile(""), InputError);
}

TEST_F(Output, AFullDiskIsAFailureOfTheHarness) {
  EXPECT_THROW(ReportFile("/dev/full").write("text"), HarnessError);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Output, AFailedWriteLeavesNothing) {
  const fs::path path = folder_ / "report.json";
  const ReportFile file(path.string());
  fs::create_directory(path);  // a rename onto it fails
  std::ofstream(path / "occupied") << "x";
  EXPECT_THROW(file.write("text"), HarnessError);
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace dcpcheck
