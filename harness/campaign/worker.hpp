// A worker's end: it runs the cases that its campaign names, and says what came of each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/schedule.hpp"
#include "harness/campaign/worker_page.hpp"
#include "harness/exec/workbench.hpp"
#include "properties/generators.hpp"
#include "properties/law.hpp"

namespace dcpcheck {

// A lane, and what it is made of here.
struct ServedLane {
  Lane lane;
  const Op* op = nullptr;
  const Kernel* kernel = nullptr;
  std::optional<Case> base;              // each case is this one with a seed of its own, in place of a generated one
  std::unique_ptr<Generator> generator;  // made when it is first needed
  bool launched = false;                 // the kernel, in this process
};

struct Service {
  Workbench bench;
  std::vector<ServedLane> lanes;
  std::uint64_t seed = 0;
  Shard shard;
  // What is wrong, a sentence each.
  std::function<std::vector<std::string>(const Trial& trial, const Verdict& verdict)> describe;
};

// The case of a number: of a generated one, they begin at 0. Throws InputError where the lane's kernel is for no case that its generator finds.
Case draw(Service& service, std::uint64_t number);

// Runs the shard's numbers in [from, to) and says what came of each, a line each, on `out`; then how long what took.
void run_numbers(Service& service, std::uint64_t from, std::uint64_t to, WorkerPage& page, int out);

// Answers requests, a line each, that come on `in`, on `out`, until there are no more. Throws HarnessError where the backend fails.
void serve(Service& service, WorkerPage& page, int in, int out);

}  // namespace dcpcheck
