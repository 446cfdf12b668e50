// --kernel exec:COMMAND: kernels in processes, as a person runs them.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFolder = DCPCHECK_SOURCE_DIR "/harness/adapters/";

std::string python(const std::string& script) {
  return "exec:exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + kFolder + "python' python3 '" + kFolder + "'" + script;
}

class Process : public Program {
 protected:
  std::string eh_norm(int width) const {
    return file("eh-norm-" + std::to_string(width) + ".json", R"({"schema": "dcpcheck.case/1", "name": "eh-norm-)" +
                                                                  std::to_string(width) + R"(", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2},
"params": {"hidden_size": )" + std::to_string(width) + R"(, "embeds_eps": 0.5, "hidden_eps": 0.25}}})");
  }
};

TEST_F(Process, TheExamplePassesAndTheReplayLineCarriesIt) {
  const std::string spec = python("examples/host/fused_eh_norm.py");
  const std::string small = eh_norm(8);
  const Ended ended = run({"run", "--backend", "host", "--kernel", spec, small});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(ended.out, HasSubstr("fused_eh_norm.py"));
  EXPECT_THAT(ended.out, HasSubstr("1 pass"));
  EXPECT_THAT(ended.out, HasSubstr(" --kernel 'exec:exec env "));
  EXPECT_EQ(run({"run", "--backend", "host", "--kernel", "fused_eh_norm=" + spec, small}).code, 0);
  const Ended other = run({"run", "--backend", "host", "--kernel", "fused_q=" + spec, small});
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err, "dcpcheck: --kernel fused_q=" + spec + ": that kernel is one of fused_eh_norm\n");
}

TEST_F(Process, ACrashFailsItsCaseAndNoOther) {
  const Ended ended = run({"run", "--backend", "host", "--kernel", python("process_test/misbehaves.py exits"), "--json", "-",
                           eh_norm(8), eh_norm(9), eh_norm(10)});
  EXPECT_EQ(ended.code, 1) << ended.err;
  const json::Value report = json::parse(ended.out, "report", {std::size_t{1} << 26, 32});
  std::vector<std::string> told;
  for (const json::Value& result : *report.find("results")->get<json::Array>())
    told.push_back(*result.find("status")->get<std::string>() + " " + *result.find("reason")->get<std::string>() + " " +
                   *result.find("detail")->get<std::string>());
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "pass none ",
                "crash process-ended rank 0: its process ended before an answer: exit code 3; its stderr ends: out of tiles",
                "pass none "}));
}

TEST_F(Process, WhatDoesNotStartIsTwoAndOneSentence) {
  const Ended ended = run({"run", "--backend", "host", "--kernel", "exec:echo 'no licence' >&2; exit 3", eh_norm(8)});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "dcpcheck: exec:echo 'no licence' >&2; exit 3: its process ended before its ready line: exit code 3; its stderr "
            "ends: no licence\n");
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(Process, KernelsShowsWhatItDeclares) {
  const std::string spec = python("process_test/prints.py");
  const Ended ended = run({"kernels", spec});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("    prints: fused_eh_norm, host\n"));
  EXPECT_THAT(ended.out, HasSubstr("    Requires hidden_size < 100 (short rows)\n"));
  EXPECT_THAT(ended.out, HasSubstr("    Loaded from "));
  const Ended in_json = run({"kernels", spec, "--json", "-"});
  const json::Value list = json::parse(in_json.out, "list");
  EXPECT_THAT(*list.get<json::Array>()->front().find("declared")->find("source")->get<std::string>(),
              HasSubstr("process_test/prints.py"));
}

}  // namespace
}  // namespace dcpcheck
