#include "harness/campaign/shard_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<PlacedShard> placed(const Variables& variables) {
  return shard_of_environment([&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

std::string shard(const Variables& variables, const std::string& given = "") {
  std::string by;
  const Shard one = shard_for(given, placed(variables), by);
  return std::to_string(one.index) + "/" + std::to_string(one.count) + (by.empty() ? "" : " " + by.substr(0, 5));
}

TEST(ShardEnvironment, IsTakenFromWhatStartedTheProcess) {
  EXPECT_EQ(shard({}), "0/1");
  EXPECT_EQ(shard({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}), "2/4 Slurm");
  EXPECT_EQ(shard({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), "1/3 Open ");
  EXPECT_EQ(shard({{"GTEST_SHARD_INDEX", "0"}, {"GTEST_TOTAL_SHARDS", "2"}}), "0/2 Googl");
}

TEST(ShardEnvironment, AJobArrayOfSeveralTasksCountsThemAll) {
  const Variables array{{"SLURM_ARRAY_TASK_ID", "7"}, {"SLURM_ARRAY_TASK_MIN", "5"}, {"SLURM_ARRAY_TASK_COUNT", "4"}};
  EXPECT_EQ(shard(array), "2/4 Slurm");
  Variables tasks = array;
  tasks.insert({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "3"}});
  EXPECT_EQ(shard(tasks), "7/12 Slurm");
  Variables steps = array;
  steps["SLURM_ARRAY_TASK_STEP"] = "2";
  EXPECT_EQ(shard(steps), "1/4 Slurm");
}

// A batch script has the rank 0 and the job's tasks, and runs once.
TEST(ShardEnvironment, ABatchScriptIsNoShard) { EXPECT_EQ(shard({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "0/1"); }

TEST(ShardEnvironment, WithoutACountItIsAskedFor) {
  EXPECT_THROW(shard({{"JOB_COMPLETION_INDEX", "3"}}), InputError);
  EXPECT_EQ(shard({{"JOB_COMPLETION_INDEX", "3"}}, "/8"), "3/8 Kuber");
  EXPECT_THROW(shard({{"JOB_COMPLETION_INDEX", "8"}}, "/8"), InputError);
  EXPECT_THROW(shard({}, "/8"), InputError);
}

TEST(ShardEnvironment, TheCommandLineGoesBeforeIt) {
  EXPECT_EQ(shard({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, "0/2"), "0/2 --sha");
}

TEST(ShardEnvironment, WhatCannotBeIsRefused) {
  EXPECT_THROW(placed({{"OMPI_COMM_WORLD_RANK", "x"}}), InputError);
  EXPECT_THROW(placed({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), InputError);
  EXPECT_THROW(placed({{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_MIN", "2"}}), InputError);
}

}  // namespace
}  // namespace dcpcheck
