// `--distributed`: a launcher (mpirun, srun) starts one process for each rank. The first of them judges; each keeps a process
// of its rank's running that launches (the verb `rank`), so that the end of one of those is no end of the launcher's job.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/commands/verb.hpp"
#include "harness/exec/backend.hpp"

namespace dcpcheck {

// The exit code of a rank's process that could do no more: another takes its place.
inline constexpr int kRankFailed = 70;

// What a launcher says of the process that it started.
struct Launched {
  std::int64_t rank = 0, ranks = 1;
  std::string meeting;  // the path of a socket, the same for all processes of the job and for no other
};

// From the environment, which `variable` looks up: of Open MPI (OMPI_COMM_WORLD_RANK, …), of PMI, as MPICH has it, or of Slurm;
// DCPCHECK_MEETING names the socket where they do not name the job. Throws InputError where it says nothing of the kind, or the
// job has more than one host.
Launched launched_by(const std::function<std::optional<std::string>(const std::string&)>& variable);
Launched launched_by_environment();

// Keeps a process of the rank's running until whoever judges is gone; the exit code. For ranks above 0.
int keep_rank(const Launched& launched, const Arguments& arguments, const std::atomic<int>* interrupted);

// The backend of rank 0, whose own rank's process is kept running as long as the backend is there. `backend` is "host" or
// "cuda". Throws as make_distributed_backend does.
std::unique_ptr<Backend> distributed_backend(const Launched& launched, const Arguments& arguments, const std::string& backend,
                                             Spread::Transport transport, const std::atomic<int>* interrupted);

}  // namespace dcpcheck
