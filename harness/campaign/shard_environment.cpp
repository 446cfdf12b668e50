#include "harness/campaign/shard_environment.hpp"

#include <charconv>
#include <string_view>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

std::optional<std::uint64_t> number(const std::function<const char*(const char*)>& get, const char* name) {
  const char* const value = get(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view digits(value);
  std::uint64_t parsed = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  if (error != std::errc{} || stop != digits.data() + digits.size() || parsed > 1'000'000'000)
    throw InputError(std::string(name) + " is '" + text::printable(digits) + "' in the environment, which is no number");
  return parsed;
}

PlacedShard checked(PlacedShard placed) {
  if (placed.count && placed.index >= *placed.count)
    throw InputError("the environment says that this is shard " + std::to_string(placed.index) + " of " +
                     std::to_string(*placed.count) + " (" + placed.by + "), which cannot be");
  return placed;
}

}  // namespace

std::optional<PlacedShard> shard_of_environment(const std::function<const char*(const char*)>& get) {
  // The step's own count: that of the job is there in a batch script, too, which runs once.
  const auto rank = number(get, "SLURM_PROCID"), tasks = number(get, "SLURM_STEP_NUM_TASKS");
  const auto place = number(get, "SLURM_ARRAY_TASK_ID");
  if (place || (rank && tasks && *tasks > 1)) {
    const std::uint64_t in_step = tasks.value_or(1);
    if (in_step == 0) throw InputError("SLURM_STEP_NUM_TASKS is 0 in the environment");
    const std::uint64_t task = tasks ? rank.value_or(0) : 0;
    if (!place) return checked({task, in_step, "Slurm: SLURM_PROCID of SLURM_STEP_NUM_TASKS"});
    const std::uint64_t least = number(get, "SLURM_ARRAY_TASK_MIN").value_or(0);
    const std::uint64_t step = number(get, "SLURM_ARRAY_TASK_STEP").value_or(1);
    const auto places = number(get, "SLURM_ARRAY_TASK_COUNT");
    if (*place < least || step == 0) throw InputError("SLURM_ARRAY_TASK_ID is below SLURM_ARRAY_TASK_MIN in the environment");
    PlacedShard placed{(*place - least) / step * in_step + task, {}, "Slurm: SLURM_ARRAY_TASK_ID and SLURM_PROCID"};
    if (places) placed.count = *places * in_step;
    return checked(placed);
  }
  if (const auto mpi = number(get, "OMPI_COMM_WORLD_RANK"))
    return checked({*mpi, number(get, "OMPI_COMM_WORLD_SIZE"), "Open MPI: OMPI_COMM_WORLD_RANK"});
  if (const auto job = number(get, "JOB_COMPLETION_INDEX")) return checked({*job, {}, "Kubernetes: JOB_COMPLETION_INDEX"});
  if (const auto test = number(get, "GTEST_SHARD_INDEX"))
    return checked({*test, number(get, "GTEST_TOTAL_SHARDS"), "GoogleTest: GTEST_SHARD_INDEX"});
  return std::nullopt;
}

Shard shard_for(const std::string& given, const std::optional<PlacedShard>& placed, std::string& by) {
  if (given.starts_with("/")) {
    if (!placed) throw InputError("--shard " + text::printable(given) + " leaves the index to the environment, which has none");
    by = placed->by;
    return parse_shard(std::to_string(placed->index) + given);
  }
  if (!given.empty()) {
    by = "--shard";
    return parse_shard(given);
  }
  if (!placed) return {};
  if (!placed->count)
    throw InputError("this is task " + std::to_string(placed->index) + " (" + placed->by +
                     "), and the environment does not say of how many: --shard /N does");
  by = placed->by;
  return parse_shard(std::to_string(placed->index) + "/" + std::to_string(*placed->count));
}

}  // namespace dcpcheck
