// A set of whole numbers, kept as intervals [from, to).
#pragma once

#include <cstdint>
#include <map>

namespace dcpcheck {

class Intervals {
 public:
  void add(std::uint64_t from, std::uint64_t to);
  bool contains(std::uint64_t number) const;
  // The first number from `number` on that is not in the set.
  std::uint64_t next_outside(std::uint64_t number) const;
  // The first number from `number` on that is in it; UINT64_MAX where there is none.
  std::uint64_t next_inside(std::uint64_t number) const;
  const std::map<std::uint64_t, std::uint64_t>& all() const { return ends_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by where they begin; none touches another
};

}  // namespace dcpcheck
