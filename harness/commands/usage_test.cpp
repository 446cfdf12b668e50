// Help, version, mistyped words: exit codes, and which stream says what.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Usage = Program;

TEST_F(Usage, HelpIsAnAnswer) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"}, {"-h"}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.err, IsEmpty());
    for (const char* word : {"repro", "run", "ops", "kernels", "doctor", "Exit codes", "99"})
      EXPECT_THAT(ended.out, HasSubstr(word));
  }
}

TEST_F(Usage, EachVerbHasHelpWithinEightyColumns) {
  for (const std::string verb : {"repro", "run", "ops", "kernels", "doctor"}) {
    const Ended ended = run({verb, "--help"});
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.out, HasSubstr("Usage: dcpcheck " + verb));
    EXPECT_THAT(ended.out, HasSubstr("--json FILE|-"));
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_EQ(run({"--help", verb}).out, ended.out);
  }
}

TEST_F(Usage, VersionIsAnAnswer) {
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, testing::MatchesRegex("dcpcheck [0-9.]+ \\([0-9a-z-]+\\)\n"));
  EXPECT_THAT(ended.err, IsEmpty());
}

struct Mistake {
  std::vector<std::string> words;
  std::string says;
};

TEST_F(Usage, MistakesAreOneSentenceAndExitTwo) {
  const std::vector<Mistake> mistakes{{{}, "no verb was given"},
                                      {{"rpro"}, "did you mean repro?"},
                                      {{"frobnicate"}, "there is no verb 'frobnicate'"},
                                      {{"repro", "--jsn", "-"}, "did you mean --json?"},
                                      {{"--bakend", "host", "repro"}, "did you mean --backend?"},
                                      {{"repro", "--backend", "gpu"}, "--backend takes auto, host or cuda"},
                                      {{"repro", "--backend", "hst"}, "did you mean host?"},
                                      {{"repro", "--backend"}, "--backend needs a value"},
                                      {{"repro", "--json", "--list"}, "--json needs a value"},
                                      {{"repro", "--json", "a", "--json", "b"}, "--json was given 2 times"},
                                      {{"repro", "extra"}, "repro takes no 'extra'"},
                                      {{"ops", "--threads", "2"}, "ops has no option --threads"},
                                      {{"--threads", "2", "ops"}, "ops has no option --threads"},
                                      {{"run"}, "run needs a CASE"},
                                      {{"run", "repro:512-dcp4", "--threads", "0"}, "--threads takes a number"},
                                      {{"run", "repro:512-dcp4", "--threads", "two"}, "--threads takes a number"},
                                      {{"run", "repro:512-dcp4", "--seed", "xyz"}, "a seed is"},
                                      {{"run", "repro:512-dcp4", "--memory", "much"}, "--memory takes a size"},
                                      {{"run", "repro:512-dcp4", "--kernel", "@k_gatd"}, "did you mean @k_gated?"},
                                      {{"run", "repro:512-dcp4", "--kernel", "fused_norm_rope@"}, "there is no kernel"},
                                      {{"run", "repro:512-dpc4"}, "did you mean repro:512-dcp4?"},
                                      {{"ops", "fused_norm_rop"}, "did you mean fused_norm_rope?"},
                                      {{"ops", "fused_norm_rope", "more"}, "ops takes"},
                                      {{"run", "repro:512-dcp4", "--json", "/no/such/folder/x.json"}, "there is no folder"},
                                      {{"run", "repro:512-dcp4", "--json", "/tmp"}, "is a folder"}};
  for (const Mistake& mistake : mistakes) {
    const Ended ended = run(mistake.words);
    EXPECT_EQ(ended.code, 2) << mistake.says;
    EXPECT_THAT(ended.err, HasSubstr(mistake.says));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
  }
}

TEST_F(Usage, ControlCharactersInAWordDoNotReachTheTerminal) {
  EXPECT_THAT(run({"\x1b[2J"}).err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run({"run", "/no/\x1b[2J"}).err, Not(HasSubstr("\x1b")));
}

TEST_F(Usage, OpsAndKernelsAreShown) {
  const Ended ops = run({"ops"});
  EXPECT_EQ(ops.code, 0);
  EXPECT_THAT(ops.out, HasSubstr("fused_norm_rope (version 1)"));
  EXPECT_THAT(ops.out, HasSubstr("compute_slot_mapping (version 1)"));
  const Ended one = run({"ops", "fused_norm_rope", "--json", "-"});
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, HasSubstr("\"schema\": \"dcpcheck.op/1\""));
  EXPECT_THAT(one.out, Not(HasSubstr("compute_slot_mapping")));
  const Ended kernels = run({"kernels"});
  EXPECT_EQ(kernels.code, 0);
  for (const char* name : {"builtin:compute_slot_mapping\n", "builtin:fused_norm_rope\n", "builtin:fused_norm_rope@k_gated\n"})
    EXPECT_THAT(kernels.out, HasSubstr(name));
}

TEST_F(Usage, DoctorFindsTheHostHealthy) {
  const Ended ended = run({"doctor", "--json", path("doctor.json")});
  EXPECT_EQ(ended.code, 0) << ended.out;
  for (const char* word : {"Compiler", "CPU features", "OpenSSL", "CLI11", "Self-test     host"})
    EXPECT_THAT(ended.out, HasSubstr(word));
  EXPECT_THAT(read_file(path("doctor.json")), HasSubstr("\"self_tests\""));
}

TEST_F(Usage, ListRunsNothing) {
  const Ended listed = run({"run", "--list", "repro:512-dcp4", "--kernel", "@k_gated"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.out, HasSubstr("repro:512-dcp4"));
  EXPECT_THAT(listed.out, HasSubstr("builtin:fused_norm_rope@k_gated"));
  EXPECT_THAT(listed.out, Not(HasSubstr("pass")));
  const Ended repro = run({"repro", "--list"});
  EXPECT_EQ(repro.code, 0);
  EXPECT_THAT(repro.out, HasSubstr("repro:1024+1536-dcp4"));
}

TEST_F(Usage, AFullDiskBehindStdoutIsAFailureOfTheHarness) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"--version"}, {"ops"}, {"ops", "--json", "-"}}) {
    const Ended ended = run(words, "/dev/full");
    EXPECT_EQ(ended.code, 99);
    EXPECT_THAT(ended.err, HasSubstr("stdout"));
  }
}

}  // namespace
}  // namespace dcpcheck
