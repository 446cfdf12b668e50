#include "harness/campaign/campaign.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stop_token>
#include <thread>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"
#include "harness/exec/generate.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kRange = 1024;  // cases of a shard that a journal's line tells of
constexpr std::uint64_t kChunk = 16;    // … that a worker is given at once
constexpr int kPatience = 2;            // times that a case is run again whose worker somebody killed
constexpr std::string_view kKilled = "signal 9 (";
constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kLine{30};  // between lines of progress where stderr is no terminal

struct Chunk {
  std::uint64_t from = 0, to = 0;
  std::size_t range = 0;  // in Campaign::open_
};

// A range that is being run: what of it has been done.
struct OpenRange {
  std::uint64_t to = 0;
  std::uint64_t next = 0;                                         // the first number that no worker was given
  int out = 0;                                                    // chunks that are being run
  std::map<std::uint64_t, std::pair<std::uint64_t, Tally>> done;  // by where they begin: where they end
};

bool was_killed(const std::vector<Check>& checks) {
  return !checks.empty() && checks.back().status == Status::crash && checks.back().reason.starts_with(kKilled);
}

// A case that did not pass, to be looked into.
struct Suspect {
  std::uint64_t number = 0;
  Check check;
};

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const std::string& journal)
      : options_(options), findings_((fs::path(options.folder) / "findings").string()), journal_(journal) {}

  CampaignEnd run() {
    begin();
    const auto start = Clock::now();
    if (options_.time) deadline_ = start + *options_.time;
    {
      std::vector<std::jthread> team;
      team.reserve(static_cast<std::size_t>(options_.jobs));
      for (int job = 0; job < options_.jobs; ++job) {
        ++working_;
        team.emplace_back([this] { work(); });
      }
      watch(start);
    }
    CampaignEnd end;
    if (!error_) close_ranges();
    journal_.sync(true);
    if (error_) std::rethrow_exception(error_);
    if (signal() == 0) end.coverage = coverage();
    end.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    end.ran = ran_;
    end.spent = spent_;
    end.signal = signal();
    end.torn = journal_.torn();
    end.state = std::move(state_);
    return end;
  }

 private:
  int signal() const { return options_.interrupted == nullptr ? 0 : options_.interrupted->load(); }
  bool stopped() const { return stop_.load() || signal() != 0; }
  bool out_of_time() const { return deadline_ && Clock::now() >= *deadline_; }

  // Reads what was done before, or opens the journal; starts the first worker, which says what the lanes are.
  void begin() {
    const std::string path = (fs::path(options_.folder) / "journal").string();
    const JournalContents before = read_journal(path);  // locked, and without a torn line
    first_ = start_worker(true);
    const std::vector<Lane> lanes =
        lanes_from_json(Reader(first_->hello(), "a worker's answer").at("lanes").value(), "a worker");
    if (before.records.empty()) {
      state_.spec = options_.spec;
      state_.lanes = lanes;
      find_stored();
      journal_.append(opening(options_.spec, lanes, state_.stored, options_.tool));
      journal_.sync(true);
    } else {
      state_ = state_of(before.records, path);
      if (const std::string other = difference(state_.spec, options_.spec); !other.empty())
        throw InputError("--resume: the campaign in " + text::printable(options_.folder) + " was begun with another " + other);
      if (json::dump(lanes_to_json(lanes)) != json::dump(lanes_to_json(state_.lanes)))
        throw InputError("--resume: the campaign in " + text::printable(options_.folder) +
                         " was begun with kernels, ops or laws that are others now");
      if (state_.spec.cases != options_.spec.cases) journal_.append(cases_asked(options_.spec.cases));
      state_.spec.cases = options_.spec.cases;
      find_stored();
    }
    std::error_code error;
    fs::create_directories(findings_, error);
    if (error) throw InputError(text::printable(findings_) + ": " + error.message());
    round_ = round_of(state_.lanes);
    for (const Lane& lane : state_.lanes)
      sources_.push_back(std::make_unique<CaseSource>(*options_.ops, lane, options_.base, options_.spec.seed));
    const std::uint64_t cases = options_.spec.cases;
    end_ = cases == 0 ? std::numeric_limits<std::int64_t>::max() / 2 : stored_.size() + cases;
    for (const auto& [id, met] : findings_of(state_)) {
      const auto made = state_.investigated.find(id);
      if (made == state_.investigated.end() || made->second > met.first) left_over_.push_back({met.first, met.check});
      met_.insert(id);
    }
  }

  void find_stored() {
    for (std::size_t lane = 0; lane < state_.lanes.size(); ++lane)
      for (std::size_t stored = 0; stored < options_.stored.size(); ++stored)
        if (options_.stored[stored].value.op == state_.lanes[lane].op) stored_.emplace_back(stored, lane);
    state_.stored = stored_.size();
  }

  std::unique_ptr<WorkerLink> start_worker(bool self_test) {
    WorkerOptions options;
    options.words = options_.worker;
    // A build that computes other bits does so in each worker.
    if (!self_test) options.words.emplace_back("--no-self-test");
    options.case_limit = options_.case_limit;
    options.start_limit = options_.start_limit;
    options.interrupted = options_.interrupted;
    // One that was killed while it started, or was slow at it, says nothing of a kernel; one that always is says so itself.
    for (int attempt = 0; attempt < kPatience; ++attempt) {
      try {
        return std::make_unique<WorkerLink>(options);
      } catch (const HarnessError& error) {
        const std::string_view what = error.what();
        if (what.find(kKilled) == std::string_view::npos && what.find("was not ready") == std::string_view::npos) throw;
      }
    }
    return std::make_unique<WorkerLink>(std::move(options));
  }

  bool is_ours(std::uint64_t number) const { return is_of_shard(state_, round_, number); }

  // Begins another range behind those that are open; false where there are no more numbers.
  bool open_range() {
    const std::uint64_t from = state_.done.next_outside(next_);
    if (from >= end_) return false;
    // Stored cases and generated ones are in no range together.
    const std::uint64_t most = kRange * options_.spec.shard.count;
    const std::uint64_t limit = from < stored_.size() ? stored_.size() : end_;
    const std::uint64_t to = std::min({from + most, limit, state_.done.next_inside(from)});
    open_.push_back({to, from, 0, {}});
    next_ = to;
    return true;
  }

  std::optional<Chunk> take_chunk() {
    const std::scoped_lock lock(guard_);
    if (stopped() || out_of_time()) return std::nullopt;
    // A range is begun once all of the last one has been handed out.
    if ((open_.empty() || open_.back().next == open_.back().to) && !open_range()) return std::nullopt;
    OpenRange& open = open_.back();
    const Chunk chunk{open.next, std::min(open.to, open.next + kChunk * options_.spec.shard.count), open_.size() - 1};
    open.next = chunk.to;
    ++open.out;
    return chunk;
  }

  // [from, to) of the chunk's range has been done. A range that is done whole is a line of the journal.
  void finish(const Chunk& chunk, std::uint64_t to, Tally tally) {
    const std::scoped_lock lock(guard_);
    OpenRange& open = open_[chunk.range];
    --open.out;
    if (to > chunk.from) open.done.emplace(chunk.from, std::pair(to, std::move(tally)));
    if (open.out == 0 && open.next == open.to) tell_range(open);
  }

  // What of the range has been done, neighbours in one line.
  void tell_range(OpenRange& open) {
    for (auto at = open.done.begin(); at != open.done.end();) {
      const std::uint64_t from = at->first;
      std::uint64_t to = at->second.first;
      Tally tally = at->second.second;
      for (++at; at != open.done.end() && at->first == to; ++at) {
        to = at->second.first;
        tally.add(at->second.second);
      }
      state_.done.add(from, to);
      state_.tally.add(tally);
      journal_.append(range_done(from, to, tally));
    }
    open.done.clear();
  }

  void close_ranges() {
    const std::scoped_lock lock(guard_);
    for (OpenRange& open : open_) tell_range(open);
  }

  void work() {
    std::unique_ptr<WorkerLink> worker;
    try {
      {
        const std::scoped_lock lock(guard_);
        worker = std::move(first_);
      }
      while (const std::optional<Suspect> suspect = next_left_over()) look_into(*suspect);
      while (const std::optional<Chunk> chunk = take_chunk()) {
        run_chunk(*chunk, worker);
        while (const std::optional<Suspect> suspect = next_left_over()) look_into(*suspect);
      }
    } catch (const Interrupted&) {
      stop_ = true;
    } catch (...) {
      const std::scoped_lock lock(guard_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
    if (worker) {
      const std::scoped_lock lock(guard_);
      for (const auto& [what, seconds] : worker->spent()) spent_[what] += seconds;
    }
    --working_;
  }

  std::optional<Suspect> next_left_over() {
    const std::scoped_lock lock(guard_);
    if (left_over_.empty() || stopped()) return std::nullopt;
    Suspect suspect = left_over_.front();
    left_over_.pop_front();
    return suspect;
  }

  void ensure(std::unique_ptr<WorkerLink>& worker) {
    if (!worker || !worker->alive()) worker = start_worker(false);
  }

  void run_chunk(const Chunk& chunk, std::unique_ptr<WorkerLink>& worker) {
    Tally tally;
    std::vector<Suspect> suspects;
    std::uint64_t at = chunk.from;
    std::pair<std::uint64_t, int> killed{0, 0};  // the last case whose worker was killed, and how often
    // Nothing that a kernel does wrong kills its process like this: a person does, or a system out of memory.
    const auto again = [&](const Answer& answer) {
      if (!was_killed(answer.checks)) return false;
      if (killed.first != answer.number) killed = {answer.number, 0};
      return killed.second++ < kPatience;
    };
    const auto take_answer = [&](Answer answer) {
      if (again(answer)) return false;
      expect(answer);
      record(answer, tally, suspects);
      at = answer.number + 1;
      return !stopped() && !out_of_time();
    };
    try {
      while (at < chunk.to && !stopped() && !(out_of_time() && at > chunk.from)) {
        const std::vector<Assignment> cases = assignments(at, chunk.to);
        if (cases.empty()) {
          at = chunk.to;
          break;
        }
        ensure(worker);
        worker->run(cases, take_answer);
        if (at == cases.back().number + 1) at = chunk.to;  // what follows is other shards'
      }
    } catch (const Interrupted&) {
      stop_ = true;
    } catch (...) {
      finish(chunk, at, std::move(tally));
      throw;
    }
    finish(chunk, at, std::move(tally));
    for (const Suspect& suspect : suspects) {
      if (stopped()) return;
      look_into(suspect);
    }
  }

  // Those of the shard's numbers in [from, to) as a worker takes them.
  std::vector<Assignment> assignments(std::uint64_t from, std::uint64_t to) {
    std::vector<Assignment> cases;
    for (std::uint64_t number = from; number < to; ++number) {
      if (!is_ours(number)) continue;
      const std::size_t lane = lane_of(number);
      const Case value = case_of(number);
      const std::vector<std::string> laws = number < stored_.size()
                                                ? std::vector<std::string>{options_.stored[stored_[number].first].law}
                                                : checks_of(state_.lanes[lane], turn_of(round_, number - stored_.size()).index);
      cases.push_back({number, lane, case_to_json(options_.ops->at(value.op), value), laws, value.geometry.tp});
    }
    return cases;
  }

  // Of a stored case, what it is expected to come to passes.
  void expect(Answer& answer) const {
    if (answer.number >= stored_.size()) return;
    const auto& [which, lane] = stored_[answer.number];
    const Expectation& expected = options_.stored[which].expected;
    if (state_.lanes[lane].kernel.find('@') != std::string::npos || expected.status == Status::pass) return;
    for (Check& check : answer.checks) {
      if (check.status != expected.status) continue;
      if (expected.reasons &&
          std::find(expected.reasons->begin(), expected.reasons->end(), check.reason) == expected.reasons->end())
        continue;
      check = Check{check.law, Status::pass, {}, {}, {}, {}, {}, {}};
    }
  }

  Case case_of(std::uint64_t number) {
    if (number < stored_.size()) return options_.stored[stored_[number].first].value;
    const Turn turn = turn_of(round_, number - stored_.size());
    return sources_[turn.lane]->at(turn.index);
  }

  std::size_t lane_of(std::uint64_t number) const {
    return number < stored_.size() ? stored_[number].second : turn_of(round_, number - stored_.size()).lane;
  }

  std::string name_of_case(std::uint64_t number) const {
    if (number < stored_.size()) return options_.stored[stored_[number].first].name;
    return "case " + std::to_string(turn_of(round_, number - stored_.size()).index) + " of seed " + hex_of(options_.spec.seed);
  }

  void record(const Answer& answer, Tally& tally, std::vector<Suspect>& suspects) {
    const std::size_t lane = lane_of(answer.number);
    tally.add(state_.lanes[lane].op, answer.ranks, answer.checks);
    ToldCase told{lane, name_of_case(answer.number), {}};
    for (const Check& check : answer.checks)
      if (is_told(check.status)) told.checks.push_back(check);
    const std::scoped_lock lock(guard_);
    ++ran_;
    if (told.checks.empty()) return;
    for (Check& check : told.checks) {
      if (!is_finding(check.status)) continue;
      const std::string id = id_of(signature_of(state_.lanes[lane], check));
      std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
      if (const auto known = state_.investigated.find(id); known != state_.investigated.end()) first = known->second;
      if (const auto asked = asked_.find(id); asked != asked_.end()) first = std::min(first, asked->second);
      if (first > answer.number) {
        asked_[id] = answer.number;
        met_.insert(id);
        suspects.push_back({answer.number, check});
      } else if (first < answer.number) {
        // A kernel may fail on every case: in what way is kept of the first.
        check.what.clear();
        check.inputs_digest.clear();
        check.all_digest.clear();
      }
    }
    journal_.append(case_told(answer.number, told));
    state_.told[answer.number] = std::move(told);
  }

  // Runs the case again and makes it small, in workers of its own; keeps what comes of it in a file.
  void look_into(const Suspect& suspect) {
    const std::size_t lane = lane_of(suspect.number);
    Finding finding;
    finding.signature = signature_of(state_.lanes[lane], suspect.check);
    finding.id = id_of(finding.signature);
    finding.number = suspect.number;
    finding.of = name_of_case(suspect.number);
    finding.seed = options_.spec.seed;
    finding.backend = options_.spec.backend;
    finding.check = suspect.check;
    finding.value = finding.from = case_of(suspect.number);
    finding.replay = replay_of(options_.replay, finding.signature);
    if (!keep(finding, false)) return;
    const Op& op = options_.ops->at(finding.value.op);
    // In a process that nothing has happened in: what an earlier case broke in its own is not this one's.
    std::unique_ptr<WorkerLink> worker;
    const auto evaluate = [&](const Case& value) {
      for (int attempt = 0;; ++attempt) {
        ensure(worker);
        std::vector<Check> checks = worker->examine(lane, case_to_json(op, value), {suspect.check.law});
        if (!was_killed(checks) || attempt >= kPatience) return checks;
      }
    };
    int same = 0;
    for (int run = 0; run < options_.reruns; ++run) {
      if (stopped()) return;
      const std::vector<Check> checks = evaluate(finding.from);
      const auto again =
          std::find_if(checks.begin(), checks.end(), [&](const Check& one) { return same_failure(one, suspect.check); });
      same += again != checks.end() ? 1 : 0;
      ++finding.reruns[std::string(name_of(again != checks.end() ? again->status : status_of(checks)))];
    }
    if (same < options_.reruns) {
      tell_flaky(suspect, finding, same);
      return;
    }
    const auto valid = [&](const Case& value) {
      if (!op.pipeline.empty()) check_generate(*options_.ops, op, value, options_.memory, "case");
    };
    Shrunk shrunk = shrink_by(
        op, finding.from, suspect.check,
        [&](const Case& value) {
          if (stopped()) throw Interrupted(signal());
          return evaluate(value);
        },
        options_.shrink_evaluations, options_.shrink_time, options_.memory, valid);
    finding.value = std::move(shrunk.value);
    finding.check = std::move(shrunk.check);
    finding.evaluations = shrunk.evaluations;
    finding.stopped = std::move(shrunk.stopped);
    keep(finding, true);
  }

  // What looked like `suspect` while that was looked into was not looked at: the next of it is.
  void look_at_next(const Suspect& suspect) {
    const Signature signature = signature_of(state_.lanes[lane_of(suspect.number)], suspect.check);
    for (auto at = state_.told.upper_bound(suspect.number); at != state_.told.end(); ++at) {
      for (const Check& check : at->second.checks) {
        if (!is_finding(check.status) || signature_of(state_.lanes[at->second.lane], check) != signature) continue;
        asked_[id_of(signature)] = at->first;
        left_over_.push_back({at->first, check});
        return;
      }
    }
  }

  // It does not always come to the same: told once more, as what it is, and kept under a signature of its own.
  void tell_flaky(const Suspect& suspect, Finding finding, int same) {
    const std::string was = finding.id;
    Check flaky = suspect.check;
    flaky.status = Status::flaky;
    flaky.detail = "run again " + text::count(options_.reruns, "time") +
                   ", the first of them in a process of its own, it came to "
                   "the same " +
                   text::count(same, "time") + (flaky.detail.empty() ? "" : "; the first time: " + flaky.detail);
    const std::scoped_lock lock(guard_);
    ToldCase& told = state_.told.at(suspect.number);
    for (Check& check : told.checks)
      if (same_failure(check, suspect.check)) check = flaky;
    journal_.append(case_told(suspect.number, told));
    asked_.erase(was);
    look_at_next(suspect);
    std::error_code ignored;  // where it is not there, there is nothing to remove
    if (!state_.investigated.contains(was)) fs::remove(path_of(findings_, was), ignored);
    finding.check = flaky;
    finding.signature = signature_of(state_.lanes[told.lane], flaky);
    finding.id = id_of(finding.signature);
    if (const auto made = state_.investigated.find(finding.id);
        made != state_.investigated.end() && made->second <= finding.number)
      return;
    write_finding(*options_.ops, findings_, finding);
    state_.investigated[finding.id] = finding.number;
    journal_.append(finding_made(finding.id, finding.number));
  }

  // Writes the finding unless there is one of a smaller number; says whether it did. Before it has been looked into, it is
  // there as it is, so that it is not lost.
  bool keep(const Finding& finding, bool whole) {
    const std::scoped_lock lock(guard_);
    const auto made = state_.investigated.find(finding.id);
    if (made != state_.investigated.end() && made->second <= finding.number) return false;
    if (const auto asked = asked_.find(finding.id); asked != asked_.end() && asked->second < finding.number) return false;
    write_finding(*options_.ops, findings_, finding);
    if (!whole) return true;
    state_.investigated[finding.id] = finding.number;
    journal_.append(finding_made(finding.id, finding.number));
    return true;
  }

  // The main thread: progress, the journal's way to the disk, and when to stop.
  void watch(Clock::time_point start) {
    auto last_line = start;
    while (working_.load() > 0) {
      std::this_thread::sleep_for(kTick);
      const std::scoped_lock lock(guard_);
      try {
        journal_.sync(false);
      } catch (...) {
        if (!error_) error_ = std::current_exception();
        stop_ = true;
      }
      if (options_.progress == nullptr || stopped()) continue;
      if (options_.terminal) {
        *options_.progress << "\r" << text::fit(progress(start), 79) << std::flush;
      } else if (Clock::now() - last_line >= kLine) {
        last_line = Clock::now();
        *options_.progress << "dcpcheck: " << progress(start) << "\n" << std::flush;
      }
    }
    if (options_.progress != nullptr && options_.terminal) *options_.progress << "\r\x1b[K" << std::flush;
  }

  std::string progress(Clock::time_point start) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::ostringstream line;
    line << std::fixed << std::setprecision(1) << (seconds > 0 ? static_cast<double>(ran_) / seconds : 0) << " cases/s, "
         << ran_;
    const bool counted = options_.spec.cases > 0;
    if (counted) line << " of " << (end_ / options_.spec.shard.count);
    line << " cases, " << text::count(std::ssize(met_), "finding");
    if (counted && ran_ > 0) {
      const double left = static_cast<double>(end_ / options_.spec.shard.count) - static_cast<double>(ran_);
      line << ", " << static_cast<std::int64_t>(std::max(0.0, left) * seconds / static_cast<double>(ran_)) << " s left";
    } else if (deadline_) {
      line << ", "
           << std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(*deadline_ - Clock::now()).count())
           << " s left";
    }
    return line.str();
  }

  std::vector<LaneCoverage> coverage() { return coverage_of(indices_done({state_}), sources_); }

  const CampaignOptions& options_;
  std::string findings_;
  Journal journal_;
  CampaignState state_;
  std::vector<std::size_t> round_;
  std::vector<std::unique_ptr<CaseSource>> sources_;         // by lane
  std::vector<std::pair<std::size_t, std::size_t>> stored_;  // by number: which stored case, on which lane
  std::uint64_t next_ = 0, end_ = 0;
  std::unique_ptr<WorkerLink> first_;
  std::optional<Clock::time_point> deadline_;

  std::mutex guard_;  // of all below, the journal and the state
  std::deque<OpenRange> open_;
  std::map<std::string, std::uint64_t> asked_;  // by a finding's id: the least number that is being looked into
  std::set<std::string> met_;                   // ids of findings
  std::deque<Suspect> left_over_;               // that an earlier run did not come to look into
  std::int64_t ran_ = 0;
  std::map<std::string, double> spent_;
  std::exception_ptr error_;
  std::atomic<bool> stop_{false};
  std::atomic<int> working_{0};
};

}  // namespace

CampaignEnd run_campaign(const CampaignOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) throw InputError(text::printable(options.folder) + ": " + error.message());
  const std::string journal = (fs::path(options.folder) / "journal").string();
  const bool there = fs::exists(journal, error) && fs::file_size(journal, error) > 0;
  if (there && !options.resume)
    throw InputError(text::printable(options.folder) +
                     " holds a campaign already: --resume goes on with it, --out DIR begins one elsewhere");
  if (!there && options.resume) throw InputError("--resume: there is no campaign in " + text::printable(options.folder));
  return Campaign(options, journal).run();
}

}  // namespace dcpcheck
