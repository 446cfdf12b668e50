// Ranks in processes of their own: the same bits as in one process, and verdicts where a rank fails, dies or stalls.
#include "harness/exec/distributed_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "harness/adapters/builtin.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/case_message.hpp"
#include "harness/exec/generate.hpp"
#include "harness/exec/rank_service.hpp"
#include "harness/exec/reference_memory.hpp"
#include "harness/exec/runner.hpp"
#include "reference/builtin_ops.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Distributed : public testing::Test {
 protected:
  Distributed() {
    for (const auto& [name, op] : builtins_) ops_.emplace(name, op.op);
  }

  // Serves as a rank once, where it is met.
  void serve(std::int64_t rank) const {
    const std::unique_ptr<Backend> host = make_host_backend();
    RankService service;
    service.ops = &ops_;
    service.kernel = [this](const std::string& name, const std::string& op) -> const Kernel& {
      for (const Kernel& kernel : kernels_)
        if (kernel.name == name && kernel.op == op) return kernel;
      throw InputError("no kernel " + name);
    };
    service.backend = host.get();
    service.hello = {rank, "0: the CPU", ""};
    const auto wire = go_to_meeting(socket_, Wire::Clock::now() + std::chrono::milliseconds(200), nullptr);
    try {
      if (wire != nullptr) serve_rank(service, *wire);
    } catch (const std::exception&) {
      // It has said so; another one comes.
    }
  }

  // A process for each rank, which starts one that serves, and again once that has ended.
  class Job {
   public:
    Job(const Distributed& test, std::int64_t ranks) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const pid_t keeper = ::fork();
        if (keeper == 0) {
          static_cast<void>(::setpgid(0, 0));
          while (true) {
            const pid_t server = ::fork();
            if (server == 0) {
              test.serve(rank);
              ::_exit(0);
            }
            static_cast<void>(::waitpid(server, nullptr, 0));
          }
        }
        static_cast<void>(::setpgid(keeper, keeper));  // here too: whoever is first
        keepers_.push_back(keeper);
      }
    }
    ~Job() {
      for (const pid_t keeper : keepers_) {
        static_cast<void>(::kill(-keeper, SIGKILL));
        static_cast<void>(::waitpid(keeper, nullptr, 0));
      }
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

   private:
    std::vector<pid_t> keepers_;
  };

  std::unique_ptr<Backend> backend(std::int64_t ranks, Spread::Transport transport = Spread::Transport::automatic) const {
    return make_distributed_backend({socket_, ranks, "host", transport, nullptr});
  }

  Case stored(const std::string& name) const {
    Case value = load_case_file(ops_, std::string(DCPCHECK_SOURCE_DIR) + "/corpora/" + name).value;
    if (!name.starts_with("issue")) return value;
    value.geometry.batch = {{0, 24}};  // so that it takes milliseconds
    value.geometry.max_batched_tokens = 0;
    if (value.params.contains("index_topk")) value.params["index_topk"] = std::int64_t{64};
    return value;
  }

  CaseResult run(const std::string& name, const Kernel& kernel, Backend& backend) const {
    const Case value = stored(name);
    const BuiltinOp& op = builtins_.at(value.op);
    Prepared prepared = prepare(op.op, op.reference, value, std::int64_t{1} << 30, 2);
    RunOptions options;
    options.threads = 2;
    return run_case(prepared, kernel, backend, options);
  }

  CaseResult generate(Backend& backend, const Kernel& replaced) const {
    Case value = stored("issue-54907/tokens-512-dcp4.json");
    value.geometry.batch = {{20, 37}, {0, 5}};
    for (const auto& [name, size] :
         {std::pair("heads", 1), std::pair("qk_nope_head_dim", 8), std::pair("qk_rope_head_dim", 8), std::pair("v_head_dim", 8),
          std::pair("q_lora_rank", 64), std::pair("kv_lora_rank", 48), std::pair("max_position", 1024), std::pair("tokens", 3)})
      value.params[name] = std::int64_t{size};
    value.params["indexer"] = false;
    value.params["mla_layout"] = std::string("bf16");
    value.geometry.caches.erase("indexer");
    const Prepared prepared = prepare(ops_.at("generate"), {}, value, std::int64_t{4} << 30, 2);
    Parts parts;
    for (const std::string& name : ops_.at("generate").pipeline) {
      const Kernel* kernel = replaced.op == name ? &replaced : &named(name, "");
      parts.emplace(name, Part{&ops_.at(name), &builtins_.at(name).reference, kernel});
    }
    RunOptions options;
    options.threads = 2;
    ReferenceMemory memory;
    return run_generate(prepared, parts, backend, options, memory);
  }

  const Kernel& named(const std::string& op, const std::string& fault) const {
    for (const Kernel& kernel : kernels_)
      if (kernel.op == op && kernel.fault == fault) return kernel;
    throw HarnessError("no kernel " + op + "@" + fault);
  }

  // The right kernel of fused_norm_rope, which calls `before` first on rank 2.
  const Kernel& add(const std::string& fault, std::function<void()> before) {
    Kernel kernel = named("fused_norm_rope", "");
    kernel.name += "@" + fault;
    kernel.fault = fault;
    kernel.host = [right = kernel.host, before = std::move(before)](const Launch& launch) {
      if (launch.rank == 2) before();
      return right(launch);
    };
    kernels_.push_back(std::move(kernel));
    return kernels_.back();
  }

  const std::map<std::string, BuiltinOp, std::less<>> builtins_ = builtin_ops();
  std::vector<Kernel> kernels_ = builtin_kernels();
  Ops ops_;
  const std::string socket_ = (std::filesystem::path(testing::TempDir()) /
                               ("dcp-" + std::to_string(::getpid()) + "-" +
                                std::to_string(testing::UnitTest::GetInstance()->random_seed()) + ".socket"))
                                  .string();
};

void expect_equal(const CaseResult& a, const CaseResult& b) {
  EXPECT_EQ(a.verdict.status, b.verdict.status) << a.verdict.detail << b.verdict.detail;
  EXPECT_EQ(a.verdict.reason, b.verdict.reason);
  EXPECT_EQ(a.verdict.violations.size(), b.verdict.violations.size());
  EXPECT_TRUE(a.outputs == b.outputs);
  EXPECT_EQ(a.all_digest, b.all_digest);
}

TEST_F(Distributed, GivesTheBitsOfOneProcess) {
  const Job job(*this, 4);
  const auto ranks = backend(4), host = make_host_backend();
  EXPECT_THAT(ranks->devices(), SizeIs(4));
  EXPECT_EQ(ranks->transport(), "host");
  for (const char* name : {"issue-54907/512-dcp4.json", "edge/sparse-mla-cache.json", "edge/in-place.json"})
    for (const char* fault : {"", "k_gated", "cache_unguarded"})
      expect_equal(run(name, named("fused_norm_rope", fault), *ranks), run(name, named("fused_norm_rope", fault), *host));
}

TEST_F(Distributed, APipelineGivesTheTokensOfOneProcessWhateverTheProcesses) {
  const auto host = make_host_backend();
  for (const std::int64_t processes : {1, 3}) {
    const Job job(*this, processes);
    const auto ranks = backend(processes);
    for (const char* fault : {"", "k_gated"}) {
      const Kernel& kernel = named("fused_norm_rope", fault);
      const CaseResult apart = generate(*ranks, kernel), together = generate(*host, kernel);
      expect_equal(apart, together);
      EXPECT_EQ(apart.tokens->ids, together.tokens->ids);
      EXPECT_EQ(apart.tokens->digest, together.tokens->digest);
    }
  }
}

TEST_F(Distributed, ARankThatFailsIsACrashThatNamesItAndTheNextCaseRuns) {
  const Kernel broken = add("broken", [] { throw HarnessError("the GPU is lost"); });
  const Job job(*this, 4);
  const auto ranks = backend(4);
  for (int times = 0; times < 2; ++times) {
    const CaseResult single = run("issue-54907/512-dcp4.json", broken, *ranks);
    EXPECT_EQ(single.verdict.status, Status::crash);
    EXPECT_THAT(single.verdict.detail, HasSubstr("rank 2"));
    EXPECT_THAT(single.verdict.detail, HasSubstr("the GPU is lost"));
    const CaseResult pipeline = generate(*ranks, broken);
    EXPECT_EQ(pipeline.verdict.status, Status::crash);
    EXPECT_THAT(pipeline.verdict.detail, HasSubstr("rank 2"));
    EXPECT_EQ(run("issue-54907/512-dcp4.json", named("fused_norm_rope", ""), *ranks).verdict.status, Status::pass);
    EXPECT_EQ(generate(*ranks, named("fused_norm_rope", "")).verdict.status, Status::pass);
  }
}

TEST_F(Distributed, ARankThatIsKilledIsACrashThatNamesItAndTheNextCaseRuns) {
  const Kernel killed = add("killed", [] { static_cast<void>(::raise(SIGKILL)); });
  const Job job(*this, 4);
  const auto ranks = backend(4);
  for (int times = 0; times < 2; ++times) {
    const CaseResult pipeline = generate(*ranks, killed);
    EXPECT_EQ(pipeline.verdict.status, Status::crash);
    EXPECT_THAT(pipeline.verdict.detail, HasSubstr("rank 2"));
    EXPECT_THAT(pipeline.verdict.detail, HasSubstr("has ended"));
    EXPECT_EQ(generate(*ranks, named("fused_norm_rope", "")).verdict.status, Status::pass);
    EXPECT_EQ(run("issue-54907/512-dcp4.json", killed, *ranks).verdict.status, Status::crash);
  }
  EXPECT_EQ(run("issue-54907/512-dcp4.json", named("fused_norm_rope", ""), *ranks).verdict.status, Status::pass);
}

TEST_F(Distributed, ARankThatStallsIsAHangThatNamesItAndTheNextCaseRuns) {
  ASSERT_EQ(::setenv("DCPCHECK_RANK_SECONDS", "3", 1), 0);
  const Kernel stalled = add("stalled", [] { static_cast<void>(::raise(SIGSTOP)); });
  const Job job(*this, 4);
  const auto ranks = backend(4);
  const auto start = std::chrono::steady_clock::now();
  const CaseResult result = generate(*ranks, stalled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(result.verdict.status, Status::hang);
  EXPECT_EQ(result.verdict.reason, Reason::timed_out);
  EXPECT_THAT(result.verdict.detail, HasSubstr("rank 2"));
  EXPECT_THAT(result.verdict.detail, HasSubstr("did not answer within 3 s"));
  EXPECT_EQ(generate(*ranks, named("fused_norm_rope", "")).verdict.status, Status::pass);
  ASSERT_EQ(::unsetenv("DCPCHECK_RANK_SECONDS"), 0);
}

TEST_F(Distributed, ARankThatDoesNotComeIsSaid) {
  ASSERT_EQ(::setenv("DCPCHECK_RANK_SECONDS", "0.3", 1), 0);
  const Job job(*this, 1);
  try {
    static_cast<void>(backend(2));
    ADD_FAILURE() << "rank 1 did not come";
  } catch (const HarnessError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 came within 0.300 s"));
  }
  ASSERT_EQ(::unsetenv("DCPCHECK_RANK_SECONDS"), 0);
}

TEST_F(Distributed, NcclIsRefusedWithoutGpus) {
  const Job job(*this, 2);
  EXPECT_THROW(static_cast<void>(backend(2, Spread::Transport::nccl)), InputError);
}

TEST(CaseMessage, HasEveryField) {
  Case value;
  value.op = "an_op";
  value.seed = ~std::uint64_t{0};
  value.geometry.batch = {{1, 2}, {3, 4}};
  value.geometry.padding = {5, "-block", "zero", "nan"};
  value.geometry.max_batched_tokens = 6;
  value.geometry.tp = 8;
  value.geometry.world_size = 4;
  value.geometry.interleave = 2;
  value.geometry.chunk = {16, 8};
  value.geometry.caches["mla"] = {false, 32, 16, 3, 4, true, "explicit", 7, {{1, -1}, {}}};
  value.params = {{"a", true}, {"b", std::int64_t{-3}}, {"c", 0.1F}, {"d", std::string("word")}};
  value.contract = {{"nan", "clamp"}};
  value.layout = {{"q_c", {2624, 8}}};
  value.values = {{"kv_c", "normal:0.03"}};
  value.graph = true;
  MessageWriter message;
  write_case(message, value);
  MessageReader whole(message.message());
  EXPECT_EQ(read_case(whole), value);
  EXPECT_THROW(whole.number(), HarnessError);  // nothing is left
  MessageReader cut(std::span(message.message()).first(message.message().size() - 1));
  EXPECT_THROW(read_case(cut), HarnessError);
}

TEST(Wire, MessagesArriveWholeOrNotAtAll) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / ("wire-" + std::to_string(::getpid()))).string();
  Meeting meeting(path);
  const auto soon = [] { return Wire::Clock::now() + std::chrono::seconds(5); };
  const auto out = go_to_meeting(path, soon(), nullptr);
  const auto in = meeting.next(soon(), nullptr);
  ASSERT_TRUE(out && in);
  EXPECT_EQ(in->peer(), ::getpid());
  EXPECT_FALSE(in->stirs());
  const Bytes large(std::size_t{3} << 20, std::byte{7});  // more than a socket holds
  std::jthread sender([&] {
    EXPECT_EQ(out->send(MessageWriter().number(-5).text("two").bytes(large).message(), soon()), Wire::Outcome::done);
  });
  Bytes message;
  ASSERT_EQ(in->receive(message, soon()), Wire::Outcome::done);
  sender.join();
  MessageReader reader(message);
  EXPECT_EQ(reader.number(), -5);
  EXPECT_EQ(reader.text(), "two");
  EXPECT_EQ(reader.bytes(), large);
  EXPECT_THROW(reader.number(), HarnessError);
  EXPECT_EQ(in->receive(message, Wire::Clock::now()), Wire::Outcome::late);
}

TEST(Wire, TheEndOfTheOtherSideIsSeen) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / ("wire-" + std::to_string(::getpid()))).string();
  Meeting meeting(path);
  const auto soon = [] { return Wire::Clock::now() + std::chrono::seconds(5); };
  auto out = go_to_meeting(path, soon(), nullptr);
  const auto in = meeting.next(soon(), nullptr);
  out.reset();
  Bytes message;
  EXPECT_TRUE(in->stirs());
  EXPECT_EQ(in->receive(message, soon()), Wire::Outcome::closed);
  EXPECT_EQ(meeting.next(Wire::Clock::now(), nullptr), nullptr);
}

}  // namespace
}  // namespace dcpcheck
