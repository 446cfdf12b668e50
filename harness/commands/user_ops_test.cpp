// --ops DIR: ops of a user's own, as a person runs them.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kAdapters = DCPCHECK_SOURCE_DIR "/harness/adapters/";
const std::string kExample = kAdapters + "examples/insert_mxfp4";
const std::string kKernel = std::string("lib:" DCPCHECK_LIBRARIES) + "/insert_mxfp4.so";
const std::string kWrongKernel = std::string("lib:" DCPCHECK_LIBRARIES) + "/insert_mxfp4_scale.so";

class UserOps : public Program {
 protected:
  UserOps() {
    ::setenv("PYTHONPATH", (kAdapters + "python").c_str(), 1);
    ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  }

  std::string op_file(const std::string& folder, const std::string& from, const std::string& to) const {
    std::string text = read_file(kExample + "/insert_mxfp4.op.json");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    file(folder + "/insert_mxfp4.op.json", text);
    return path(folder);
  }
};

TEST_F(UserOps, TheExampleIsGeneratedJudgedAndHeldToItsLaws) {
  const Ended drawn = run({"gen", "insert_mxfp4", "--ops", kExample, "--cases", "30", "--out", path("cases")});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  const Ended judged = run({"run", "--backend", "host", "--ops", kExample, "--kernel", kKernel, path("cases")});
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("30 results: 30 pass; 30 as expected"));
  EXPECT_THAT(judged.out, HasSubstr(" --ops " + kExample + " ")) << "the replay line";
  const Ended law = run({"run", "--backend", "host", "--ops", kExample, "--kernel", kKernel, "--law", "union_of_shards",
                         "--law", "chunking", path("cases")});
  EXPECT_EQ(law.code, 0) << law.out << law.err;
  EXPECT_THAT(law.out, HasSubstr(" pass"));
}

// The first scale of each row is twice as large.
TEST_F(UserOps, AWrongKernelIsFound) {
  const Ended drawn = run({"gen", "insert_mxfp4", "--ops", kExample, "--cases", "12", "--out", path("cases")});
  ASSERT_EQ(drawn.code, 0) << drawn.err;
  const Ended judged = run({"run", "--backend", "host", "--ops", kExample, "--kernel", kWrongKernel, path("cases")});
  EXPECT_EQ(judged.code, 1) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("kv_cache: wrong values"));
}

TEST_F(UserOps, IsShownAsTheOthersAre) {
  const Ended text = run({"ops", "insert_mxfp4", "--ops", kExample});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("codes u8 [width / 2]"));
  EXPECT_THAT(text.out, HasSubstr("exec:python3 reference.py"));
}

TEST_F(UserOps, WhatIsNoOpIsOneSentenceAndExitTwo) {
  const auto refused = [this](const std::string& folder) {
    const Ended ended = run({"ops", "--ops", folder});
    EXPECT_EQ(ended.code, 2) << ended.out;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(refused(path("nowhere")), HasSubstr("cannot be read"));
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(refused(path("empty")), HasSubstr("there is no *.op.json in it"));
  EXPECT_THAT(refused(op_file("name", "\"name\": \"insert_mxfp4\"", "\"name\": \"fused_q\"")),
              HasSubstr("of that name already"));
  EXPECT_THAT(refused(op_file("none", "\"reference\": \"exec:python3 reference.py\",", "")),
              HasSubstr("/reference is missing"));
  EXPECT_THAT(refused(op_file("kind", "exec:python3 reference.py", "builtin:fused_q")), HasSubstr("lib:FILE or exec:COMMAND"));
  EXPECT_THAT(refused(op_file("file", "exec:python3 reference.py", "lib:./none.so")), HasSubstr("cannot be loaded"));
  EXPECT_THAT(refused(op_file("ends", "exec:python3 reference.py", "exec:exit 3")), HasSubstr("exit code 3"));
  EXPECT_THAT(refused(op_file("law", "\"chunking\"", "\"chunkin\"")), HasSubstr("chunkin"));
  EXPECT_THAT(refused(op_file("told", "\"count\": \"width / 2\"", "\"count\": \"width / 2\", \"told\": \"value\"")),
              HasSubstr("integers are told"));
  EXPECT_THAT(refused(op_file("expression", "width / 32", "width / (32")), HasSubstr("insert_mxfp4.op.json"));
}

}  // namespace
}  // namespace dcpcheck
