#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "harness/commands/context.hpp"
#include "harness/commands/machine.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/select.hpp"
#include "harness/commands/suite.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/error.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/text.hpp"
#include "properties/hunt.hpp"

namespace dcpcheck::verbs {
namespace {

constexpr int kSeeds = 5;
constexpr std::uint64_t kFirstSeed = 54907;
constexpr std::uint64_t kBudget = 2000;
constexpr int kShrinkEvaluations = 1000;

// What came of hunting one fault.
struct Row {
  const Kernel* kernel = nullptr;
  std::vector<std::uint64_t> cases;  // by seed; budget + 1 where it was not caught
  std::set<std::string> by;          // laws, over the seeds
  std::optional<Case> shrunk;        // the smallest, over the seeds …
  std::size_t seed = 0;              // … which is from this one …
  std::string reason;                // … where it was caught for this

  std::uint64_t median() const {
    std::vector<std::uint64_t> sorted = cases;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

class Hunts {
 public:
  Hunts(const Context& context, const RunSettings& settings, std::uint64_t budget, const std::vector<const Kernel*>& faults)
      : context_(context), settings_(settings), budget_(budget) {
    for (const Kernel* fault : faults) {
      rows_.push_back({fault, std::vector<std::uint64_t>(kSeeds, budget + 1), {}, {}, 0, {}});
      const Op& op = context.ops.at(fault->op);
      if (!generators_.contains(op.name)) generators_.emplace(op.name, std::make_unique<Generator>(op));
    }
  }

  // A fault and a seed at a time on each thread; of a GPU there is one.
  void run(std::ostream* progress) {
    const std::size_t jobs = rows_.size() * kSeeds;
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex guard;
    const auto work = [&] {
      for (std::size_t job = next++; job < jobs; job = next++) {
        try {
          hunt_one(rows_[job / kSeeds], job % kSeeds, guard);
          const std::scoped_lock lock(guard);
          if (progress != nullptr) *progress << "\r" << ++done_ << " of " << jobs << " hunts" << std::flush;
        } catch (...) {
          const std::scoped_lock lock(guard);
          if (!error) error = std::current_exception();
          next = jobs;
        }
      }
    };
    {
      std::vector<std::jthread> team;
      const int threads = settings_.backend->name() == "cuda" ? 1 : settings_.threads;
      for (int i = 1; i < threads; ++i) team.emplace_back(work);
      work();
    }
    if (progress != nullptr) *progress << "\r\x1b[K" << std::flush;
    if (error) std::rethrow_exception(error);
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  void hunt_one(Row& row, std::size_t seed, std::mutex& guard) {
    const Workbench bench = bench_of(context_, settings_, 1);
    const Op& op = context_.ops.at(row.kernel->op);
    const std::optional<Catch> found = hunt(bench, *row.kernel, *generators_.at(op.name), kFirstSeed + seed, budget_);
    if (!found) return;
    const std::string& law = row.kernel->caught_by.empty() ? found->by.front() : row.kernel->caught_by;
    Case shrunk = shrink(bench, op, *row.kernel, found->value, law, kShrinkEvaluations);
    const std::scoped_lock lock(guard);
    row.cases[seed] = found->cases;
    row.by.insert(found->by.begin(), found->by.end());
    // Of equals that of the first seed, whichever thread comes first.
    const auto size = [](const Case& value, std::size_t of) {
      return std::tuple(value.geometry.live_tokens(), value.geometry.tp, of);
    };
    if (row.shrunk && size(*row.shrunk, row.seed) < size(shrunk, seed)) return;
    row.shrunk = std::move(shrunk);
    row.seed = seed;
    row.reason = name_of(found->verdict.reason);
  }

  const Context& context_;
  const RunSettings& settings_;
  std::uint64_t budget_;
  std::map<std::string, std::unique_ptr<Generator>> generators_;
  std::vector<Row> rows_;
  std::size_t done_ = 0;
};

bool caught(const Row& row, std::uint64_t budget) { return row.median() <= budget; }

json::Value to_json(const Context& context, const Row& row, std::uint64_t budget) {
  json::Array by, cases;
  for (const std::string& law : row.by) by.emplace_back(law);
  for (const std::uint64_t count : row.cases)
    cases.push_back(count <= budget ? json::Value(static_cast<std::int64_t>(count)) : json::Value());
  json::Value shrunk;
  if (row.shrunk) {
    const Op& op = context.ops.at(row.kernel->op);
    shrunk = json::Object{{"id", case_id(op, *row.shrunk)},
                          {"tokens", row.shrunk->geometry.live_tokens()},
                          {"ranks", row.shrunk->geometry.tp},
                          {"case", case_to_json(op, *row.shrunk)}};
  }
  return json::Object{{"name", row.kernel->fault},
                      {"op", row.kernel->op},
                      {"source", row.kernel->source},
                      {"doc", row.kernel->doc},
                      {"expected", json::Object{{"reason", row.kernel->reason}, {"by", row.kernel->caught_by}}},
                      {"caught", caught(row, budget)},
                      {"by", std::move(by)},
                      {"reason", row.reason},
                      {"cases", caught(row, budget) ? json::Value(static_cast<std::int64_t>(row.median())) : json::Value()},
                      {"cases_by_seed", std::move(cases)},
                      {"shrunk", std::move(shrunk)}};
}

std::string line_of(const Row& row, std::uint64_t budget) {
  std::string line = text::fit(row.kernel->op + "@" + row.kernel->fault, 44) + " ";
  if (!caught(row, budget)) return line + "NOT CAUGHT\n";
  line += text::fit(std::to_string(row.median()), 5) + " ";
  if (row.shrunk) {
    line += text::fit(text::count(row.shrunk->geometry.live_tokens(), "token"), 8) + " ";
    line += text::count(row.shrunk->geometry.tp, "rank");
  }
  return line + "\n" + text::wrap("    " + text::list({row.by.begin(), row.by.end()}), text::kColumns, 4);
}

int run_faults(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings(arguments);
  const std::uint64_t budget = parse_cases("--budget", arguments.text("--budget", std::to_string(kBudget)));
  std::vector<const Kernel*> faults;
  std::vector<std::string> skipped;
  const std::vector<const Kernel*> wanted = select_kernels(context, settings.kernels);
  const Workbench bench = bench_of(context, settings, 1);
  for (const Kernel& kernel : context.kernels) {
    // An op's fixed kernel stands for all of its faults.
    const bool chosen = settings.kernels.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const Kernel* named) {
                          return named == &kernel || (named->fault.empty() && named->op == kernel.op);
                        });
    if (kernel.fault.empty() || !chosen) continue;
    if (can_run(bench, context.ops.at(kernel.op), kernel)) {
      faults.push_back(&kernel);
    } else {
      skipped.push_back(kernel.name);
    }
  }
  for (const std::string& name : skipped)
    *context.err << "dcpcheck: " << name << " was skipped: it cannot run on the " << settings.backend->name() << " backend\n";
  if (faults.empty()) {
    *context.err << "dcpcheck: nothing was vouched for: no fault was named that can run here\n";
    return 3;
  }
  Hunts hunts(context, settings, budget, faults);
  hunts.run(context.progress ? context.err : nullptr);

  json::Array list;
  std::string table;
  std::size_t survivors = 0;
  table += text::fit("Fault", 44) + " Cases Smallest case, and the laws that report\n";
  for (const Row& row : hunts.rows()) {
    survivors += caught(row, budget) ? 0 : 1;
    list.push_back(to_json(context, row, budget));
    table += line_of(row, budget);
  }
  table += "\n" + text::count(static_cast<std::int64_t>(faults.size()), "fault") + ": " +
           std::to_string(faults.size() - survivors) + " caught, " + std::to_string(survivors) +
           " not; Cases is the median over " + std::to_string(kSeeds) + " seeds\n";
  target.deliver(json::Object{{"tool", to_json(context.tool)},
                              {"machine", to_json(describe_machine(settings.threads, nullptr))},
                              {"backend", settings.backend->name()},
                              {"budget", static_cast<std::int64_t>(budget)},
                              {"seeds", static_cast<std::int64_t>(kSeeds)},
                              {"faults", std::move(list)}},
                 table);
  return survivors == 0 ? 0 : 1;
}

}  // namespace

Verb faults() {
  return {
      "faults",
      "Hunt every known-wrong kernel: what catches it, how soon, how small",
      "Cases of five seeds are drawn until the law that a fault is said to break reports the reason that it is said to "
      "(dcpcheck kernels shows both), then made small. Exits 1 where a fault is not caught within the budget in most of the "
      "seeds. All of them take minutes on 16 cores.",
      {},
      {{"--budget", "N", "Cases that a seed may take (default 2000)", false},
       backend_option(),
       kernel_option("every fault; an OP means all of its faults"),
       json_option(),
       threads_option(),
       memory_option()},
      run_faults};
}

}  // namespace dcpcheck::verbs
