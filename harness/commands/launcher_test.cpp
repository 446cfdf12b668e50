// What launchers say of a process, devices as people write them, and ranks in processes of their own from outside.
#include "harness/commands/launcher.hpp"

#include <gmock/gmock.h>
#include <map>

#include "harness/commands/options.hpp"
#include "harness/commands/program_test.hpp"
#include "harness/core/error.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Launched launched(std::map<std::string, std::string> variables) {
  return launched_by([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string complaint(const std::map<std::string, std::string>& variables) {
  try {
    static_cast<void>(launched(variables));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Launcher, IsReadFromItsVariables) {
  const Launched open_mpi = launched({{"OMPI_COMM_WORLD_RANK", "3"},
                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                      {"PMIX_NAMESPACE", "449642497/x"}});
  EXPECT_EQ(open_mpi.rank, 3);
  EXPECT_EQ(open_mpi.ranks, 4);
  EXPECT_TRUE(open_mpi.meeting.ends_with("-449642497_x.socket")) << open_mpi.meeting;
  const Launched slurm = launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"DCPCHECK_MEETING", "here"}});
  EXPECT_EQ(slurm.rank, 0);
  EXPECT_EQ(slurm.meeting, "here");
}

TEST(Launcher, WhatItDoesNotSayIsToldInASentence) {
  EXPECT_THAT(complaint({}), HasSubstr("mpirun -n 4"));
  const std::map<std::string, std::string> good{
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"DCPCHECK_MEETING", "here"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    auto variables = good;
    variables[name] = value;
    return complaint(variables);
  };
  EXPECT_EQ(complaint(good), "none");
  EXPECT_THAT(with("OMPI_COMM_WORLD_RANK", "2"), HasSubstr("OMPI_COMM_WORLD_RANK is 2"));
  EXPECT_THAT(with("OMPI_COMM_WORLD_RANK", "one"), HasSubstr("'one'"));
  EXPECT_THAT(with("OMPI_COMM_WORLD_SIZE", "0"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(with("OMPI_COMM_WORLD_LOCAL_SIZE", "1"), HasSubstr("on this host"));
  auto nameless = good;
  nameless.erase("DCPCHECK_MEETING");
  EXPECT_THAT(complaint(nameless), HasSubstr("DCPCHECK_MEETING"));
}

TEST(Devices, AreAllOrNumbers) {
  EXPECT_TRUE(parse_devices("auto").all);
  EXPECT_THAT(parse_devices("auto").devices, IsEmpty());
  EXPECT_THAT(parse_devices("0,1,0").devices, ElementsAre(0, 1, 0));
  for (const char* bad : {"", ",", "0,", ",0", "0 1", "-1", "1024", "a", "all", "0,auto", "0x1"})
    EXPECT_THROW(parse_devices(bad), InputError) << bad;
}

class SeveralDevices : public Program {
 protected:
  std::string corpus() const {
    for (const char* ranks : {"1", "4"}) {
      file(std::string("corpus/small-dcp") + ranks + ".json",
           std::string(R"({"schema": "dcpcheck.case/1", "name": "small-dcp)") + ranks +
               R"(", "source": "a test", "expect": {"k_gated": {"status": ")" + (*ranks == '1' ? "pass" : "fail") +
               R"("}}, "case": {"op": "fused_norm_rope", "seed": "0000000000000001",
"geometry": {"batch": [{"uncached": 24}], "tp": 4, "dcp": {"world_size": )" +
               ranks + R"(}, "caches": {"mla": {}, "indexer": {"slot_mapping": "same"}}},
"params": {"q_lora_rank": 128, "kv_lora_rank": 64, "qk_rope_head_dim": 32, "index_head_dim": 64, "index_rope_dim": 32,
"index_topk": 64, "mla_layout": "bf16"}}})");
    }
    return path("corpus");
  }

  // What two reports must have in common, and what the first says of its devices.
  static std::string digests(const std::string& report, std::string& environment) {
    const json::Value document = json::parse(report, "report", {std::size_t{1} << 26, 32});
    environment = json::dump(*document.find("environment"));
    std::string all;
    for (const json::Value& result : *document.find("results")->get<json::Array>())
      all += json::dump(*result.find("name")) + json::dump(*result.find("kernel")) + json::dump(*result.find("status")) +
             json::dump(*result.find("digests")) + "\n";
    return all;
  }
};

TEST_F(SeveralDevices, FakedDevicesAndProcessesGiveTheDigestsOfOne) {
  DCPCHECK_SLOW_WHERE_SANITIZED();
  const std::string cases = corpus();
  std::string environment;
  const Ended one = run({"repro", "--backend", "host", "--corpus", cases, "--json", "-"});
  ASSERT_EQ(one.code, 0) << one.err;
  const std::string wanted = digests(one.out, environment);
  EXPECT_THAT(environment, HasSubstr(R"("transport":"none")"));
  EXPECT_THAT(wanted, HasSubstr("fail"));

  const Ended faked = run({"repro", "--backend", "host", "--corpus", cases, "--json", "-", "--devices", "0,0,0,0"});
  ASSERT_EQ(faked.code, 0) << faked.err;
  EXPECT_EQ(digests(faked.out, environment), wanted);
  EXPECT_THAT(environment, HasSubstr(R"("transport":"host")"));
  EXPECT_THAT(environment, HasSubstr(R"("0: the CPU","0: the CPU","0: the CPU","0: the CPU")"));

  // As a launcher would start them.
  const std::string meeting = path("meeting");
  for (const auto& [name, value] : {std::pair("OMPI_COMM_WORLD_SIZE", "2"), std::pair("OMPI_COMM_WORLD_RANK", "1"),
                                    std::pair("DCPCHECK_MEETING", meeting.c_str())})
    ASSERT_EQ(::setenv(name, value, 1), 0);
  const std::vector<std::string> words{"repro", "--backend", "host", "--corpus", cases, "--json", "-", "--distributed"};
  const pid_t other = start(words, path("other"));
  ASSERT_EQ(::setenv("OMPI_COMM_WORLD_RANK", "0", 1), 0);
  const Ended apart = run(words);
  const Ended rank = wait(other);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "DCPCHECK_MEETING"}) ASSERT_EQ(::unsetenv(name), 0);
  ASSERT_EQ(apart.code, 0) << apart.err;
  EXPECT_EQ(rank.code, 0) << rank.err;
  EXPECT_EQ(digests(apart.out, environment), wanted);
  EXPECT_THAT(environment, HasSubstr(R"("transport":"host")"));
}

TEST_F(SeveralDevices, WhatCannotBeIsRefused) {
  EXPECT_EQ(run({"repro", "--backend", "host", "--transport", "nccl"}).code, 2);
  EXPECT_EQ(run({"repro", "--backend", "host", "--transport", "pigeon"}).code, 2);
  EXPECT_EQ(run({"repro", "--backend", "host", "--devices", "one"}).code, 2);
  const Ended alone = run({"repro", "--backend", "host", "--distributed"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("mpirun"));
}

}  // namespace
}  // namespace dcpcheck
