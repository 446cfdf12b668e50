// What the generators draw from: a RapidCheck Random, number after number. RapidCheck's own generators make a Shrinkable
// for each number drawn, at a size that grows from 0 and would keep boundaries out of the first cases; here a whole case is
// drawn at once, a few hundred numbers, and shrinking is done on cases.
#pragma once

#include <rapidcheck/Random.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcpcheck {

class Dice {
 public:
  explicit Dice(rc::Random random) : random_(random) {}

  std::uint64_t word() { return random_.next(); }

  // least to most, both included; least where most is below it.
  std::int64_t within(std::int64_t least, std::int64_t most) {
    if (least >= most) return least;
    return least + static_cast<std::int64_t>(word() % static_cast<std::uint64_t>(most - least + 1));
  }
  // Once in n times.
  bool one_in(std::int64_t n) { return within(1, n) == 1; }

  // One of `values`, which must not be empty; any of them as likely as another.
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(within(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

  // An index, each as likely as its weight; -1 where all weights are 0.
  int weighted(const std::vector<int>& weights) {
    std::int64_t sum = 0;
    for (const int weight : weights) sum += weight;
    if (sum == 0) return -1;
    std::int64_t at = within(1, sum);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      at -= weights[i];
      if (at <= 0) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  rc::Random random_;
};

}  // namespace dcpcheck
