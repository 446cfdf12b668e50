#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <utility>

#include "harness/commands/context.hpp"
#include "harness/commands/launcher.hpp"
#include "harness/commands/machine.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/nccl_library.hpp"
#include "harness/exec/rank_service.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

std::int64_t parse_rank(const std::string& text) {
  std::int64_t rank = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || rank > 100'000)
      throw InputError("--rank takes a number from 0 on, not '" + text::printable(text) + "'");
    rank = 10 * rank + (c - '0');
  }
  if (text.empty()) throw InputError("rank needs --rank N and --meeting PATH: repro --distributed gives them");
  return rank;
}

// The device of a rank: of those named, or of all there are, the (rank mod their number)th.
int device_of(const Spread& spread, std::int64_t rank, const std::string& backend) {
  if (!spread.devices.empty()) return spread.devices[static_cast<std::size_t>(rank) % spread.devices.size()];
  const std::size_t count = backend == "cuda" ? cuda_facts().devices.size() : 0;
  return count == 0 ? 0 : static_cast<int>(static_cast<std::size_t>(rank) % count);
}

int run_rank(const Arguments& arguments, Context& context) {
  // Whoever started it keeps it running, and without that no one could end it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw_errno("prctl(PR_SET_PDEATHSIG)");
  const std::int64_t rank = parse_rank(arguments.text("--rank"));
  const std::string name = arguments.text("--backend", "host");
  Spread spread = parse_devices(arguments.text("--devices", "auto"));
  spread = {{device_of(spread, rank, name)}, false, Spread::Transport::host};
  if (name != "host" && name != "cuda")
    throw InputError("rank: --backend is host or cuda, not '" + text::printable(name) + "'");
  const std::unique_ptr<Backend> backend = name == "cuda" ? make_cuda_backend(spread) : make_host_backend(spread);

  std::map<std::string, Kernel, std::less<>> loaded;
  RankService service;
  service.ops = &context.ops;
  service.kernel = [&](const std::string& spec, const std::string& op) -> const Kernel& {
    for (const Kernel& kernel : context.kernels)
      if (kernel.name == spec && kernel.op == op) return kernel;
    const auto found = loaded.find(spec);
    if (found != loaded.end()) return found->second;
    std::optional<Kernel> kernel = context.load_kernel(spec, context.ops);
    if (!kernel) throw InputError("rank " + std::to_string(rank) + " knows no kernel " + spec);
    return loaded.emplace(spec, std::move(*kernel)).first->second;
  };
  service.backend = backend.get();
  service.interrupted = context.interrupted;
  service.hello = {rank, backend->devices().front(), ""};
  if (name == "cuda") {
    service.device = spread.devices.front();
    if (const auto nccl = NcclLibrary::find()) service.hello.nccl = nccl->version();
  }
  const std::string meeting = arguments.text("--meeting");
  const std::unique_ptr<Wire> wire = go_to_meeting(meeting, Wire::Clock::now() + rank_patience(), context.interrupted);
  if (wire == nullptr) throw HarnessError("rank " + std::to_string(rank) + ": nobody came to " + meeting);
  try {
    serve_rank(service, *wire);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    *context.err << "dcpcheck: rank " << rank << ": " << text::printable(error.what()) << "\n" << std::flush;
    return kRankFailed;
  }
  // Whoever judges is gone, and nothing here is left to be kept. NCCL may have threads that what follows main would disturb.
  std::_Exit(0);
}

}  // namespace

Verb rank() {
  return {"rank",
          "One rank of a distributed run: repro --distributed starts it",
          "Launches what another process tells it to, until that one is gone.",
          {},
          {{"--meeting", "PATH", "The socket at which the ranks meet", false},
           {"--rank", "N", "Which rank it is", false},
           backend_option(),
           devices_option(),
           ops_option()},
          run_rank,
          true};
}

}  // namespace dcpcheck::verbs
