// A campaign's end of a worker: a process of dcpcheck's own that runs cases, and whose death is a verdict on the case it was
// at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/adapters/child.hpp"
#include "harness/campaign/answer.hpp"
#include "harness/campaign/worker_page.hpp"
#include "harness/core/json.hpp"

namespace dcpcheck {

// A case that is handed to a worker.
struct Assignment {
  std::uint64_t number = 0;
  std::size_t lane = 0;
  json::Value value;              // case_to_json
  std::vector<std::string> laws;  // it is held to; "": every element is judged
  std::int64_t ranks = 0;
};

struct WorkerOptions {
  std::vector<std::string> words;            // the program and its arguments
  std::chrono::milliseconds case_limit{0};   // that a case may take before it hangs
  std::chrono::milliseconds start_limit{0};  // that it may take to start, and a kernel's first case: kernels may be compiled
  const std::atomic<int>* interrupted = nullptr;
};

class WorkerLink {
 public:
  // Starts a worker and waits until it is ready. Throws InputError with what it has to say where it refuses its arguments,
  // HarnessError where it ends before it is ready, Interrupted once a signal came.
  explicit WorkerLink(WorkerOptions options);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // What it said when it was ready.
  const json::Value& hello() const { return hello_; }
  // Whether it can be asked: it has not died.
  bool alive() const { return child_ != nullptr; }

  // Has it run the cases, in their order. `told` hears each answer, and says whether to go on: where not, the worker is ended
  // at once. Where it died the last answer is of the case it was at, and has a check that says how.
  void run(const std::vector<Assignment>& cases, const std::function<bool(const Answer&)>& told);

  // One case.
  std::vector<Check> examine(std::size_t lane, const json::Value& value, const std::vector<std::string>& laws);

  // Seconds that run() has taken, by what they went into.
  const std::map<std::string, double>& spent() const { return spent_; }

 private:
  // A line of its; nothing where it died, or took too long over a case: then `death_` says how.
  std::optional<json::Value> hear();
  std::optional<json::Value> parsed(const std::string& line);
  void send(const json::Value& request);
  void end_child();
  void bury_garbage();
  void bury(Status status, const std::string& reason, const std::string& detail);

  WorkerOptions options_;
  Descriptor memory_;
  WorkerPage* page_ = nullptr;
  std::unique_ptr<Child> child_;
  json::Value hello_;
  std::optional<std::string> unsent_;
  std::map<std::string, double> spent_;
  Check death_;
};

}  // namespace dcpcheck
