// A worker's end: it runs the cases that its campaign hands it, and says what came of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/campaign/answer.hpp"
#include "harness/campaign/schedule.hpp"
#include "harness/campaign/worker_page.hpp"
#include "harness/exec/workbench.hpp"
#include "properties/law.hpp"

namespace dcpcheck {

// A lane, and what it is made of here.
struct ServedLane {
  Lane lane;
  const Op* op = nullptr;
  const Kernel* kernel = nullptr;
  bool launched = false;  // in this process: a first launch may be compiled
};

struct Service {
  Workbench bench;
  std::vector<ServedLane> lanes;
  // What is wrong, a sentence each.
  std::function<std::vector<std::string>(const Trial& trial, const Verdict& verdict)> describe;
};

// Seconds, by what they went into.
using Spent = std::map<std::string, double>;

// Holds a case of the lane to `laws`, "" standing for the judging of every element. Adds to `spent` what went where. `so_far`
// hears the checks up to one that did not pass where others follow it, any of which may end this process. Throws HarnessError
// where the backend fails.
std::vector<Check> examine(const Service& service, ServedLane& lane, const Case& value, const std::vector<std::string>& laws,
                           WorkerPage& page, Spent& spent, const std::function<void(const std::vector<Check>&)>& so_far = {});

// Answers requests, a line each, that come on `in`, on `out`, until there are no more. Throws as examine does.
void serve(Service& service, WorkerPage& page, int in, int out);

}  // namespace dcpcheck
