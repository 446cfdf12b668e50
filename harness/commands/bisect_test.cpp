// `bisect`, `bisect-step` and `compare`: histories of a kernel with a fault that came in somewhere, as a person searches them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

#include "harness/commands/document_test.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A change of the example's text that makes it wrong.
struct Wrong {
  std::string from, to;
  std::string says;  // in the first bad commit's row
};

const std::vector<Wrong>& wrong_in_cpp() {
  static const std::vector<Wrong> all{
      {"+ half.eps)", ")", "fail"},
      {"norm_row(hidden, token, width, false, rounded, row + width);", "", "unwritten"},
      {"positions[token] == 0", "false", "fail"},
      {"row + width);", "row + width + 1);", "fail"},
      {"int dcpcheck_run(const dcpcheck_launch* launch) {",
       "int dcpcheck_run(const dcpcheck_launch* launch) {\n  if (launch != nullptr) __builtin_trap();", "crash"},
  };
  return all;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the example has no " + from);
  return text.replace(at, from.size(), to);
}

struct History {
  std::vector<std::string> commits;  // the oldest first
  std::size_t first_bad = 0;
  std::vector<std::size_t> without_answer;
};

class Bisect : public Program {
 protected:
  Bisect() {
    ::setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    ::setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
    for (const char* who : {"GIT_AUTHOR_", "GIT_COMMITTER_"}) {
      ::setenv((std::string(who) + "NAME").c_str(), "a test", 1);
      ::setenv((std::string(who) + "EMAIL").c_str(), "test@example.org", 1);
    }
  }

  std::string shell(const std::string& command) const {
    const std::string out = path(".shell");
    const int status = std::system(("cd '" + path("") + "' && { " + command + "; } > '" + out + "' 2>&1").c_str());
    std::string text = read_file(out);
    if (status != 0) throw std::runtime_error(command + ": " + text);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  std::string commit(const std::string& message) const {
    shell("git -C repo add -A && git -C repo commit -q -m '" + message + "'");
    return shell("git -C repo rev-parse HEAD");
  }

  std::string eh_norm() const {
    return file("case.json", R"({"schema": "dcpcheck.case/1", "name": "small", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2},
"params": {"hidden_size": 8, "embeds_eps": 0.5, "hidden_eps": 0.25}}})");
  }

  // `count` commits of the example in C++; where `first_bad` is among them, it is `wrong` from there on. Some have no answer:
  // three that do not build, and one whose library ends the process that loads it. None of them hides the first bad one.
  History history(std::size_t count, const Wrong& wrong, std::mt19937& random) const {
    shell("rm -rf repo && git init -q -b main repo");
    History made;
    const std::string right = read_file(DCPCHECK_SOURCE_DIR "/harness/adapters/examples/host/fused_eh_norm.cpp");
    made.first_bad = 2 + random() % (count - 3);
    while (made.without_answer.size() < 4) {
      const std::size_t at = 1 + random() % (count - 2);
      if (at == made.first_bad || at + 1 == made.first_bad) continue;
      if (std::find(made.without_answer.begin(), made.without_answer.end(), at) == made.without_answer.end())
        made.without_answer.push_back(at);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::string text = i < made.first_bad ? right : changed(right, wrong.from, wrong.to);
      const auto lost = std::find(made.without_answer.begin(), made.without_answer.end(), i);
      if (lost != made.without_answer.end())
        text += lost == made.without_answer.begin() ? "\n__attribute__((constructor)) static void end() { __builtin_trap(); }\n"
                                                    : "\nthis does not build\n";
      file("repo/kernel.cpp", text + "// " + std::to_string(i) + "\n");
      made.commits.push_back(commit("change " + std::to_string(i)));
    }
    return made;
  }

  static std::string build() {
    return "g++ -std=c++17 -O1 -shared -fPIC -I '" DCPCHECK_SOURCE_DIR "/harness/adapters' -o kernel.so kernel.cpp";
  }

  std::vector<std::string> words(const History& history, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"bisect",
                                 "--repo",
                                 path("repo"),
                                 "--good",
                                 history.commits.front(),
                                 "--bad",
                                 history.commits.back(),
                                 "--kernel",
                                 "lib:{worktree}/kernel.so",
                                 "--build",
                                 build(),
                                 "--out",
                                 path("out"),
                                 "--backend",
                                 "host",
                                 "--json",
                                 path("bisect.json")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // What of the user's must be as it was.
  std::string state() const {
    return shell(
        "git -C repo status --porcelain=v2 --branch --ignored && git -C repo stash list && git -C repo worktree list && "
        "git -C repo for-each-ref && cat repo/kernel.cpp && git -C repo bisect log 2>/dev/null || true");
  }
};

std::optional<json::Value> row_of(const json::Value& document, const std::string& commit) {
  for (const json::Value& revision : *at(document, "revisions").get<json::Array>())
    if (text_at(revision, "commit") == commit) return revision;
  return std::nullopt;
}

TEST_F(Bisect, FindsEachFaultInForty) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const char* const wanted = std::getenv("DCPCHECK_BISECTIONS");  // harness/nightly asks for more
  const std::size_t times = wanted == nullptr ? 2 : static_cast<std::size_t>(std::atoi(wanted));
  std::mt19937 random(54907);
  for (std::size_t i = 0; i < times; ++i) {
    const Wrong& wrong = wrong_in_cpp()[(wanted == nullptr ? 2 * i : i) % wrong_in_cpp().size()];
    const History made = history(40, wrong, random);
    // What a person has in the works stays as it is.
    file("repo/kernel.cpp", "// in the works\n");
    shell(
        "git -C repo stash -q && echo '// staged' >> repo/kernel.cpp && git -C repo add kernel.cpp && echo '// not staged' >> "
        "repo/kernel.cpp && echo note > repo/untracked");
    const std::string before = state();
    const Ended ended = run(words(made, {"--case", eh_norm()}));
    EXPECT_EQ(ended.code, 0) << wrong.from << ended.out << ended.err;
    EXPECT_EQ(state(), before) << wrong.from;
    EXPECT_FALSE(std::filesystem::exists(path("out/worktrees")));
    const json::Value document = parsed(read_file(path("bisect.json")));
    const std::string first_bad = made.commits[made.first_bad];
    ASSERT_EQ(text_at(at(document, "first_bad"), "commit"), first_bad) << wrong.from << ended.out;
    EXPECT_THAT(ended.out,
                HasSubstr("first bad commit: " + first_bad.substr(0, 12) + " (change " + std::to_string(made.first_bad) + ")"));
    EXPECT_THAT(text_at(*row_of(document, first_bad), "why"), HasSubstr(wrong.says)) << wrong.from;
    for (const std::size_t lost : made.without_answer)
      if (const auto row = row_of(document, made.commits[lost])) EXPECT_EQ(text_at(*row, "standing"), "skip");
    const std::int64_t most = 14;  // two ends, log2(40), and each that has no answer may cost another
    EXPECT_LE(std::ssize(*at(document, "revisions").get<json::Array>()), most);
    if (wrong.says == "crash") {
      EXPECT_EQ(at(document, "compared"), json::Value());
      EXPECT_THAT(text_at(document, "not_compared"), HasSubstr("signal"));
    } else {
      const json::Value& places = at(at(document, "compared"), "places");
      ASSERT_FALSE(places.get<json::Array>()->empty()) << ended.out;
      EXPECT_THAT(text_at(places.get<json::Array>()->front(), "output"), HasSubstr("rank0/out"));
      EXPECT_THAT(ended.out, AllOf(HasSubstr("out, rank 0: token "), HasSubstr(": was "), HasSubstr(", is ")));
    }
  }
}

TEST_F(Bisect, AKernelInPythonNeedsNoBuild) {
  shell("git init -q -b main repo");
  const std::string right = read_file(DCPCHECK_SOURCE_DIR "/harness/adapters/examples/host/fused_eh_norm.py");
  const std::string wrong = changed(right, "[under_root] = fp32([mean + eps])", "[under_root] = fp32([mean])");
  std::vector<std::string> commits;
  for (int i = 0; i < 8; ++i) {
    file("repo/kernel.py", (i < 5 ? right : wrong) + "# " + std::to_string(i) + "\n");
    commits.push_back(commit("change " + std::to_string(i)));
  }
  const std::string adapter = file("adapter.py", R"(import sys
sys.path.insert(0, sys.argv[1])
import kernel
import dcpcheck
dcpcheck.serve(op="fused_eh_norm", run=kernel.run, options={"norm_round": ["none", "bf16"], "division": ["rn", "full"]})
)");
  const std::string python = "exec:exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" DCPCHECK_SOURCE_DIR
                             "/harness/adapters/python' python3 '" +
                             adapter + "' ";
  std::vector<std::string> line{
      "bisect", "--repo",  path("repo"), "--good",    commits.front(), "--bad", "main", "--kernel", python + "{worktree}",
      "--case", eh_norm(), "--out",      path("out"), "--backend",     "host"};
  const Ended ended = run(line);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("first bad commit: " + commits[5].substr(0, 12)));
  EXPECT_THAT(ended.out, HasSubstr("out, rank 0: token "));
  // A copy that is installed elsewhere would answer alike at each revision.
  shell("cp -r repo installed");
  line[8] = python + "'" + path("installed") + "'";
  const Ended other = run(line);
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_THAT(other.err, AllOf(HasSubstr("has loaded"), HasSubstr("installed/kernel.py, outside the worktree")));
  EXPECT_FALSE(std::filesystem::exists(path("out/worktrees")));
}

TEST_F(Bisect, AGoldenALawAndGeneratedCasesDecide) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  std::mt19937 random(7);
  const History made = history(8, wrong_in_cpp()[0], random);
  const std::string first_bad = "first bad commit: " + made.commits[made.first_bad].substr(0, 12);
  shell("git -C repo worktree add -q --detach ../right " + made.commits.front() + " && cd right && " + build());
  std::filesystem::create_directory(path("cases"));
  std::filesystem::rename(eh_norm(), path("cases/case.json"));
  const std::string golden = path("small.golden.json");
  ASSERT_EQ(run({"golden", "write", "--cases", path("cases"), "--kernel", "lib:" + path("right/kernel.so"), "-o", golden}).code,
            0);
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--golden", golden},
                                              {"--fuzz", "60", "--seed", "3"},
                                              {"--fuzz", "20", "--law", "admissible_values"}}) {
    const Ended ended = run(words(made, how));
    EXPECT_EQ(ended.code, 0) << how[0] << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(first_bad)) << how[0];
    EXPECT_THAT(ended.out, HasSubstr("out, rank 0: token ")) << how[0];
  }
}

TEST_F(Bisect, InterruptedItGoesOnAndLeavesNoWorktree) {
  std::mt19937 random(11);
  const History made = history(16, wrong_in_cpp()[1], random);
  const std::vector<std::string> line = words(made, {"--case", eh_norm()});
  int stops = 0;
  for (const int signal : {SIGINT, SIGKILL, SIGTERM}) {
    const std::string before = read_file(path("out/answers"));
    const pid_t child = start(line);
    for (int i = 0; i < 6000 && read_file(path("out/answers")).size() <= before.size() + 400; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(::kill(child, signal), 0);
    const Ended ended = wait(child);
    stops += ended.signal == signal ? 1 : 0;
    if (signal != SIGKILL) EXPECT_FALSE(std::filesystem::exists(path("out/worktrees")));
    if (signal != SIGKILL) EXPECT_THAT(shell("git -C repo worktree list"), Not(HasSubstr("out/worktrees")));
  }
  EXPECT_EQ(stops, 3);
  const Ended ended = run(line);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("as answered before"));
  EXPECT_THAT(ended.out, HasSubstr("first bad commit: " + made.commits[made.first_bad].substr(0, 12)));
  EXPECT_THAT(shell("git -C repo worktree list"), Not(HasSubstr("worktree")));
}

TEST_F(Bisect, WhatIsNotItsOwnStaysThere) {
  std::mt19937 random(13);
  const History made = history(8, wrong_in_cpp()[0], random);
  file("out/worktrees/thesis.txt", "precious");
  const Ended ended = run(words(made, {"--case", eh_norm()}));
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("out/worktrees is there, and was not made by dcpcheck"));
  EXPECT_EQ(read_file(path("out/worktrees/thesis.txt")), "precious");
}

// A build that takes the worktree's .git away, below the user's checkout; and one that leaves what another revision tracks.
TEST_F(Bisect, ABuildCanHarmNothingButItsWorktree) {
  std::mt19937 random(17);
  const History made = history(8, wrong_in_cpp()[0], random);
  const auto bisected = [&](const std::string& before) {
    std::vector<std::string> line = words(made, {"--case", eh_norm()});
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == "--build") line[i + 1] = before + "; " + build();
      if (line[i] == "--out") line[i + 1] = path("repo/out");
    }
    return run(line);
  };
  shell("echo '# in the works' >> repo/kernel.cpp");
  const std::string before = read_file(path("repo/kernel.cpp"));
  const Ended without = bisected("rm -f .git");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("first bad commit: " + made.commits[made.first_bad].substr(0, 12)));
  EXPECT_EQ(read_file(path("repo/kernel.cpp")), before);
  EXPECT_THAT(shell("git -C repo reflog"), Not(HasSubstr("reset:")));
  shell("rm -rf repo/out");
}

TEST_F(Bisect, WhatABuildLeavesIsNotInTheWayOfTheNextRevision) {
  shell("git init -q -b main repo");
  const std::string right = read_file(DCPCHECK_SOURCE_DIR "/harness/adapters/examples/host/fused_eh_norm.cpp");
  std::vector<std::string> commits;
  for (int i = 0; i < 8; ++i) {
    file("repo/kernel.cpp", (i < 5 ? right : changed(right, "+ half.eps)", ")")) + "// " + std::to_string(i) + "\n");
    if (i == 4) file("repo/version", "4");  // from here on it is tracked
    commits.push_back(commit("change " + std::to_string(i)));
  }
  History made;
  made.commits = commits;
  for (const std::string keep : {"", "--keep-builds"}) {
    std::vector<std::string> line = words(made, {"--case", eh_norm()});
    if (!keep.empty()) line.push_back(keep);
    for (std::size_t i = 0; i < line.size(); ++i)
      if (line[i] == "--build") line[i + 1] = "echo changed > version; " + build();
    const Ended ended = run(line);
    EXPECT_EQ(ended.code, 0) << keep << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("first bad commit: " + commits[5].substr(0, 12))) << keep;
  }
}

TEST_F(Bisect, EndsThatAreNotWhatTheyAreSaidToBeAreTwo) {
  std::mt19937 random(5);
  History made = history(8, wrong_in_cpp()[0], random);
  const std::string small = eh_norm();
  std::swap(made.commits.front(), made.commits.back());
  const Ended turned = run(words(made, {"--case", small}));
  EXPECT_EQ(turned.code, 2);
  EXPECT_THAT(turned.err, HasSubstr("the bad end is not later than the good one"));
  std::swap(made.commits.front(), made.commits.back());
  struct Mistake {
    std::vector<std::string> more;
    std::string says;
  };
  for (const Mistake& mistake : std::vector<Mistake>{{{"--case", small, "--golden", small}, "--golden holds each case"},
                                                     {{"--case", path("none.json")}, "none.json"},
                                                     {{"--case", small, "--fuzz", "3"}, "--case and --fuzz"},
                                                     {{"--law", "no_such_law"}, "no_such_law"},
                                                     {{"--case", small, "--build-limit", "soon"}, "--build-limit"}}) {
    const Ended ended = run(words(made, mistake.more));
    EXPECT_EQ(ended.code, 2) << mistake.says << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(mistake.says));
    EXPECT_THAT(ended.out, IsEmpty());
  }
  std::vector<std::string> line = words(made, {"--case", small});
  line[4] = "no-such-revision";
  EXPECT_THAT(run(line).err, HasSubstr("'no-such-revision' is no commit of "));
  line[4] = made.commits.front();
  line[2] = path("");
  EXPECT_THAT(run(line).err, HasSubstr("is no git repository"));
  line[2] = path("repo");
  line[8] = "builtin:fused_eh_norm";
  EXPECT_THAT(run(line).err, HasSubstr("comes with dcpcheck, which no revision changes"));
}

TEST_F(Bisect, AStepAnswersAsGitWantsIt) {
  std::mt19937 random(9);
  const History made = history(8, wrong_in_cpp()[0], random);
  const std::string small = eh_norm();
  shell("git -C repo worktree add -q --detach ../mine " + made.commits.back());
  const std::string command = std::string("'") + DCPCHECK_PROGRAM +
                              "' bisect-step --backend host --kernel 'lib:{worktree}/kernel.so' --case '" + small +
                              "' --build \"" + build() + "\"";
  const auto code = [&](const std::string& revision, const std::string& line) {
    return shell("cd mine && git checkout -q --force --detach " + revision + " && { " + line + " > /dev/null 2>&1; echo $?; }");
  };
  EXPECT_EQ(code(made.commits.front(), command), "0");
  EXPECT_EQ(code(made.commits.back(), command), "1");
  for (const std::size_t lost : made.without_answer) EXPECT_EQ(code(made.commits[lost], command), "125");
  EXPECT_EQ(code(made.commits.front(), changed(command, "--case", "--cas")), "128");
  EXPECT_EQ(code(made.commits.front(), changed(command, small, small + "x")), "128");
  EXPECT_THAT(shell("cd mine && git bisect start " + made.commits.back() + " " + made.commits.front() + " && git bisect run " +
                    command),
              HasSubstr(made.commits[made.first_bad] + " is the first bad commit"));
}

TEST_F(Bisect, CompareSaysWhereTwoKernelsPart) {
  const std::string case_file =
      file("case.json", R"({"schema": "dcpcheck.case/1", "name": "small", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}], "tp": 2},
"params": {"hidden_size": 8, "embeds_eps": 0.5, "hidden_eps": 0.25}}})");
  const std::string example = library("fused_eh_norm");
  const Ended same = run({"compare", case_file, "--kernel", "fused_eh_norm", "--kernel", example, "--backend", "host"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("They leave the same."));
  const Ended other =
      run({"compare", case_file, "--kernel", example, "--kernel", library("eps_left_out"), "--backend", "host"});
  EXPECT_EQ(other.code, 1) << other.out << other.err;
  EXPECT_THAT(other.out, HasSubstr("out, rank 0: token 0, element [0"));
  // One that leaves nothing leaves something else, whichever of the two it is.
  const std::string refuses = library("refuses_without_a_word");
  EXPECT_EQ(run({"compare", case_file, "--kernel", refuses, "--kernel", example, "--backend", "host"}).code, 1);
  EXPECT_EQ(run({"compare", case_file, "--kernel", example, "--kernel", refuses, "--backend", "host"}).code, 1);
  EXPECT_EQ(run({"compare", case_file, "--kernel", example, "--backend", "host"}).code, 2);
  EXPECT_EQ(run({"compare", case_file, "--kernel", example, "--kernel", "fused_q", "--backend", "host"}).code, 2);
}

}  // namespace
}  // namespace dcpcheck
