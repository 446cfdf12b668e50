#include "properties/covering.hpp"

#include <algorithm>
#include <utility>

namespace dcpcheck {
namespace {

// The attempts at a pair that are also asked for other pairs that are not met yet. After those it stands alone, which
// leaves the attempt the most room.
constexpr int kGreedyTrials = 2;

struct Pair {
  int dimension = 0, bucket = 0, other_dimension = 0, other_bucket = 0;
};

// Fills `wishes.may` dimension by dimension with the bucket that stands in the most open pairs with those chosen before.
void fill_in(Wishes& wishes, const std::vector<int>& sizes, const std::function<bool(const Pair&)>& open, std::size_t turn) {
  const std::size_t count = sizes.size();
  std::vector<std::pair<int, int>> chosen;
  for (std::size_t d = 0; d < count; ++d) {
    if (wishes.must[d] >= 0) chosen.emplace_back(static_cast<int>(d), wishes.must[d]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    // Another dimension goes first in each row, and another bucket wins where several are as good.
    const auto d = static_cast<int>((i + turn) % count);
    if (wishes.must[static_cast<std::size_t>(d)] >= 0 || wishes.may[static_cast<std::size_t>(d)] >= 0) continue;
    const int size = sizes[static_cast<std::size_t>(d)];
    int best = -1;
    std::int64_t most = 0;
    for (int step = 0; step < size; ++step) {
      const int bucket = static_cast<int>((static_cast<std::size_t>(step) + turn) % static_cast<std::size_t>(size));
      std::int64_t gained = 0;
      for (const auto& [other, other_bucket] : chosen) gained += open({d, bucket, other, other_bucket}) ? 1 : 0;
      if (gained > most) {
        most = gained;
        best = bucket;
      }
    }
    if (best < 0) continue;  // nothing to gain: left free
    wishes.may[static_cast<std::size_t>(d)] = best;
    chosen.emplace_back(d, best);
  }
}

// Rows all of whose pairs other rows have, too, go: later rows often meet what an earlier one was made for.
void drop_superfluous(std::vector<CoveringRow>& rows, const std::vector<int>& sizes) {
  std::vector<int> first;
  int total = 0;
  for (const int size : sizes) {
    first.push_back(total);
    total += size;
  }
  std::vector<std::uint16_t> times(static_cast<std::size_t>(total) * static_cast<std::size_t>(total));
  const auto each_pair = [&](const Buckets& row, const auto& visit) {
    for (std::size_t a = 0; a < row.size(); ++a) {
      if (row[a] < 0) continue;
      for (std::size_t b = a + 1; b < row.size(); ++b) {
        if (row[b] < 0) continue;
        visit(times[static_cast<std::size_t>(first[a] + row[a]) * static_cast<std::size_t>(total) +
                    static_cast<std::size_t>(first[b] + row[b])]);
      }
    }
  };
  for (const CoveringRow& row : rows) {
    each_pair(row.buckets, [](std::uint16_t& count) { ++count; });
  }
  for (std::size_t i = rows.size(); i-- > 0;) {
    bool needed = false;
    each_pair(rows[i].buckets, [&](const std::uint16_t& count) { needed = needed || count == 1; });
    if (needed) continue;
    each_pair(rows[i].buckets, [](std::uint16_t& count) { --count; });
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

class Search {
 public:
  Search(const std::vector<int>& sizes, const Attempt& attempt, int trials)
      : sizes_(sizes), attempt_(attempt), trials_(trials), array_{{}, PairSet(sizes), PairSet(sizes), 0} {
    for (const int size : sizes) alone_.emplace_back(static_cast<std::size_t>(size), false);
  }

  CoveringArray run() {
    // Buckets that no case is in would cost trials with every other bucket.
    for (int d = 0; d < static_cast<int>(sizes_.size()); ++d) {
      for (int bucket = 0; bucket < sizes_[static_cast<std::size_t>(d)]; ++bucket) {
        if (!alone_[static_cast<std::size_t>(d)][static_cast<std::size_t>(bucket)]) meet({d, bucket, -1, -1}, 3 * trials_);
      }
    }
    array_.met.every([&](int a, int i, int b, int j) {
      const auto possible = [&](int d, int bucket) {
        return alone_[static_cast<std::size_t>(d)][static_cast<std::size_t>(bucket)];
      };
      if (!possible(a, i) || !possible(b, j)) array_.infeasible.add(a, i, b, j);
    });
    array_.met.every([&](int a, int i, int b, int j) {
      const Pair pair{a, i, b, j};
      if (!open(pair)) return;
      if (hopeless(pair) || !meet(pair, trials_)) array_.infeasible.add(a, i, b, j);
    });
    drop_superfluous(array_.rows, sizes_);
    return std::move(array_);
  }

 private:
  bool open(const Pair& pair) const {
    return !array_.met.contains(pair.dimension, pair.bucket, pair.other_dimension, pair.other_bucket) &&
           !array_.infeasible.contains(pair.dimension, pair.bucket, pair.other_dimension, pair.other_bucket);
  }

  // Where a bucket goes with no bucket of another dimension, or two dimensions never go together (tensors of which a case
  // has one or the other), a few of their pairs tell.
  bool hopeless(const Pair& pair) const {
    const auto d = static_cast<std::size_t>(pair.dimension), other = static_cast<std::size_t>(pair.other_dimension);
    int failed = 0, met = 0, failed_here = 0, met_here = 0, failed_there = 0, met_there = 0;
    for (int i = 0; i < sizes_[d]; ++i) {
      for (int j = 0; j < sizes_[other]; ++j) {
        const int is_met = array_.met.contains(pair.dimension, i, pair.other_dimension, j) ? 1 : 0;
        const int has_failed = array_.infeasible.contains(pair.dimension, i, pair.other_dimension, j) ? 1 : 0;
        met += is_met;
        failed += has_failed;
        met_here += i == pair.bucket ? is_met : 0;
        failed_here += i == pair.bucket ? has_failed : 0;
        met_there += j == pair.other_bucket ? is_met : 0;
        failed_there += j == pair.other_bucket ? has_failed : 0;
      }
    }
    constexpr int few = 3;
    return (met == 0 && failed >= few) || (met_here == 0 && failed_here >= few) || (met_there == 0 && failed_there >= few);
  }

  // Whether a case was found with both buckets (with the one, where the other dimension is -1).
  bool meet(const Pair& pair, int trials) {
    const Buckets none(sizes_.size(), -1);
    for (int trial = 0; trial < trials; ++trial) {
      Wishes wishes{none, none};
      wishes.must[static_cast<std::size_t>(pair.dimension)] = pair.bucket;
      if (pair.other_dimension >= 0) wishes.must[static_cast<std::size_t>(pair.other_dimension)] = pair.other_bucket;
      if (trial < kGreedyTrials) {
        fill_in(
            wishes, sizes_, [&](const Pair& one) { return open(one); }, array_.rows.size() + static_cast<std::size_t>(trial));
      }
      ++array_.attempts;
      std::optional<CoveringRow> row = attempt_(wishes, trial);
      if (!row) continue;
      array_.met.add(row->buckets);
      for (std::size_t d = 0; d < sizes_.size(); ++d) {
        if (row->buckets[d] >= 0) alone_[d][static_cast<std::size_t>(row->buckets[d])] = true;
      }
      array_.rows.push_back(std::move(*row));
      return true;
    }
    return false;
  }

  const std::vector<int>& sizes_;
  const Attempt& attempt_;
  int trials_;
  CoveringArray array_;
  std::vector<std::vector<bool>> alone_;  // by dimension and bucket: some case is in it
};

}  // namespace

PairSet::PairSet(std::vector<int> sizes) : sizes_(std::move(sizes)) {
  for (const int size : sizes_) {
    first_.push_back(total_);
    total_ += size;
  }
  in_.resize(static_cast<std::size_t>(total_) * static_cast<std::size_t>(total_));
}

std::size_t PairSet::index(int dimension, int bucket, int other_dimension, int other_bucket) const {
  if (dimension > other_dimension) return index(other_dimension, other_bucket, dimension, bucket);
  const auto number = [&](int d, int b) {
    return static_cast<std::size_t>(first_[static_cast<std::size_t>(d)]) + static_cast<std::size_t>(b);
  };
  return number(dimension, bucket) * static_cast<std::size_t>(total_) + number(other_dimension, other_bucket);
}

bool PairSet::contains(int dimension, int bucket, int other_dimension, int other_bucket) const {
  return in_[index(dimension, bucket, other_dimension, other_bucket)];
}

void PairSet::add(int dimension, int bucket, int other_dimension, int other_bucket) {
  const std::size_t at = index(dimension, bucket, other_dimension, other_bucket);
  if (in_[at]) return;
  in_[at] = true;
  ++size_;
}

void PairSet::add(const Buckets& row) {
  for (std::size_t a = 0; a < row.size(); ++a) {
    if (row[a] < 0) continue;
    for (std::size_t b = a + 1; b < row.size(); ++b) {
      if (row[b] >= 0) add(static_cast<int>(a), row[a], static_cast<int>(b), row[b]);
    }
  }
}

void PairSet::every(const std::function<void(int, int, int, int)>& visit) const {
  for (std::size_t a = 0; a < sizes_.size(); ++a) {
    for (std::size_t b = a + 1; b < sizes_.size(); ++b) {
      for (int i = 0; i < sizes_[a]; ++i) {
        for (int j = 0; j < sizes_[b]; ++j) visit(static_cast<int>(a), i, static_cast<int>(b), j);
      }
    }
  }
}

CoveringArray make_covering_array(const std::vector<int>& sizes, const Attempt& attempt, int trials) {
  return Search(sizes, attempt, trials).run();
}

}  // namespace dcpcheck
