// `dump`: arrays that agree with the case, and a test file that judges as dcpcheck does.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <cstring>

#include "harness/commands/program_test.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The elements of an array file, and what its header says of them.
struct Array {
  std::string header, bytes;

  template <class Number>
  std::vector<Number> as() const {
    std::vector<Number> out(bytes.size() / sizeof(Number));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

class Dump : public Program {
 protected:
  static std::string case_of(const std::string& layout, const std::string& more_params = "") {
    const bool ds = layout == "fp8_ds_mla";
    return R"({"schema": "dcpcheck.case/1", "name": "small \"case\"", "case": {"op": "fused_norm_rope", "seed": "0000000000000001",
"geometry": {"batch": [{"cached": 6, "uncached": 7}], "padding": {"tokens": 2}, "tp": 2, "dcp": {"world_size": 2},
"caches": {"mla": {"block_size": 4, "block_stride_padding": 8}, "indexer": {"block_size": 4}}},
"params": {"q_lora_rank": 16, "kv_lora_rank": )" +
           std::string(ds ? "512" : "8") + R"(, "qk_rope_head_dim": )" + (ds ? "64" : "4") +
           R"(, "index_head_dim": 8, "index_rope_dim": 4, "index_topk": 4, "max_position": 64, "mla_layout": ")" + layout +
           "\"" + more_params + R"(}, "layout": {"q_c": {"stride": 24, "offset": 3}}, "values": {"q_c": "special"}}})";
  }
  std::string small() const { return file("small.json", case_of("bf16")); }

  Array array(const std::string& name) const {
    const std::string text = read_file(path("dump/" + name));
    EXPECT_TRUE(text.starts_with(std::string("\x93NUMPY\x01\0", 8))) << name;
    const auto length =
        static_cast<std::size_t>(static_cast<unsigned char>(text.at(8))) + 256 * static_cast<unsigned char>(text.at(9));
    EXPECT_EQ((10 + length) % 64, 0U);
    return {text.substr(10, length), text.substr(10 + length)};
  }
  Ended dump(const std::string& which, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"dump", "--backend", "host", which, "-o", path("dump"), "--expected"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  std::size_t things() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
};

TEST_F(Dump, ArraysAgreeWithTheCaseAndOfARightKernelWithWhatIsRight) {
  const Ended ended = dump(small());
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr(path("dump") + ": index.json and "), HasSubstr("what builtin:fused_norm_rope left on 2 ranks")));
  const Array q_c = array("shared/q_c.npy");
  EXPECT_THAT(q_c.header, HasSubstr("{'descr': '<u2', 'fortran_order': False, 'shape': (9, 16, ), }"));
  EXPECT_EQ(q_c.bytes.size(), 9U * 16 * 2);
  EXPECT_EQ(array("shared/positions.npy").as<std::int64_t>().front(), 6);
  for (const std::string rank : {"rank0/", "rank1/"}) {
    const std::vector<std::int64_t> slots = array(rank + "slot_mapping.npy").as<std::int64_t>();
    for (const std::string name : {"q_c_out", "kv_c_out", "mla_cache.kv_c", "mla_cache.k_pe"}) {
      const auto low = array(rank + name + ".low.npy").as<std::uint16_t>();
      const auto high = array(rank + name + ".high.npy").as<std::uint16_t>();
      const auto must = array(rank + name + ".must.npy").as<std::uint8_t>();
      const auto got = array(rank + name + ".observed.npy").as<std::uint16_t>();
      ASSERT_EQ(low.size(), got.size());
      const std::size_t width = got.size() / 9;
      std::size_t musts = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const bool owned = i / width < 7 && (!name.starts_with("mla") || slots[i / width] >= 0);
        EXPECT_EQ(must[i], owned ? 1 : 0) << name << " " << i;
        if (must[i] == 0) continue;
        ++musts;
        const bool nan = (got[i] & 0x7FFF) > 0x7F80;
        EXPECT_TRUE(nan ? low[i] == 0x7FC0 : std::min(low[i], high[i]) <= got[i] && got[i] <= std::max(low[i], high[i]))
            << name << " " << i;
      }
      EXPECT_GT(musts, 0U);
    }
  }
  const json::Value index = json::parse(read_file(path("dump/index.json")), "index", {std::size_t{1} << 26, 32});
  EXPECT_EQ(*index.find("schema")->get<std::string>(), "dcpcheck.dump/1");
  // The index lists every file, and has the case itself.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("dump")))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(index.find("arrays")->get<json::Array>()->size() + 1, files);
  const std::string again = file("again.json", json::dump(*index.find("document")));
  EXPECT_EQ(run({"run", "--list", again}).out.substr(0, 16), *index.find("id")->get<std::string>());
  for (const json::Value& each : *index.find("arrays")->get<json::Array>()) {
    if (*each.find("file")->get<std::string>() != "shared/q_c.npy") continue;
    EXPECT_EQ(json::dump(*each.find("strides")), "[24,1]");
    EXPECT_EQ(json::dump(*each.find("offset")), "3");
    EXPECT_EQ(*each.find("dtype")->get<std::string>(), "bf16");
  }
}

TEST_F(Dump, WhatAWrongKernelLeftIsThere) {
  ASSERT_EQ(dump(small(), {"--kernel", "@k_gated"}).code, 0);
  const std::vector<std::int64_t> slots = array("rank0/slot_mapping.npy").as<std::int64_t>();
  const auto got = array("rank0/kv_c_out.observed.npy").as<std::uint16_t>();
  for (std::size_t token = 0; token < 7; ++token)  // a NaN of the poison where it left early
    EXPECT_EQ((got[token * 8] & 0x7F80) == 0x7F80 && (got[token * 8] & 0x7F) != 0, slots[token] < 0) << token;
}

TEST_F(Dump, CodesAreHeldAgainstTheScaleThatWasStored) {
  for (const std::string layout : {"fp8", "fp8_ds_mla"}) {
    std::filesystem::remove_all(path("dump"));
    ASSERT_EQ(dump(file(layout + ".json", case_of(layout))).code, 0);
    const auto order = [](std::uint8_t code) { return (code & 0x80) != 0 ? -(code & 0x7F) - 1 : code & 0x7F; };
    for (const std::string field : {"mla_cache.kv_c", "indexer_cache.codes"}) {
      const auto low = array("rank0/" + field + ".low.npy").as<std::uint8_t>();
      const auto high = array("rank0/" + field + ".high.npy").as<std::uint8_t>();
      const auto must = array("rank0/" + field + ".must.npy").as<std::uint8_t>();
      const auto got = array("rank0/" + field + ".observed.npy").as<std::uint8_t>();
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (must[i] == 0 || (got[i] & 0x7F) == 0x7F) continue;
        EXPECT_TRUE(order(low[i]) <= order(got[i]) && order(got[i]) <= order(high[i])) << layout << field << " " << i;
      }
    }
  }
}

TEST_F(Dump, OfAKernelThatLeavesNothingTheRestIsThere) {
  const std::string which = file("eh.json", R"({"schema": "dcpcheck.case/1", "case": {"op": "fused_eh_norm", "geometry":
{"batch": [{"uncached": 5}], "tp": 2}, "params": {"hidden_size": 9}}})");
  const std::string adapters = DCPCHECK_SOURCE_DIR "/harness/adapters/";
  const Ended ended = dump(which, {"--kernel", "exec:exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" + adapters +
                                                   "python' python3 '" + adapters + "'process_test/misbehaves.py exits"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_THAT(ended.err, AllOf(HasSubstr(" left nothing to observe: rank 0: "), HasSubstr("exit code 3")));
  EXPECT_TRUE(std::filesystem::exists(path("dump/rank1/out.low.npy")));
  EXPECT_FALSE(std::filesystem::exists(path("dump/rank0/out.observed.npy")));
  const json::Value index = json::parse(read_file(path("dump/index.json")), "index", {std::size_t{1} << 26, 32});
  EXPECT_THAT(*index.find("failed")->get<std::string>(), HasSubstr("exit code 3"));
}

TEST_F(Dump, NothingIsOverwritten) {
  const std::string at = file("dump/mine", "mine");
  const Ended ended = dump(small());
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "dcpcheck: " + path("dump") + ": is there already, and nothing is overwritten\n");
  EXPECT_EQ(read_file(at), "mine");
  std::filesystem::remove(at);
  EXPECT_EQ(dump(small()).code, 0);  // into an empty folder
  const std::string test = file("test.py", "mine");
  EXPECT_EQ(run({"dump", small(), "--emit", "pytest", "-o", test}).code, 2);
  EXPECT_EQ(read_file(test), "mine");
}

TEST_F(Dump, ADiskThatTakesNoMoreLeavesNothingBehind) {
  const std::string which = small();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit less = before;
  less.rlim_cur = 600;  // bytes of a file: some arrays are larger
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  const pid_t child = start({"dump", "--backend", "host", which, "-o", path("dump"), "--expected"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(::signal(SIGXFSZ, handler));
  const Ended ended = wait(child);
  EXPECT_EQ(ended.code, 99) << ended.out;
  EXPECT_THAT(ended.err, AllOf(HasSubstr(path("dump") + "/"), HasSubstr("it could not be written: File too large")));
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  EXPECT_EQ(things(), 3U);  // the case, stdout, stderr
  const Ended full = run({"dump", which, "--emit", "pytest", "-o", "/dev/full"});
  EXPECT_EQ(full.code, 99) << full.err;
}

TEST_F(Dump, WhatIsWrongIsOneSentenceAndExitTwo) {
  const std::string which = small();
  std::string sparse = case_of("bf16");
  sparse.replace(sparse.find(R"("block_stride_padding": 8)"), 25, R"("sparse": true)");
  const std::vector<std::pair<std::vector<std::string>, std::string>> all{
      {{which}, "dump needs -o DIR, or --emit"},
      {{which, "-o", path("none/dump")}, "there is no folder " + path("none") + " to make it in"},
      {{which, "--emit", "pytets"}, "--emit takes pytest, not 'pytets': did you mean pytest?"},
      {{which, "--emit", "pytest", "--kernel", "@k_gated"}, "--kernel goes with -o DIR alone"},
      {{which, "-o", path("dump"), "--kernel", "fused_q"}, "is a kernel of fused_q, and the case is of fused_norm_rope"},
      {{which, "-o", path("dump"), "--kernel", "fused_q", "--kernel", "@k_gated"}, "dump takes one kernel"},
      {{path("missing.json"), "-o", path("dump")}, "there is no such file"},
      {{DCPCHECK_SOURCE_DIR "/corpora/laws", "-o", path("dump")}, "dump takes one case, and there are "},
      {{DCPCHECK_SOURCE_DIR "/corpora/issue-54907/tokens-512-dcp4.json", "-o", path("dump")}, "generate is many launches"},
      {{file("sparse.json", sparse), "-o", path("dump")}, "/case/geometry/caches/mla/sparse is true"},
      {{which, "--emit", "pytest", "--set", "max_position=65536", "--set", "qk_rope_head_dim=64"},
       "bytes, and a test file holds 8388608 at the most"}};
  for (const auto& [more, says] : all) {
    std::vector<std::string> words{"dump", "--backend", "host"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 2) << says << ended.out.substr(0, 200);
    EXPECT_THAT(ended.err, HasSubstr(says));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path("dump")));
  }
}

// The emitted file, with a kernel in it, run by Python.
class EmittedTest : public Dump {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no python3";
  }

  // `body` is the function's, in Python.
  std::string emitted(const std::string& which, const std::string& body) const {
    const Ended ended = run({"dump", "--emit", "pytest", which});
    EXPECT_EQ(ended.code, 0) << ended.err;
    const std::string place = "    raise NotImplementedError(\"put the call of your kernel into kernel()\")\n";
    std::string text = ended.out;
    const std::size_t at = text.find(place);
    EXPECT_NE(at, std::string::npos);
    return file("test_case.py", text.replace(at, place.size(), body));
  }
  Ended python(const std::string& words) const {
    const std::string command = "cd '" + folder_.string() +
                                "' && export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" DCPCHECK_SOURCE_DIR
                                "/harness/adapters/examples/host:" DCPCHECK_SOURCE_DIR "/harness/adapters/python' && (" +
                                words + ") >.out 2>&1";
    Ended ended;
    ended.code = WEXITSTATUS(std::system(command.c_str()));
    ended.out = read_file(path(".out"));
    return ended;
  }
  std::string eh_norm() const {
    return file("eh.json",
                R"({"schema": "dcpcheck.case/1", "case": {"op": "fused_eh_norm", "seed": "0000000000000001", "geometry":
{"batch": [{"cached": 3, "uncached": 4}, {"uncached": 2}], "padding": {"tokens": 1}, "tp": 2}, "params": {"hidden_size": 16},
"layout": {"out": {"stride": 40}}}})");
  }
};

TEST_F(EmittedTest, ARightKernelPassesAndWrongOnesFailWhereTheyAreWrong) {
  const std::string right = "    import fused_eh_norm\n    fused_eh_norm.run(launch)\n";
  emitted(eh_norm(), right);
  const Ended good = python("python3 test_case.py");
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_THAT(good.out, HasSubstr("right on 2 ranks"));
  const std::vector<std::pair<std::string, std::string>> wrongs{
      {right + "    launch['out'].row(2)[5] ^= 8\n", "out: wrong: 1\n    rank 0, row 2, element 5: got 0x"},
      {right + "    launch['out'].row(2)[5] = 0x7FC1\n", "got 0x7FC1 (nan), right is "},
      {right + "    launch['out'].flat()[35] = 0\n", "out: written where nothing may be: 1\n    rank 0, byte 70"},
      {right + "    launch['embeds'].flat()[1] ^= 1\n", "embeds: an input was written: 1\n    rank 0, byte 2"},
      {right + "    launch['out'].row(1)[0] = launch.number\n",
       "out: not the same in two runs: 1\n    rank 0, row 1, element 0"},
      {right + "    if launch.rank == 1: launch['out'].row(0)[3] ^= 1 << 14\n", "rank 1, row 0, element 3"},
      {"    pass\n", "out: never written: 192\n    rank 0, row 0, element 0"}};
  for (const auto& [body, says] : wrongs) {
    emitted(eh_norm(), body);
    const Ended bad = python("python3 test_case.py");
    EXPECT_EQ(bad.code, 1) << body << bad.out;
    EXPECT_THAT(bad.out, HasSubstr(says)) << body;
  }
}

TEST_F(EmittedTest, WithoutAKernelItSaysWhereToPutOne) {
  file("test_case.py", run({"dump", "--emit", "pytest", eh_norm()}).out);
  const Ended ended = python("python3 test_case.py");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out, HasSubstr("put the call of your kernel into kernel()"));
}

TEST_F(EmittedTest, RunsUnderPytest) {
  const char* const with_pytest =
      "for p in python3 /usr/bin/python3; do $p -c 'import pytest' 2>/dev/null && echo $p && exit 0; done; exit 1";
  if (python(with_pytest).code != 0) GTEST_SKIP() << "no python3 here has pytest (apt: python3-pytest)";
  std::string interpreter = python(with_pytest).out;
  interpreter.pop_back();
  const std::string command = interpreter + " -m pytest -q -p no:cacheprovider test_case.py";
  emitted(eh_norm(), "    import fused_eh_norm\n    fused_eh_norm.run(launch)\n");
  const Ended good = python(command);
  EXPECT_EQ(good.code, 0) << good.out;
  EXPECT_THAT(good.out, HasSubstr("2 passed"));
  emitted(eh_norm(), "    import fused_eh_norm\n    fused_eh_norm.run(launch)\n    launch['out'].row(2)[5] ^= 8\n");
  const Ended bad = python(command);
  EXPECT_EQ(bad.code, 1) << bad.out;
  EXPECT_THAT(bad.out, AllOf(HasSubstr("2 failed"), HasSubstr("rank 1, row 2, element 5: got 0x")));
}

// What a kernel of ours leaves, as a dump has it, put back by the emitted file's kernel().
TEST_F(EmittedTest, AgreesWithDcpcheckOnCachesAndStoredScales) {
  const std::string replay = R"(    def array(name, holds):
        data = open(f"dump/rank{launch.rank}/{name}.{holds}.npy", "rb").read()
        return data[10 + int.from_bytes(data[8:10], "little"):]
    for plan in CASE["tensors"]:
        if plan["role"] == "in":
            continue
        tensor, data = launch[plan["name"]], array(plan["name"], "observed")
        memory, begin = memoryview(tensor._memory), tensor._begin
        if plan["role"] == "cache":
            spans = numbers(plan["spans"][launch.rank], "q")
            for first, end in zip(spans[0::7], spans[1::7]):
                memory[begin + first : begin + end] = data[first:end]
            for byte, bits in edits.get(plan["name"], {}).items():
                memory[begin + byte] ^= bits
            continue
        width, stride = len(data) // tensor.shape[0], tensor.strides[0] * tensor.itemsize
        for row in range(launch.scalar("live")):
            memory[begin + row * stride :][:width] = data[row * width :][:width]
)";
  for (const std::string layout : {"bf16", "fp8", "fp8_ds_mla"}) {
    std::filesystem::remove_all(path("dump"));
    const std::string which = file(layout + ".json", case_of(layout));
    ASSERT_EQ(dump(which).code, 0);
    emitted(which, "    edits = {}\n" + replay);
    const Ended good = python("python3 test_case.py");
    EXPECT_EQ(good.code, 0) << layout << good.out;
    // A bit of a code of the indexer cache, and a bit of a scale.
    const std::vector<std::int64_t> slots = array("rank0/index_slot_mapping.npy").as<std::int64_t>();
    const auto owned = std::find_if(slots.begin(), slots.end(), [](std::int64_t slot) { return slot >= 0; });
    const std::int64_t code = *owned / 4 * (4 * 12) + *owned % 4 * 8, scale = *owned / 4 * (4 * 12) + 32 + *owned % 4 * 4;
    for (const auto& [byte, says] :
         {std::pair(code, "indexer_cache.codes: wrong"), std::pair(scale + 3, "indexer_cache.scale: wrong")}) {
      emitted(which,
              "    edits = {'indexer_cache': {" + std::to_string(byte) + ": 64}} if launch.rank == 0 else {}\n" + replay);
      const Ended bad = python("python3 test_case.py");
      EXPECT_EQ(bad.code, 1) << bad.out;
      EXPECT_THAT(bad.out, HasSubstr(says));
      EXPECT_THAT(bad.out, Not(HasSubstr("rank 1")));
    }
  }
}

}  // namespace
}  // namespace dcpcheck
