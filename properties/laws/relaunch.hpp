// For laws that compare the case's launch with others of the same tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "properties/law.hpp"

namespace dcpcheck::laws {

// Rows first to first + count - 1.
inline std::vector<std::int64_t> rows_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// A launch of some of the case's tokens: its row t is row rows[t] of the case's launch.
struct Relaunch {
  Setting setting;
  std::vector<std::int64_t> rows;
  std::string words;  // how a violation calls it: "with the request alone"
};

// Compares, row by row and rank by rank, the case's launch with others. One that cannot be, as a rule of the op has it or the
// kernel declines it, says nothing, and the others do; one that the kernel refuses is a violation, as the rules allow it.
class Relaunches {
 public:
  Relaunches(std::string law, Trial& trial) : trial_(trial), differences_(std::move(law), trial.plan()) {}

  // False where the case's own launch is refused.
  bool begin() {
    refused_ = trial_.observed().refused;
    return refused_.empty();
  }

  // `make()` gives the other launch, or throws InputError.
  template <class Make>
  void add(Make make) {
    if (!refused_.empty()) return;
    try {
      compare(make());
    } catch (const InputError& error) {
      not_made_ = "its other launch cannot be: " + std::string(error.what());
    }
  }

  LawFindings findings() {
    LawFindings findings;
    if (!refused_.empty()) findings.silent = "the launch was refused: " + refused_;
    findings.compared = differences_.compared();
    findings.violations = differences_.take();
    findings.detail = other_refused_;
    if (findings.compared == 0 && findings.violations.empty() && findings.detail.empty() && findings.silent.empty())
      findings.silent = not_made_;
    return findings;
  }

 private:
  void compare(const Relaunch& other) {
    const Observation seen = trial_.observe(other.setting);
    if (!seen.refused.empty()) {
      (seen.declined ? not_made_ : other_refused_) = "the launch " + other.words + " was refused: " + seen.refused;
      return;
    }
    for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
      for (std::size_t row = 0; row < other.rows.size(); ++row) {
        differences_.compare_row(trial_.observed(), static_cast<std::int64_t>(rank), other.rows[row], seen,
                                 static_cast<std::int64_t>(rank), static_cast<std::int64_t>(row), other.words);
      }
    }
  }

  Trial& trial_;
  Differences differences_;
  std::string refused_, other_refused_, not_made_;
};

inline LawFindings silent(std::string why) {
  LawFindings findings;
  findings.silent = std::move(why);
  return findings;
}

// Why a launch of some of the case's tokens cannot be made: "" where it can. Slots that are drawn would be drawn anew.
inline std::string undividable(const Plan& plan) {
  for (const auto& [name, group] : plan.value.geometry.caches) {
    if (group.slot_mapping == "random") return "the slots of " + name + " are drawn for the launch as a whole";
  }
  return "";
}

// The launch of `rows`, which are neighbours in the case's launch, by a batch that has just them.
inline Relaunch of_rows(Trial& trial, std::vector<Request> batch, std::vector<std::int64_t> rows, std::string words) {
  Case value = with_batch(trial.value(), std::move(batch), rows);
  Setting setting = derive(trial.setting(), value, rows, trial.bench().memory);
  return {std::move(setting), std::move(rows), std::move(words)};
}

}  // namespace dcpcheck::laws
