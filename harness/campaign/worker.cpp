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
#include "harness/core/error.hpp"
#include "harness/core/philox.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

const std::string kSource = "a campaign's request";
constexpr std::int64_t kMost = std::int64_t{1} << 62;

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

Generator& generator_of(Service& service, ServedLane& lane) {
  if (!lane.generator) {
    GenerateOptions options;
    const Op& op = *lane.op;
    const Kernel& kernel = *lane.kernel;
    if (!op.pipeline.empty() || kernel.declared) {
      options.check = [&service, &op, &kernel, memory = options.memory](const Case& value) {
        if (!op.pipeline.empty()) check_generate(*service.bench.ops, op, value, memory, "case");
        // Of cases that the kernel is not for none is drawn.
        if (!kernel.declared || kernel.op != op.name) return;
        const std::string why = why_not(*kernel.declared, make_plan(op, value, memory));
        if (!why.empty()) throw InputError(why);
      };
    }
    lane.generator = std::make_unique<Generator>(op, options);
  }
  return *lane.generator;
}

Case case_at(Service& service, std::size_t lane_number, std::uint64_t index) {
  ServedLane& lane = service.lanes[lane_number];
  if (!lane.base) return generator_of(service, lane)(service.seed, index);
  Case value = *lane.base;
  value.seed = Stream(service.seed, "campaign").word(index);
  return value;
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

// Seconds, by what they went into.
using Spent = std::map<std::string, double>;

class Watch {
 public:
  explicit Watch(Spent& spent) : spent_(spent) {}
  // What has passed since the last time went into `what`.
  void lap(const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    spent_[what] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  Spent& spent_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<Check> examine(const Service& service, ServedLane& lane, const Case& value, const std::vector<std::string>& laws,
                           WorkerPage& page, Watch& watch) {
  Trial trial(service.bench, *lane.op, *lane.kernel, value);
  watch.lap("inputs");
  std::vector<Check> checks;
  for (const std::string& name : laws) {
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
  return checks;
}

json::Value to_json(const std::vector<Check>& checks) {
  json::Array array;
  for (const Check& check : checks) array.push_back(dcpcheck::to_json(check));
  return array;
}

std::vector<std::string> strings_of(const Reader& reader) {
  std::vector<std::string> strings;
  for (const Reader& one : reader.elements()) strings.push_back(one.string());
  return strings;
}

// Which pairs of buckets those of the lane's first cases meet whose indices `done` says.
json::Value coverage(Service& service, std::size_t number, const Reader& done) {
  ServedLane& lane = service.lanes[number];
  if (lane.base) return json::Object{{"coverage", json::Value()}};
  Generator& generator = generator_of(service, lane);
  Coverage met(generator.dimensions(), generator.covering().met);
  for (const Reader& range : done.elements()) {
    const std::vector<Reader> ends = range.elements();
    const std::uint64_t most = generator.covering_cases();
    const auto end = std::min<std::uint64_t>(most, static_cast<std::uint64_t>(ends.at(1).integer(0, kMost)));
    for (auto index = static_cast<std::uint64_t>(ends.at(0).integer(0, kMost)); index < end; ++index)
      met.add(make_plan(*lane.op, generator(service.seed, index), generator.options().memory));
  }
  return json::Object{{"coverage", met.to_json()}, {"first", static_cast<std::int64_t>(generator.covering_cases())}};
}

}  // namespace

Case draw(Service& service, std::uint64_t number) {
  std::vector<Lane> lanes;
  for (const ServedLane& served : service.lanes) lanes.push_back(served.lane);
  const Turn turn = turn_of(round_of(lanes), number);
  return case_at(service, turn.lane, turn.index);
}

void run_numbers(Service& service, std::uint64_t from, std::uint64_t to, WorkerPage& page, int out) {
  std::vector<Lane> lanes;
  for (const ServedLane& served : service.lanes) lanes.push_back(served.lane);
  const std::vector<std::size_t> round = round_of(lanes);
  Spent spent;
  Watch watch(spent);
  for (std::uint64_t number = from; number < to; ++number) {
    if (!belongs(service.shard, round.size(), number)) continue;
    const Turn turn = turn_of(round, number);
    ServedLane& lane = service.lanes[turn.lane];
    page.begin(number, !lane.launched);
    const Case value = case_at(service, turn.lane, turn.index);
    watch.lap("drawing");
    const std::vector<Check> checks = examine(service, lane, value, checks_of(lane.lane, turn.index), page, watch);
    lane.launched = true;
    say(out, json::Object{{"number", static_cast<std::int64_t>(number)},
                          {"ranks", value.geometry.tp},
                          {"checks", to_json(checks)}});
    watch.lap("telling");
  }
  page.end();
  json::Object seconds;
  for (const auto& [what, some] : spent) seconds.emplace_back(what, some);
  say(out, json::Object{{"ran", json::Array{static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)}},
                        {"spent", std::move(seconds)}});
}

void serve(Service& service, WorkerPage& page, int in, int out) {
  Lines lines(in);
  while (const std::optional<std::string> line = lines.next()) {
    const json::Value request = json::parse(*line, kSource);
    const Reader reader(request, kSource);
    const auto lane_of = [&] {
      return static_cast<std::size_t>(reader.at("lane").integer(0, static_cast<std::int64_t>(service.lanes.size()) - 1));
    };
    if (const auto range = reader.find("run")) {
      const std::vector<Reader> ends = range->elements();
      run_numbers(service, static_cast<std::uint64_t>(ends.at(0).integer(0, kMost)),
                  static_cast<std::uint64_t>(ends.at(1).integer(0, kMost)), page, out);
    } else if (const auto given = reader.find("examine")) {
      ServedLane& lane = service.lanes[lane_of()];
      const Case value = case_from_json(*service.bench.ops, given->value(), kSource);
      Spent spent;
      Watch watch(spent);
      page.begin(0, !lane.launched);
      const std::vector<Check> checks = examine(service, lane, value, strings_of(reader.at("laws")), page, watch);
      lane.launched = true;
      page.end();
      say(out, json::Object{{"checks", to_json(checks)}});
    } else if (const auto number = reader.find("draw")) {
      const auto wanted = static_cast<std::uint64_t>(number->integer(0, kMost));
      const Case value = draw(service, wanted);
      say(out, json::Object{{"case", case_to_json(service.bench.ops->at(value.op), value)}});
    } else {
      say(out, coverage(service, lane_of(), reader.at("covered")));
    }
  }
}

}  // namespace dcpcheck
