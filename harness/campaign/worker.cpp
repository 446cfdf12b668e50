#include "harness/campaign/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "harness/campaign/answer.hpp"
#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

const std::string kRequest = "a campaign's request";
constexpr json::Limits kLimits{.bytes = std::size_t{64} << 20, .depth = 48};

// Lines from a descriptor.
class Lines {
 public:
  explicit Lines(int file) : file_(file) {}
  std::optional<std::string> next() {
    while (true) {
      if (const std::size_t end = kept_.find('\n'); end != std::string::npos) {
        std::string line = kept_.substr(0, end);
        kept_.erase(0, end + 1);
        return line;
      }
      std::array<char, 65536> some{};
      const ssize_t got = ::read(file_, some.data(), some.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw_errno("read of a campaign's requests");
      if (got == 0) return std::nullopt;
      kept_.append(some.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  int file_;
  std::string kept_;
};

void say(int out, const json::Value& value) {
  const std::string line = json::dump(value) + "\n";
  for (std::string_view left = line; !left.empty();) {
    const ssize_t wrote = ::write(out, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw_errno("write of an answer to the campaign");
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

Check check_of(const Service& service, const Trial& trial, std::string law, Verdict verdict) {
  Check check;
  check.law = std::move(law);
  check.status = verdict.status;
  check.detail = verdict.detail;
  if (!is_told(verdict.status)) return check;
  check.reason = name_of(verdict.reason);
  if (!verdict.violations.empty()) {
    const Violation& first = verdict.violations.front();
    check.buffer = first.op.empty() ? first.buffer : first.op + "." + first.buffer;
  }
  check.what = service.describe(trial, verdict);
  return check;
}

class Watch {
 public:
  explicit Watch(Spent& spent) : spent_(spent) {}
  // What has passed since the last time went into `what`.
  void lap(const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    spent_[what] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  // What has passed since then is counted elsewhere.
  void skip() { last_ = std::chrono::steady_clock::now(); }

 private:
  Spent& spent_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

json::Value to_json(const std::vector<Check>& checks) {
  json::Array array;
  for (const Check& check : checks) array.push_back(dcpcheck::to_json(check));
  return array;
}

}  // namespace

std::vector<Check> examine(const Service& service, ServedLane& lane, const Case& value, const std::vector<std::string>& laws,
                           WorkerPage& page, Spent& spent, const std::function<void(const std::vector<Check>&)>& so_far) {
  Watch watch(spent);
  page.begin(!lane.launched);
  Trial trial(service.bench, *lane.op, *lane.kernel, value);
  watch.lap("inputs");
  std::vector<Check> checks;
  for (const std::string& name : laws) {
    if (so_far && !checks.empty() && is_told(checks.back().status)) so_far(checks);
    page.at(name);
    if (name.empty()) {
      const CaseResult& result = trial.judged();
      checks.push_back(check_of(service, trial, name, result.verdict));
      checks.back().inputs_digest = result.inputs_digest;
      checks.back().all_digest = result.all_digest;
      watch.lap("launches and judging");
      if (result.verdict.status == Status::skipped) break;  // what declined the case declines every law's
      continue;
    }
    const Law* const law = find_law(name);
    if (law == nullptr) throw HarnessError("there is no law " + name);
    checks.push_back(check_of(service, trial, name, verdict_of(*law, apply(*law, trial))));
    watch.lap("laws");
  }
  lane.launched = true;
  page.end();
  return checks;
}

void serve(Service& service, WorkerPage& page, int in, int out) {
  Lines lines(in);
  while (const std::optional<std::string> line = lines.next()) {
    const json::Value request = json::parse(*line, kRequest, kLimits);
    Spent spent;
    Watch watch(spent);
    for (const Reader& one : Reader(request, kRequest).elements()) {
      const std::int64_t number = one.at("number").count();
      const std::int64_t last = static_cast<std::int64_t>(service.lanes.size()) - 1;
      ServedLane& lane = service.lanes[static_cast<std::size_t>(one.at("lane").integer(0, last))];
      const Case value = case_from_json(*service.bench.ops, one.at("case").value(), kRequest);
      const std::vector<std::string> laws = words_of(one.at("laws"));
      watch.lap("talking");
      const std::vector<Check> checks = examine(service, lane, value, laws, page, spent, [&](const std::vector<Check>& some) {
        say(out, json::Object{{"number", number}, {"checks", to_json(some)}, {"more", true}});
      });
      watch.skip();
      say(out, json::Object{{"number", number}, {"checks", to_json(checks)}});
      watch.lap("talking");
    }
    json::Object seconds;
    for (const auto& [what, some] : spent) seconds.emplace_back(what, some);
    say(out, json::Object{{"spent", std::move(seconds)}});
  }
}

}  // namespace dcpcheck
