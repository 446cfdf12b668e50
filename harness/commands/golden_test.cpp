// `golden`: the stored goldens, and that verify tells apart what became of them.
#include <gmock/gmock.h>
#include <algorithm>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::int64_t number_at(const json::Value& value, std::string_view key) { return *at(value, key).get<std::int64_t>(); }

// Text broken at spaces to fit a terminal, in one line.
std::string unwrapped(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] == ' ') ++end;
    text.replace(at, end - at, " ");
  }
  return text;
}

class Golden : public Program {
 protected:
  // Three cases: of an op with caches, of one with fp32 outputs, and of one that an example library has.
  std::string cases() const {
    file("cases/norm.json",
         R"({"schema": "dcpcheck.case/1", "name": "norm", "source": "a test", "case": {"op": "fused_norm_rope",
"seed": "0000000000000001", "geometry": {"batch": [{"uncached": 24}], "tp": 2, "dcp": {"world_size": 2}, "caches": {"mla": {},
"indexer": {"slot_mapping": "same"}}}, "params": {"q_lora_rank": 128, "kv_lora_rank": 64, "qk_rope_head_dim": 32,
"index_head_dim": 64, "index_rope_dim": 32, "index_topk": 64, "mla_layout": "bf16"}}})");
    file("cases/merge.json", R"({"schema": "dcpcheck.case/1", "name": "merge", "source": "a test", "case": {"op": "merge_ranks",
"seed": "0000000000000011", "geometry": {"batch": [{"uncached": 3}], "tp": 2, "dcp": {"world_size": 2}}}})");
    file("cases/eh-norm.json", R"({"schema": "dcpcheck.case/1", "name": "eh-norm", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2},
"params": {"hidden_size": 64, "embeds_eps": 0.5, "hidden_eps": 0.25}}})");
    return path("cases");
  }

  Ended write(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"golden", "write", "--backend", "host", "--cases", cases(), "-o", path(name)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  Ended verify(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"golden", "verify", "--backend", "host", path(name)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  // The golden `from` as `to`, with `what` replaced where it first stands after `after`.
  void edit(const std::string& from, const std::string& to, const std::string& after, const std::string& what,
            const std::string& other) const {
    std::string text = read_file(path(from));
    const std::size_t start = text.find(after);
    ASSERT_NE(start, std::string::npos) << after;
    const std::size_t found = text.find(what, start);
    ASSERT_NE(found, std::string::npos) << what;
    file(to, text.replace(found, what.size(), other));
  }

  // `golden` as `name`, without the digits after `key` in the case called `of`.
  void spoil(const std::string& golden, const std::string& name, const std::string& of, const std::string& key) const {
    const std::string text = read_file(path(golden));
    const std::size_t start = text.find("\"name\": \"" + of + "\"");
    const std::size_t at = text.find("\"" + key + "\":", start);
    ASSERT_NE(at, std::string::npos) << key;
    const std::size_t digits = text.find('"', at + key.size() + 3) + 1;
    std::string other = text;
    file(name, other.replace(digits, 8, text.compare(digits, 8, "00000000") == 0 ? "11111111" : "00000000"));
  }

  static const json::Value& finding(const json::Value& check, const std::string& name) {
    for (const json::Value& one : *at(check, "findings").get<json::Array>())
      if (text_at(one, "name") == name) return one;
    throw std::runtime_error("no finding of " + name);
  }
};

// ---- the stored ones ----

void expect_stored(const Ended& ended, const std::string& entries) {
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_EQ(ended.out, entries + " entries: " + entries + " same\n");
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST_F(Golden, StoredOfTheRegressions) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  expect_stored(run({"golden", "verify", "--backend", "host", (kCorpora / "golden/regressions.golden.json").string()}), "100");
}

// Sanitizers make these take many minutes, and the regressions run the same code.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Golden, StoredOfTheEdges) {
  expect_stored(run({"golden", "verify", "--backend", "host", (kCorpora / "golden/edge.golden.json").string()}), "254");
}

TEST_F(Golden, StoredOfTheKernelMatrix) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  expect_stored(run({"golden", "verify", "--backend", "host", (kCorpora / "golden/kernel-matrix.golden.json").string()}), "67");
}

TEST_F(Golden, StoredOfTheScenarios) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  expect_stored(run({"golden", "verify", "--backend", "host", (kCorpora / "golden/issue-54907.golden.json").string()}), "18");
}
#endif

// A change of one rounding point, against goldens that were made before it.
TEST_F(Golden, AChangedRoundingIsNamedToTheElement) {
  const std::string kernel = "builtin:fused_norm_rope@rounded_before_the_weight", cases = (kCorpora / "edge").string();
  const Ended ended = run({"golden", "verify", "--backend", "host", (kCorpora / "golden/edge.golden.json").string(), "--kernel",
                           kernel, "--json", path("check.json")});
  EXPECT_EQ(ended.code, 1) << ended.err;
  const json::Value check = parsed(read_file(path("check.json")));
  const Ended judged = run({"run", "--backend", "host", "--kernel", kernel, "--json", path("report.json"), cases});
  EXPECT_EQ(judged.code, 1);
  const json::Value report = parsed(read_file(path("report.json")));
  std::size_t differ = 0, known = 0;
  for (const json::Value& result : *at(report, "results").get<json::Array>()) {
    const json::Array& violations = *at(result, "violations").get<json::Array>();
    if (violations.empty()) continue;
    const json::Value& one = finding(check, text_at(result, "name"));
    SCOPED_TRACE(text_at(result, "name"));
    EXPECT_EQ(text_at(one, "status"), "outputs-differ");
    ++differ;
    const json::Array& places = *at(one, "places").get<json::Array>();
    ASSERT_FALSE(places.empty());
    for (const json::Value& place : places) {
      EXPECT_THAT(text_at(place, "output"), testing::StartsWith("rank"));
      EXPECT_GE(number_at(place, "token"), 0);
      EXPECT_GE(number_at(place, "count"), 1);
      EXPECT_FALSE(at(place, "index").get<json::Array>()->empty());
      if (place.find("was") == nullptr) continue;
      ++known;
      EXPECT_NE(text_at(place, "was"), text_at(place, "is"));
    }
  }
  EXPECT_GE(differ, 5U);
  EXPECT_GE(known, differ) << "our own kernel has the bits that the golden is of";
  EXPECT_THAT(unwrapped(ended.out), AllOf(HasSubstr("q_c_out, rank 0: token "), HasSubstr(", is 0x")));
}

// ---- what verify tells apart ----

TEST_F(Golden, WrittenTwiceIsTheSameBytesAndVerifies) {
  const Ended first = write("a.golden.json", {"--threads", "1"}), second = write("b.golden.json", {"--threads", "3"});
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(read_file(path("a.golden.json")), read_file(path("b.golden.json")));
  const Ended ended = verify("a.golden.json");
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_EQ(ended.out, "3 entries: 3 same\n");
  const Ended diff = run({"golden", "diff", path("a.golden.json"), path("b.golden.json")});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
}

TEST_F(Golden, OtherInputsAreToldFromOtherOutputs) {
  ASSERT_EQ(write("a.golden.json").code, 0);
  spoil("a.golden.json", "inputs.golden.json", "norm", "inputs");
  const Ended inputs = verify("inputs.golden.json");
  EXPECT_EQ(inputs.code, 1);
  EXPECT_THAT(unwrapped(inputs.out), AllOf(HasSubstr("norm, fused_norm_rope, builtin:fused_norm_rope: inputs-differ"),
                                           HasSubstr("outputs cannot be compared"), HasSubstr("2 same and 1 inputs-differ")));
  spoil("a.golden.json", "outputs.golden.json", "norm", "raw");
  const Ended outputs = verify("outputs.golden.json");
  EXPECT_EQ(outputs.code, 1);
  EXPECT_THAT(unwrapped(outputs.out),
              AllOf(HasSubstr("builtin:fused_norm_rope: outputs-differ"), HasSubstr("rank0/indexer_cache"),
                    HasSubstr("a digest does not say which they were")));
  for (const char* spoiled : {"inputs.golden.json", "outputs.golden.json"}) {
    const Ended diff = run({"golden", "diff", path("a.golden.json"), path(spoiled)});
    EXPECT_EQ(diff.code, 1) << diff.out;
    EXPECT_THAT(diff.out, HasSubstr("-differ"));
  }
}

TEST_F(Golden, AMissingCaseIsNamed) {
  ASSERT_EQ(write("a.golden.json").code, 0);
  fs::remove(path("cases/merge.json"));
  const Ended gone = verify("a.golden.json");
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(unwrapped(gone.out),
              AllOf(HasSubstr("merge, merge_ranks, builtin:merge_ranks: missing"), HasSubstr("no such case")));
  edit("a.golden.json", "b.golden.json", "{", "\"name\": \"merge\"", "\"name\": \"norm\"");
  EXPECT_THAT(unwrapped(verify("b.golden.json").out), HasSubstr("the case of that name is another one now"));
  cases();
  file("cases/more.json", R"({"schema": "dcpcheck.case/1", "name": "more", "case": {"op": "merge_ranks",
"seed": "0000000000000012", "geometry": {"batch": [{"uncached": 3}], "tp": 2, "dcp": {"world_size": 2}}}})");
  const Ended more = verify("a.golden.json");
  EXPECT_EQ(more.code, 0) << more.out;
  EXPECT_THAT(unwrapped(more.out), HasSubstr("1 case without a golden: more"));
  ASSERT_EQ(run({"golden", "write", "--backend", "host", "--cases", path("cases"), "-o", path("c.golden.json")}).code, 0);
  EXPECT_THAT(run({"golden", "diff", path("a.golden.json"), path("c.golden.json")}).out, HasSubstr("3 same and 1 added"));
  EXPECT_THAT(run({"golden", "diff", path("c.golden.json"), path("a.golden.json")}).out, HasSubstr("3 same and 1 missing"));
}

TEST_F(Golden, AKernelFromElsewhereBelongsToWhereItRan) {
  const std::string kernel = library("fused_eh_norm");
  const Ended made = write("a.golden.json", {"--kernel", kernel});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("left out: norm"), HasSubstr("1 entry")));
  EXPECT_EQ(verify("a.golden.json").code, 0);

  spoil("a.golden.json", "b.golden.json", "eh-norm", "raw");
  const Ended here = verify("b.golden.json");
  EXPECT_EQ(here.code, 1) << here.out;
  EXPECT_THAT(here.out, HasSubstr("outputs-differ"));
  edit("b.golden.json", "c.golden.json", "\"environment\"", "\"architecture\":\"", "\"architecture\":\"not ");
  const Ended there = verify("c.golden.json");
  EXPECT_EQ(there.code, 0) << there.out;
  EXPECT_THAT(there.out, HasSubstr("other-bits"));
  spoil("c.golden.json", "d.golden.json", "eh-norm", "portable");
  EXPECT_EQ(verify("d.golden.json").code, 1);

  // Ours against theirs: whatever the bits, the portable digests are the same.
  ASSERT_EQ(write("ours.golden.json").code, 0);
  const Ended against = verify("ours.golden.json", {"--kernel", kernel});
  EXPECT_EQ(against.code, 0) << against.out << against.err;
  EXPECT_THAT(against.out, HasSubstr("2 skipped"));
}

TEST_F(Golden, AWrongKernelIsNoGoldenAndNoMatch) {
  const Ended refused = write("a.golden.json", {"--kernel", "@k_gated"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("norm: builtin:fused_norm_rope@k_gated comes to fail (unwritten)"),
                                 HasSubstr("was not written")));
  EXPECT_FALSE(fs::exists(path("a.golden.json")));
  ASSERT_EQ(write("b.golden.json").code, 0);
  const Ended wrong = verify("b.golden.json", {"--kernel", "@k_gated"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(unwrapped(wrong.out), AllOf(HasSubstr("k_pe_out, rank 0: token 1, element [1, 0]: was 0x"),
                                          HasSubstr("fail (unwritten)"), HasSubstr("1 outputs-differ and 2 skipped")));
}

// Other bits within every bound are as right: only laws see these kernels.
TEST_F(Golden, OtherBitsThatAreAsRightAreSaidAndNoFailure) {
  ASSERT_EQ(
      run({"golden", "write", "--backend", "host", "--cases", (kCorpora / "laws").string(), "-o", path("laws.golden.json")})
          .code,
      0);
  for (const std::string kernel :
       {"fused_norm_rope@approximate_where_owned", "@first_of_equals_favoured", "@largest_score_inexact"}) {
    const Ended other = verify("laws.golden.json", {"--kernel", kernel});
    EXPECT_EQ(other.code, 0) << kernel << other.out << other.err;
    EXPECT_THAT(other.out, HasSubstr("other-bits")) << kernel;
  }
}

// What is written beside the outputs is in no digest, and is found nevertheless.
TEST_F(Golden, StrayWritesAreFound) {
  ASSERT_EQ(write("a.golden.json").code, 0);
  const Ended stray = verify("a.golden.json", {"--kernel", "@cache_unguarded"});
  EXPECT_EQ(stray.code, 1);
  EXPECT_THAT(unwrapped(stray.out), AllOf(HasSubstr("not-as-expected"), HasSubstr("the kernel comes to fail")));
}

TEST_F(Golden, APipelineIsHeldToItsTokens) {
  file("pipelines/one.json", R"({"schema": "dcpcheck.case/1", "name": "one", "source": "a test", "case": {
"op": "generate", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2, "dcp": {"world_size": 2},
"caches": {"mla": {"block_size": 4}}}, "params": {"tokens": 2}}})");
  ASSERT_EQ(run({"golden", "write", "--backend", "host", "--cases", path("pipelines"), "-o", path("p.golden.json")}).code, 0);
  EXPECT_EQ(verify("p.golden.json").code, 0);
  const std::string kernel = "merge_ranks=" + library("merge_ranks");
  const Ended theirs = verify("p.golden.json", {"--kernel", kernel});
  EXPECT_EQ(theirs.code, 0) << theirs.out << theirs.err;
  const Ended wrong = verify("p.golden.json", {"--kernel", "fused_norm_rope@k_gated"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(unwrapped(wrong.out), HasSubstr("prefill.fused_norm_rope.kv_c_out"));
}

TEST_F(Golden, GoldensAmongCasesAreNoCases) {
  ASSERT_EQ(write("a.golden.json").code, 0);
  fs::copy_file(path("a.golden.json"), path("cases/a.golden.json"));
  EXPECT_EQ(run({"run", "--list", path("cases")}).code, 0);
}

TEST_F(Golden, BadUsageIsTwoAndSaysWhat) {
  ASSERT_EQ(write("a.golden.json").code, 0);
  fs::create_directories(path("empty"));
  const std::string golden = path("a.golden.json");
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad{
      {{"golden"}, "golden needs a write|verify|diff"},
      {{"golden", "verfy"}, "did you mean verify?"},
      {{"golden", "write"}, "golden write needs -o FILE"},
      {{"golden", "write", "-o", path("no/where.json")}, "no/where.json"},
      {{"golden", "write", "more", "-o", path("b.json")}, "takes no 'more'"},
      {{"golden", "verify"}, "golden verify needs FILE"},
      {{"golden", "verify", path("none.json")}, "none.json"},
      {{"golden", "verify", path("cases/norm.json")}, "norm.json"},
      {{"golden", "verify", golden, "-o", "x"}, "golden verify has no option -o"},
      {{"golden", "diff", golden}, "golden diff needs A and B"},
      {{"golden", "diff", golden, golden, "--cases", "x"}, "golden diff has no option --cases"},
      {{"golden", "write", "--cases", path("cases"), "-o", path("b.json"), "--kernel", "@k_gated", "--kernel",
        "fused_norm_rope"},
       "one kernel for a case"}};
  for (const auto& [words, said] : bad) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 2) << said << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(said));
  }
  const Ended nothing = run({"golden", "write", "--backend", "host", "--cases", path("empty"), "-o", path("b.json")});
  EXPECT_EQ(nothing.code, 3) << nothing.err;
  const Ended skipped = verify("a.golden.json", {"--kernel", "compute_slot_mapping"});
  EXPECT_EQ(skipped.code, 77) << skipped.out;
}

// ---- the formats of run and repro ----

class Formats : public Golden {};

TEST_F(Formats, AreWrittenBesideOneAnother) {
  cases();
  const Ended ended = run({"run", path("cases/norm.json"), "--backend", "host", "--kernel", "@k_gated", "--junit",
                           path("r.xml"), "--markdown", path("r.md"), "--json", path("r.json")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(read_file(path("r.xml")),
              AllOf(HasSubstr("failures=\"1\""), HasSubstr("<failure message=\"fail (unwritten), expected pass\"")));
  EXPECT_THAT(read_file(path("r.md")), AllOf(HasSubstr("## dcpcheck: not as expected"), HasSubstr("unwritten on rank")));
  EXPECT_EQ(text_at(parsed(read_file(path("r.json"))), "schema"), "dcpcheck.report/1");
  EXPECT_THAT(ended.out, Not(HasSubstr("::error")));
}

TEST_F(Formats, AnnotationsAreForGitHubAlone) {
  cases();
  const std::vector<std::string> words{"run", path("cases/norm.json"), "--backend", "host", "--kernel", "@k_gated"};
  for (const auto& [value, there] : {std::pair("true", true), std::pair("false", false), std::pair("", false)}) {
    ::setenv("GITHUB_ACTIONS", value, 1);
    EXPECT_EQ(run(words).out.find("\n::error title=norm%2C fused_norm_rope k_gated::fail (unwritten)") != std::string::npos,
              there)
        << value;
  }
  ::setenv("GITHUB_ACTIONS", "true", 1);
  EXPECT_THAT(run({"run", path("cases/norm.json"), "--backend", "host"}).out, Not(HasSubstr("::error")));
  ::unsetenv("GITHUB_ACTIONS");
}

TEST_F(Formats, NothingIsOverwrittenUnawares) {
  cases();
  const std::string norm = path("cases/norm.json"), before = read_file(norm);
  const Ended over = run({"run", norm, "--backend", "host", "--junit", norm});
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, HasSubstr("--junit " + norm + " is a case that is to be run"));
  EXPECT_EQ(read_file(norm), before);
  const Ended both = run({"run", norm, "--backend", "host", "--junit", path("x"), "--markdown", path("./x")});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("is the file of --junit, too"));
  EXPECT_EQ(run({"run", norm, "--backend", "host", "--junit", path("no/x")}).code, 2);
}

TEST_F(Formats, AWriteThatFailsIsTheHarnessesFault) {
  cases();
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Ended full =
      run({"run", path("cases/norm.json"), "--backend", "host", "--junit", "/dev/full", "--json", path("r.json")});
  EXPECT_EQ(full.code, 99) << full.err;
  EXPECT_THAT(full.out, HasSubstr("1 result: 1 pass"));
  EXPECT_TRUE(fs::exists(path("r.json")));
}

}  // namespace
}  // namespace dcpcheck
