// Which shard a process is, as what started it says in the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/campaign/schedule.hpp"

namespace dcpcheck {

struct PlacedShard {
  std::uint64_t index = 0;
  std::optional<std::uint64_t> count;  // absent: the environment does not say
  std::string by;                      // "Slurm (SLURM_ARRAY_TASK_ID, SLURM_PROCID)"
};

// `get` is std::getenv. Slurm: index = place in the job array x tasks of the step + rank in the step; Open MPI: the rank; an
// indexed job of Kubernetes: its index, of which it does not say how many there are; GoogleTest: its shard. nullopt where none
// of these is there. Throws InputError where a variable is no number, or index and count do not fit.
std::optional<PlacedShard> shard_of_environment(const std::function<const char*(const char*)>& get);

// The shard that `given` (--shard; "" where it was not given) and the environment come to: "i/n" as it is; "/n" with the
// environment's index. `by` says where it is from, "" where there is but one. Throws InputError.
Shard shard_for(const std::string& given, const std::optional<PlacedShard>& placed, std::string& by);

}  // namespace dcpcheck
