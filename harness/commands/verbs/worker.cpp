// What a campaign's process for cases is: started by dcpcheck itself, spoken to on stdin and stdout.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <utility>

#include "harness/adapters/child.hpp"
#include "harness/campaign/source.hpp"
#include "harness/campaign/state.hpp"
#include "harness/campaign/words.hpp"
#include "harness/campaign/worker.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/diagnosis.hpp"
#include "harness/commands/lanes.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/findings.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

constexpr int kOutOfTheWay = 512;                 // descriptors that a kernel is not likely to write to
constexpr rlim_t kBesideCases = rlim_t{2} << 30;  // bytes that the program takes besides a case's memory

int moved(int descriptor) {
  const int high = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay);
  if (high < 0) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  return high;
}

void say(int out, const json::Value& value) {
  const std::string line = json::dump(value) + "\n";
  if (::write(out, line.data(), line.size()) != std::ssize(line)) throw_errno("write of a worker's first line");
}

// A kernel that takes all of the memory there is takes its own process with it, and no other.
void bound_memory(const RunSettings& settings) {
  std::ofstream("/proc/self/oom_score_adj") << "1000";               // where it cannot be had, the limit is still there
  if (settings.backend->name() != "host") return;                    // a driver maps more than it takes
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's shadow is terabytes
  const rlim_t most = static_cast<rlim_t>(settings.memory) + kBesideCases;
  const rlimit limit{most, most};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) throw_errno("setrlimit(RLIMIT_DATA)");
#else
  static_cast<void>(settings);
#endif
  const rlimit no_core{0, 0};  // one a crash would fill the disk
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) throw_errno("setrlimit(RLIMIT_CORE)");
}

std::vector<std::string> sentences(const Trial& trial, const Verdict& verdict) {
  Result result;
  result.op = trial.op().name;
  result.kernel = trial.kernel().name;
  result.world_size = trial.value().geometry.world_size;
  result.token_rows = trial.value().geometry.live_tokens();
  result.verdict = verdict;
  std::vector<std::string> what = describe_violations(result);
  if (const std::string cause = diagnose(trial.plan(), verdict); !cause.empty()) what.push_back("Cause: " + cause);
  return what;
}

std::pair<std::uint64_t, std::uint64_t> parse_numbers(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto number = [&](std::string_view digits) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || stop != digits.data() + digits.size())
      throw InputError("--numbers takes FROM:TO, as 0:100, not '" + text::printable(text) + "'");
    return value;
  };
  const std::string_view all = text;
  return {number(all.substr(0, colon)), number(all.substr(std::min(colon + 1, all.size())))};
}

// In this process, for a debugger, and to measure what a process of its own costs.
void run_here(Service& service, const Ops& ops, std::uint64_t seed, const std::string& numbers, int out) {
  const auto [from, to] = parse_numbers(numbers);
  std::vector<Lane> lanes;
  std::vector<std::unique_ptr<CaseSource>> sources;
  for (const ServedLane& served : service.lanes) {
    lanes.push_back(served.lane);
    sources.push_back(std::make_unique<CaseSource>(ops, served.lane, std::nullopt, seed));
  }
  const std::vector<std::size_t> round = round_of(lanes);
  WorkerPage page;
  Spent spent;
  for (const std::unique_ptr<CaseSource>& source : sources) static_cast<void>(source->at(0));
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t number = from; number < to; ++number) {
    const Turn turn = turn_of(round, number);
    const Case value = sources[turn.lane]->at(turn.index);
    const std::vector<Check> checks =
        examine(service, service.lanes[turn.lane], value, checks_of(lanes[turn.lane], turn.index), page, spent);
    if (is_told(status_of(checks)))
      say(out,
          json::Object{{"number", static_cast<std::int64_t>(number)}, {"status", std::string(name_of(status_of(checks)))}});
  }
  say(out, json::Object{{"cases", static_cast<std::int64_t>(to - from)},
                        {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}});
}

int run_worker(const Arguments& arguments, Context& context) {
  // With the campaign's process this one ends, too, wherever it hangs.
  const pid_t parent = ::getppid();
  if (!arguments.has("--numbers") && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw_errno("prctl(PR_SET_PDEATHSIG)");
  if (::getppid() != parent) return 99;
  // What a kernel prints, and what it reads, is not the campaign's.
  const int in = moved(STDIN_FILENO), out = moved(STDOUT_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw_errno("dup2 of a worker's streams");
  void* page = MAP_FAILED;
  if (!arguments.has("--numbers")) {
    page = ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, Child::kMemory, 0);
    static_cast<void>(::close(Child::kMemory));
  }
  try {
    const RunSettings settings = run_settings(arguments);
    if (const std::string difference = settings.self_test ? context.self_test(*settings.backend) : ""; !difference.empty())
      throw HarnessError("the " + settings.backend->name() +
                         " backend does not compute the bits that it should, so nothing was run: " + difference);
    Service service;
    service.lanes = lanes_for(context, settings, arguments);
    service.bench = bench_of(context, settings, settings.threads);
    service.describe = sentences;
    std::vector<Lane> lanes;
    for (const ServedLane& served : service.lanes) lanes.push_back(served.lane);
    if (arguments.has("--numbers")) {
      run_here(service, context.ops, settings.seed.value_or(0), arguments.text("--numbers"), out);
      return 0;
    }
    if (page == MAP_FAILED) throw InputError("worker is called by dcpcheck itself; by hand it needs --numbers FROM:TO");
    bound_memory(settings);
    std::vector<std::string> sources;  // what each lane's kernel was loaded from, where it says so
    for (const ServedLane& served : service.lanes)
      sources.push_back(served.kernel->declared ? served.kernel->declared->source : std::string());
    say(out, json::Object{
                 {"lanes", lanes_to_json(lanes)}, {"sources", array_of(sources)}, {"device", settings.backend->description()}});
    serve(service, *static_cast<WorkerPage*>(page), in, out);
  } catch (const InputError& error) {
    say(out, json::Object{{"refused", error.what()}});
    return 2;
  }
  return 0;
}

}  // namespace

Verb worker() {
  Verb verb{"worker", "Run a campaign's cases", "Called by dcpcheck itself.", {}, campaign_options(), run_worker, true};
  verb.options.push_back(threads_option());
  // For a debugger, and to measure what a process of its own costs.
  verb.options.push_back({"--numbers", "FROM:TO", "Run these cases in this process, and say what came of each", false});
  return verb;
}

}  // namespace dcpcheck::verbs
