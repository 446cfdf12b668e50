#include "harness/campaign/worker_link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

using Clock = Child::Clock;

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
    hello_ = json::parse(heard.text, source());
    if (const json::Value* refused = hello_.find("refused")) throw InputError(Reader(*refused, source()).string());
    return;
  }
  if (heard.end == Child::End::late)
    throw HarnessError("a worker was not ready after " + seconds_of(options_.start_limit) + " (--start-limit)");
  const std::string how = child_->how_it_ended(), words = child_->last_words();
  throw HarnessError("a worker ended before it was ready, by " + (how.empty() ? "closing its stream" : how) +
                     (words.empty() ? "" : ": " + words));
}

WorkerLink::~WorkerLink() {
  if (child_ != nullptr) child_->kill();  // it holds nothing that must be saved
  static_cast<void>(::munmap(page_, sizeof(WorkerPage)));
}

void WorkerLink::bury(Status status, const std::string& reason, const std::string& detail) {
  death_ = Check{};
  death_.status = status;
  death_.reason = reason;
  death_.law = page_->law;
  death_.detail = detail;
  child_->kill();
  child_.reset();
}

void WorkerLink::send(const json::Value& request) {
  if (child_ == nullptr) throw HarnessError("a worker that has ended was asked");
  unsent_ = json::dump(request);
}

std::optional<json::Value> WorkerLink::hear() {
  while (true) {
    const Clock::time_point slice = Clock::now() + kSlice;
    const Child::Heard heard = unsent_ ? child_->ask(*std::exchange(unsent_, std::nullopt), slice, options_.interrupted)
                                       : child_->hear(slice, options_.interrupted);
    switch (heard.end) {
      case Child::End::line:
        try {
          return json::parse(heard.text, source());
        } catch (const InputError&) {
          bury(Status::crash, "garbage", "the worker's own stream was written to by the kernel");
          return std::nullopt;
        }
      case Child::End::too_long:
        bury(Status::crash, "garbage", "the worker's own stream was written to by the kernel");
        return std::nullopt;
      case Child::End::closed: {
        std::string how = child_->how_it_ended();
        if (how.empty()) how = "closing its stream";
        const std::string words = child_->last_words();
        bury(Status::crash, how, "the process that ran it ended by " + how + (words.empty() ? "" : "; its last words: " + words));
        return std::nullopt;
      }
      case Child::End::late:
        break;
    }
    const std::int64_t since = page_->since.load();
    if (since == 0) continue;
    const auto limit = page_->started.load() != 0 ? options_.case_limit : std::max(options_.case_limit, options_.start_limit);
    if (Clock::now() - Clock::time_point(Clock::duration(since)) < limit) continue;
    const std::string words = child_->last_words();
    bury(Status::hang, "hang", "it had not ended after " + seconds_of(limit) + (words.empty() ? "" : "; its last words: " + words));
    return std::nullopt;
  }
}

std::uint64_t WorkerLink::run(std::uint64_t from, std::uint64_t to, const std::function<bool(const Answer&)>& told) {
  send(json::Object{{"run", json::Array{static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)}}});
  std::uint64_t next = from;
  while (true) {
    const std::optional<json::Value> line = hear();
    Answer answer;
    if (!line) {
      if (next >= to) return to;  // all had been answered
      answer.number = std::clamp(page_->number.load(), next, to - 1);
      answer.checks.push_back(death_);
      told(answer);
      return answer.number + 1;
    }
    const Reader reader(*line, source());
    if (reader.find("ran")) {
      for (const auto& [what, seconds] : reader.at("spent").members()) spent_[what] += seconds.number();
      return to;
    }
    answer.number = static_cast<std::uint64_t>(reader.at("number").integer(0, std::int64_t{1} << 62));
    answer.ranks = reader.at("ranks").integer(0, 1 << 20);
    for (const Reader& check : reader.at("checks").elements()) answer.checks.push_back(check_from_json(check.value(), source()));
    next = answer.number + 1;
    if (told(answer)) continue;
    child_->kill();
    child_.reset();
    return next;
  }
}

std::vector<Check> WorkerLink::examine(std::size_t lane, const json::Value& case_value, const std::vector<std::string>& laws) {
  json::Array named;
  for (const std::string& law : laws) named.emplace_back(law);
  send(json::Object{{"examine", case_value}, {"lane", static_cast<std::int64_t>(lane)}, {"laws", std::move(named)}});
  const std::optional<json::Value> line = hear();
  if (!line) return {death_};
  std::vector<Check> checks;
  for (const Reader& check : Reader(*line, source()).at("checks").elements())
    checks.push_back(check_from_json(check.value(), source()));
  return checks;
}

json::Value WorkerLink::ask(const json::Value& request) {
  send(request);
  std::optional<json::Value> line = hear();
  if (!line) throw HarnessError("a worker died at something that runs no kernel: " + death_.detail);
  return std::move(*line);
}

}  // namespace dcpcheck
