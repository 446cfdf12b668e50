#include "harness/campaign/worker_link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

using Clock = Child::Clock;

const std::string kAnswer = "a worker's answer";
constexpr std::chrono::milliseconds kSlice{100};  // between looks at the clock of a case

std::string command_of(const std::vector<std::string>& words) {
  std::string command = "exec";
  for (const std::string& word : words) command += " " + text::shell_quote(word);
  return command;
}

std::string seconds_of(std::chrono::milliseconds time) { return std::to_string((time.count() + 999) / 1000) + " s"; }

}  // namespace

WorkerLink::WorkerLink(WorkerOptions options) : options_(std::move(options)) {
  memory_ = Descriptor(::memfd_create("dcpcheck worker", MFD_CLOEXEC));
  if (memory_.get() < 0) throw_errno("memfd_create");
  // Out of the way of the descriptors that a child is given.
  const int high = ::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 16);
  if (high < 0) throw_errno("fcntl(F_DUPFD_CLOEXEC)");
  memory_ = Descriptor(high);
  if (::ftruncate(memory_.get(), sizeof(WorkerPage)) != 0) throw_errno("ftruncate of a worker's page");
  void* const page = ::mmap(nullptr, sizeof(WorkerPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (page == MAP_FAILED) throw_errno("mmap of a worker's page");
  page_ = new (page) WorkerPage;
  child_ = std::make_unique<Child>(command_of(options_.words), memory_);
  const Clock::time_point deadline = Clock::now() + options_.start_limit;
  const Child::Heard heard = child_->hear(deadline, options_.interrupted);
  if (heard.end == Child::End::line) {
    hello_ = json::parse(heard.text, kAnswer);
    if (const json::Value* refused = hello_.find("refused")) throw InputError(Reader(*refused, kAnswer).string());
    return;
  }
  if (heard.end == Child::End::late)
    throw HarnessError("a worker was not ready after " + seconds_of(options_.start_limit) + " (--start-limit)");
  const std::string how = child_->how_it_ended(), words = child_->last_words();
  throw HarnessError("a worker ended before it was ready, by " + (how.empty() ? "closing its stream" : how) +
                     (words.empty() ? "" : ": " + words));
}

WorkerLink::~WorkerLink() {
  if (child_ != nullptr) end_child();  // it holds nothing that must be saved
  static_cast<void>(::munmap(page_, sizeof(WorkerPage)));
}

void WorkerLink::end_child() {
  // A kernel's own process is in a group of its own, and would go on by itself where it hangs.
  const std::vector<pid_t> family = descendants_of(child_->pid());
  child_->kill();
  for (const pid_t one : family) static_cast<void>(::kill(one, SIGKILL));  // where it has gone there is nothing to end
  child_.reset();
}

void WorkerLink::bury(Status status, const std::string& reason, const std::string& detail) {
  death_ = Check{};
  death_.status = status;
  death_.reason = reason;
  death_.law = page_->law;
  death_.detail = detail;
  end_child();
}

void WorkerLink::bury_garbage() { bury(Status::crash, "garbage", "the worker's own stream was written to by the kernel"); }

void WorkerLink::send(const json::Value& request) {
  if (child_ == nullptr) throw HarnessError("a worker that has ended was asked");
  unsent_ = json::dump(request);
}

std::optional<json::Value> WorkerLink::parsed(const std::string& line) {
  try {
    return json::parse(line, kAnswer);
  } catch (const InputError&) {
    bury_garbage();
    return std::nullopt;
  }
}

std::optional<json::Value> WorkerLink::hear() {
  const Clock::time_point asked = Clock::now();
  while (true) {
    const Clock::time_point slice = Clock::now() + kSlice;
    const Child::Heard heard = unsent_ ? child_->ask(*std::exchange(unsent_, std::nullopt), slice, options_.interrupted)
                                       : child_->hear(slice, options_.interrupted);
    switch (heard.end) {
      case Child::End::line: return parsed(heard.text);
      case Child::End::too_long: bury_garbage(); return std::nullopt;
      case Child::End::closed: {
        std::string how = child_->how_it_ended();
        if (how.empty()) how = "closing its stream";
        const std::string words = child_->last_words();
        bury(Status::crash, how,
             "the process that ran it ended by " + how + (words.empty() ? "" : "; its last words: " + words));
        return std::nullopt;
      }
      case Child::End::late: break;
    }
    const std::int64_t since = page_->since.load();
    if (since == 0) {  // at no case: reading its orders, or telling what came of them
      if (Clock::now() - asked < std::max(options_.case_limit, options_.start_limit)) continue;
      bury(Status::hang, "hang", "its process was at no case, and said nothing");
      return std::nullopt;
    }
    const auto limit = page_->started.load() != 0 ? options_.case_limit : std::max(options_.case_limit, options_.start_limit);
    if (Clock::now() - Clock::time_point(Clock::duration(since)) < limit) continue;
    const std::string words = child_->last_words();
    bury(Status::hang, "hang",
         "it had not ended after " + seconds_of(limit) + (words.empty() ? "" : "; its last words: " + words));
    return std::nullopt;
  }
}

void WorkerLink::run(const std::vector<Assignment>& cases, const std::function<bool(const Answer&)>& told) {
  json::Array request;
  for (const Assignment& one : cases) {
    request.push_back(json::Object{{"number", static_cast<std::int64_t>(one.number)},
                                   {"lane", static_cast<std::int64_t>(one.lane)},
                                   {"case", one.value},
                                   {"laws", array_of(one.laws)}});
  }
  send(request);
  std::size_t next = 0;
  std::vector<Check> so_far;  // of the case it is at
  const auto died = [&] {
    so_far.push_back(death_);
    told(Answer{cases[next].number, cases[next].ranks, so_far});
  };
  while (true) {
    const std::optional<json::Value> line = hear();
    if (!line) {
      if (next == cases.size()) return;  // all had been answered
      died();
      return;
    }
    Answer answer;
    bool more = false;
    try {
      const Reader reader(*line, kAnswer);
      if (const auto spent = reader.find("spent"); spent && next == cases.size()) {
        for (const auto& [what, seconds] : spent->members()) spent_[what] += seconds.number();
        return;
      }
      answer.number = static_cast<std::uint64_t>(reader.at("number").count());
      for (const Reader& check : reader.at("checks").elements())
        answer.checks.push_back(check_from_json(check.value(), kAnswer));
      if (next == cases.size() || answer.number != cases[next].number) throw InputError("it is no answer to what was asked");
      more = reader.find("more").has_value();
    } catch (const InputError&) {
      bury_garbage();
      if (next < cases.size()) died();
      return;
    }
    if (more) {
      so_far = std::move(answer.checks);
      continue;
    }
    so_far.clear();
    answer.ranks = cases[next++].ranks;
    if (told(answer)) continue;
    end_child();
    return;
  }
}

std::vector<Check> WorkerLink::examine(std::size_t lane, const json::Value& value, const std::vector<std::string>& laws) {
  std::vector<Check> checks;
  run({Assignment{0, lane, value, laws, 0}}, [&](const Answer& answer) {
    checks = answer.checks;
    return true;
  });
  return checks;
}

}  // namespace dcpcheck
