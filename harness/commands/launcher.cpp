#include "harness/commands/launcher.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/exec/distributed_backend.hpp"

namespace dcpcheck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kMoment{20};
constexpr std::chrono::seconds kPatience{3};  // for a rank that is told to end

// Where a launcher says which rank a process is.
struct Launcher {
  const char *rank, *ranks, *ranks_here, *job;
};
constexpr std::array<Launcher, 3> kLaunchers{{
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID"},
}};
constexpr std::int64_t kMostRanks = 1024;

std::int64_t number_in(const char* variable, const std::string& text, std::int64_t least) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < least || number > kMostRanks)
    throw InputError(std::string("--distributed: ") + variable + " is '" + text + "', but it is a number from " +
                     std::to_string(least) + " to " + std::to_string(kMostRanks));
  return number;
}

std::string socket_of(const std::string& job) {
  std::string name = "dcpcheck-" + std::to_string(::geteuid()) + "-";
  for (const char c : job) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) throw InputError("--distributed: TMPDIR is no folder: " + error.message());
  return (folder / (name + ".socket")).string();
}

void check(int error, const char* call) {
  if (error == 0) return;
  errno = error;
  throw_errno(call);
}

// This program again, as the process of a rank. Signals that this process blocks are not blocked there.
pid_t start_rank(const std::vector<std::string>& words) {
  std::vector<std::string> all{"dcpcheck"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(all.size() + 1);
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes{};
  check(::posix_spawnattr_init(&attributes), "posix_spawnattr_init");
  sigset_t none{};
  ::sigemptyset(&none);
  pid_t pid = -1;
  int error = ::posix_spawnattr_setsigmask(&attributes, &none);
  if (error == 0) error = ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  if (error == 0) error = ::posix_spawn(&pid, "/proc/self/exe", nullptr, &attributes, arguments.data(), environ);
  static_cast<void>(::posix_spawnattr_destroy(&attributes));
  check(error, "posix_spawn of a rank");
  return pid;
}

std::vector<std::string> words_for(const Launched& launched, const Arguments& arguments, const std::string& backend) {
  std::vector<std::string> words{"rank",      "--meeting", launched.meeting, "--rank", std::to_string(launched.rank),
                                 "--backend", backend};
  for (const char* option : {"--devices", "--ops"}) {
    for (const std::string& value : arguments.all(option)) {
      words.emplace_back(option);
      words.push_back(value);
    }
  }
  return words;
}

// Starts the rank's process, and again where it ends other than by itself: killed, or because its GPU is lost. Returns its
// exit code once that says that there is nothing more to do.
int keep_running(const std::vector<std::string>& words, const std::function<bool()>& stopped) {
  while (true) {
    const pid_t pid = start_rank(words);
    int status = 0;
    std::optional<Clock::time_point> told;  // to end
    int signal = SIGTERM;
    while (true) {
      const pid_t ended = ::waitpid(pid, &status, WNOHANG);
      if (ended == pid) break;
      if (ended < 0 && errno != EINTR) throw_errno("waitpid");
      if (stopped() && (!told || (signal == SIGTERM && Clock::now() > *told + kPatience))) {
        if (told) signal = SIGKILL;
        told = Clock::now();
        if (::kill(pid, signal) != 0 && errno != ESRCH) throw_errno("kill of a rank");
      }
      std::this_thread::sleep_for(kMoment);
    }
    if (stopped()) return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != kRankFailed) return WEXITSTATUS(status);
  }
}

// A backend with the process of rank 0 that it needs.
class KeptBackend : public Backend {
 public:
  KeptBackend(const Distribution& distribution, std::vector<std::string> words)
      : keeper_([this, words = std::move(words)](const std::stop_token& stop) {
          try {
            static_cast<void>(keep_running(words, [&] { return stop.stop_requested(); }));
          } catch (const std::exception&) {
            // No process of rank 0 comes: whoever waits for it says so.
          }
          given_up_ = true;
        }),
        ranks_(make_distributed_backend(with(distribution, given_up_))) {}
  // First the ranks, which their processes see and end by; what does not is told to.
  ~KeptBackend() override { ranks_.reset(); }
  KeptBackend(const KeptBackend&) = delete;
  KeptBackend& operator=(const KeptBackend&) = delete;

  std::string name() const override { return ranks_->name(); }
  std::string description() const override { return ranks_->description(); }
  bool can_run(const Kernel& kernel) const override { return ranks_->can_run(kernel); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override { return ranks_->image_memory(bytes); }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                   std::int64_t seat) override {
    return ranks_->place(plan, inputs, rank, arena, seat);
  }
  std::vector<std::string> devices() const override { return ranks_->devices(); }
  std::string transport() const override { return ranks_->transport(); }
  std::vector<Bytes> carry(std::span<const Parcel> parcels) override { return ranks_->carry(parcels); }

 private:
  static Distribution with(Distribution distribution, const std::atomic<bool>& given_up) {
    distribution.given_up = &given_up;
    return distribution;
  }

  std::atomic<bool> given_up_{false};
  std::jthread keeper_;
  std::unique_ptr<Backend> ranks_;
};

}  // namespace

Launched launched_by(const std::function<std::optional<std::string>(const std::string&)>& variable) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = variable(launcher.rank), ranks = variable(launcher.ranks);
    if (!rank || !ranks) continue;
    Launched launched;
    launched.ranks = number_in(launcher.ranks, *ranks, 1);
    launched.rank = number_in(launcher.rank, *rank, 0);
    if (launched.rank >= launched.ranks)
      throw InputError(std::string("--distributed: ") + launcher.rank + " is " + *rank + ", and " + launcher.ranks + " is " +
                       *ranks);
    if (const auto here = variable(launcher.ranks_here); here && number_in(launcher.ranks_here, *here, 1) < launched.ranks)
      throw InputError("--distributed: of " + *ranks + " ranks " + *here + " are on this host, and all must be");
    if (const auto meeting = variable("DCPCHECK_MEETING")) {
      launched.meeting = *meeting;
    } else if (const auto job = variable(launcher.job)) {
      launched.meeting = socket_of(*job);
    } else {
      throw InputError(std::string("--distributed: ") + launcher.job +
                       " does not name the job; put the path of a socket that all its ranks can reach into DCPCHECK_MEETING");
    }
    return launched;
  }
  throw InputError(
      "--distributed is for a launcher that starts a process for each rank, as in mpirun -n 4 dcpcheck repro --distributed: "
      "neither OMPI_COMM_WORLD_RANK nor PMI_RANK nor SLURM_PROCID is set");
}

Launched launched_by_environment() {
  return launched_by([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

int keep_rank(const Launched& launched, const Arguments& arguments, const std::atomic<int>* interrupted) {
  std::string backend = arguments.text("--backend", "auto");
  if (backend == "auto") backend = cuda_available() ? "cuda" : "host";
  const int code = keep_running(words_for(launched, arguments, backend), [&] { return interrupted->load() != 0; });
  if (interrupted->load() != 0) throw Interrupted(interrupted->load());
  return code;
}

std::unique_ptr<Backend> distributed_backend(const Launched& launched, const Arguments& arguments, const std::string& backend,
                                             Spread::Transport transport, const std::atomic<int>* interrupted) {
  return std::make_unique<KeptBackend>(Distribution{launched.meeting, launched.ranks, backend, transport, interrupted, nullptr},
                                       words_for(launched, arguments, backend));
}

}  // namespace dcpcheck
