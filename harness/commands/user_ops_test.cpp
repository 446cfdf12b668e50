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
  DCPCHECK_SLOW_WHERE_SANITIZED();
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
  DCPCHECK_SLOW_WHERE_SANITIZED();
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

// What is wrong with an op.json is found before its reference is started: each names the file and the place.
TEST_F(UserOps, AnOpThatIsBrokenIsOneSentenceAndExitTwo) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  struct Defect {
    std::string from, to, sentence;
  };
  const std::string name = R"("name": "insert_mxfp4")";
  const std::vector<Defect> defects{
      {R"("dcpcheck.op/1")", R"("dcpcheck.op/2")", "/schema is \"dcpcheck.op/2\", but dcpcheck.op/1 is needed"},
      {name, name + ", " + name, "name"},
      {name, R"("nam": "a")", "/nam is not known here; did you mean \"name\"?"},
      {name, "\"name\": \"\xFF\"", "not valid JSON"},
      {name, std::string("\"name\": \"a\0\"", 12), "it holds a NUL"},
      {R"("version": 1)", R"("version": 0)", "/version is 0"},
      {R"("geometry": ["batch")", R"("geometry": ["batches")", "/geometry/0 is \"batches\""},
      {R"("contract": {})", R"("contract": )" + std::string(40, '[') + std::string(40, ']'), "deep"},
      {R"("contract": {})", R"("contract": {"nan": {"values": []}})", "an option needs at least one value"},
      {R"("contract": {})", R"("contract": {"preset": {"values": ["a"]}})", "an option cannot be called \"preset\""},
      {R"("contract": {})", R"("contract": {}, "presets": {"old": {"contract": {"nan": ["clamp"]}}})",
       "/presets/old/contract/nan is an array, but there is no such option in /contract"},
      {R"("contract": {})", R"("contract": {}, "presets": {"old": {"requirements": [{"that": "widht % 64 == 0"}]}})",
       "of its preset old, the requirement \"widht % 64 == 0\" names 'widht', which insert_mxfp4 does not have: did you mean "
       "width?"},
      {R"("contract": {})", R"("contract": {}, "pipeline": ["fused_q"])",
       "/pipeline is there, but an op of one's own is one launch"},
      {R"("default": 128)", R"("default": 8)", "/params/width/default is 8, but an integer from 32 to 4096 is needed"},
      {R"("type": "integer")", R"("type": "int")", "/params/width/type is \"int\""},
      {R"("that": "width % 32 == 0")", R"("that": "width % 32 = 0")", "/require/0/that"},
      {R"("that": "width % 32 == 0")", R"("that": "1 % 0 == 0")", "of /require, expression \"1 % 0 == 0\": divides by zero"},
      {R"("that": "width % 32 == 0")", R"("that": "widht % 32 == 0")",
       "names 'widht', which insert_mxfp4 does not have: did you mean width?"},
      {R"("count": "width / 2")", R"("count": "64 / (width - width")", "/records/0/fields/0/count"},
      {R"("count": "width / 2")", R"j("count": "64 / (2 - 2)")j",
       "of kv_cache.codes, expression \"64 / (2 - 2)\": divides by zero"},
      {R"("count": "width / 2")", R"("count": "4611686018427387904 * 2")",
       "of kv_cache.codes, expression \"4611686018427387904 * 2\""},
      {R"("count": "width / 2")", R"("count": "group.blocks")", "names 'group.blocks', which insert_mxfp4 does not have"},
      {R"("name": "scales")", R"("name": "codes")", "another field of the record is called that"},
      {R"("name": "slot_mapping")", R"("name": "rows")", "another tensor is called that"},
      {R"("slot_mapping": "slot_mapping")", R"("slot_mapping": "slots")",
       "\"kv_cache\" refers to \"slots\", which is no input"},
      {R"("values": "normal:1")", R"("values": "normal:one")", "/tensors/0/values"},
      {R"("role": "cache")", R"("role": "cash")", "/tensors/2/role is \"cash\""},
      {R"("shape": ["T", "width"])", R"("shape": [])", "/tensors/0/shape is an array, but a tensor needs at least one axis"},
      {R"("shape": ["T", "width"])", R"("shape": ["T", "widths"])",
       "of rows, the expression \"widths\" names 'widths', which "},
      {R"("exec:python3 reference.py")", R"("lib:)" + std::string(DCPCHECK_LIBRARIES) + R"(/fused_eh_norm.so")",
       "it is named as the reference of insert_mxfp4, but is a kernel of fused_eh_norm"},
      {R"("exec:python3 reference.py")", R"("lib:)" + std::string(DCPCHECK_LIBRARIES) + R"(/reference_on_cuda.so")",
       "it is named as the reference of insert_mxfp4, which must run on the host, but runs on CUDA alone"},
      {R"("exec:python3 reference.py")", R"("lib:)" + std::string(DCPCHECK_LIBRARIES) + R"(/wrong_version.so")",
       "it was built for version 999 of dcpcheck_kernel.h"},
  };
  for (std::size_t i = 0; i < defects.size(); ++i) {
    const Ended ended = run({"ops", "--ops", op_file("defect-" + std::to_string(i), defects[i].from, defects[i].to)});
    EXPECT_EQ(ended.code, 2) << defects[i].to << "\n" << ended.out;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(defects[i].sentence));
  }
  const std::string whole = read_file(kExample + "/insert_mxfp4.op.json");
  for (std::size_t length = 0; length < whole.size() - 2; length += 97) {
    file("short/a.op.json", whole.substr(0, length));
    EXPECT_EQ(run({"ops", "--ops", path("short")}).code, 2) << length;
  }
}

TEST_F(UserOps, OneBrokenOpOfSeveralAddsNone) {
  file("two/a.op.json", read_file(kExample + "/insert_mxfp4.op.json"));
  file("two/b.op.json", "{");
  const Ended ended = run({"ops", "insert_mxfp4", "--ops", path("two")});
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_THAT(ended.err, HasSubstr("b.op.json"));
}

TEST_F(UserOps, AReferenceThatDoesNotAnswerIsOneSentence) {
  const std::string reference = "lib:" + std::string(DCPCHECK_LIBRARIES) + "/reference_that_refuses.so";
  const std::string folder = op_file("refuses", "exec:python3 reference.py", reference);
  ASSERT_EQ(run({"gen", "insert_mxfp4", "--ops", folder, "--cases", "1", "--out", path("cases")}).code, 0);
  const Ended ended = run({"run", "--backend", "host", "--ops", folder, "--kernel", kKernel, path("cases")});
  EXPECT_EQ(ended.code, 99) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("the reference of insert_mxfp4, " + reference + ", did not answer: it gave no reason"));
}

}  // namespace
}  // namespace dcpcheck
