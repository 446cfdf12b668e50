// What one launch a rank leaves, put by token: what laws compare.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"
#include "harness/core/verdict.hpp"
#include "harness/exec/backend.hpp"

namespace dcpcheck {

// What a launch is given: a case worked out, and its inputs, which need not be the case's own.
struct Setting {
  Plan plan;
  Inputs inputs;
};

// A buffer of one rank: by row, the bytes that the launch had to write, NaNs made one. Rows are tokens for outputs by row and
// for caches (a token's record, its fields in order), else axis 0 of the output. Empty: nothing had to be written there.
using RowsLeft = std::vector<Bytes>;

struct Observation {
  bool declined = false;                                            // refused, as the kernel is not for such a launch
  std::string refused;                                              // why, of the first rank whose launch was refused
  std::vector<std::map<std::string, RowsLeft, std::less<>>> ranks;  // by buffer
};

// Runs `kernel` on poison A on every rank. Throws HarnessError where the backend fails.
Observation observe(const Setting& setting, const Kernel& kernel, Backend& backend, int threads);

// The same launch `times` over, on the same memory, each time filled anew.
std::vector<Observation> observe_again(const Setting& setting, const Kernel& kernel, Backend& backend, int threads, int times);

// The launch of `value`, whose live row t has the inputs of row rows[t] of `from`; inputs that follow from the geometry
// (positions, slots, tables) are those of `value`, those that have no row a token are `from`'s. Throws InputError where `value`
// breaks a rule, or takes more than `memory` bytes.
Setting derive(const Setting& from, const Case& value, const std::vector<std::int64_t>& rows, std::int64_t memory);

// `from` with its live rows in another order: row t has the inputs of row rows[t], positions and slots too.
Setting permute(const Setting& from, const std::vector<std::int64_t>& rows);

// `value` with other requests, whose live rows are those of `value` that `rows` names: explicit slots go along.
Case with_batch(const Case& value, std::vector<Request> batch, const std::vector<std::int64_t>& rows);

// Gathers where two runs differ that a law says are the same.
class Differences {
 public:
  // Told in the coordinates of `plan`, which must outlive the object.
  Differences(std::string law, const Plan& plan) : law_(std::move(law)), plan_(plan) {}

  // `got` is row `row` of `buffer` on `rank`; `other` what it must equal, from `elsewhere` ("with the request alone"). Rows
  // that one of the two did not have to write are not compared.
  void compare(const std::string& buffer, std::int64_t rank, std::int64_t row, const Bytes& got, const Bytes& other,
               const std::string& elsewhere);
  // All rows of one buffer.
  void compare_rows(const std::string& buffer, std::size_t rank, const RowsLeft& got, const RowsLeft& other,
                    const std::string& elsewhere);
  // All buffers of one row.
  void compare_row(const Observation& got, std::int64_t rank, std::int64_t row, const Observation& other,
                   std::int64_t other_rank, std::int64_t other_row, const std::string& elsewhere);
  // A violation that is not two rows' difference.
  void add(const std::string& buffer, std::int64_t rank, std::int64_t row, Element element);

  std::int64_t compared() const { return compared_; }
  std::vector<Violation> take();

 private:
  Element element_at(const TensorPlan& tensor, std::int64_t row, std::int64_t byte, const Bytes& got, const Bytes& other,
                     const std::string& elsewhere, std::int64_t& width) const;

  struct Tally {
    std::int64_t count = 0;
    std::vector<std::int64_t> rows;
    std::vector<Element> first;
  };
  std::string law_;
  const Plan& plan_;
  std::int64_t compared_ = 0;
  std::map<std::pair<std::int64_t, std::string>, Tally> tallies_;  // by rank and buffer
};

}  // namespace dcpcheck
