// Which case of a campaign comes when: pure functions from a number to a lane and a case's index in it.
//
// A lane is a kernel on cases of an op. Numbers go round the lanes, each as often a round as its share; within a lane, cases
// come in the order of their indices. What case index i is depends on the campaign's seed, the op and i alone, so neither
// lanes, shards, jobs nor the order in which numbers are run change it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/json.hpp"

namespace dcpcheck {

struct Lane {
  std::string op, kernel;         // the kernel's name
  std::int64_t share = 1;         // turns a round, at least 1
  bool judged = true;             // every element is judged; else laws alone are asked
  std::vector<std::string> laws;  // asked besides: one a case, in turn; where none is judged, all of them
  json::Value declaration{};      // what a kernel from elsewhere declares of its cases; null: nothing
};

struct Turn {
  std::size_t lane = 0;
  std::uint64_t index = 0;
  friend bool operator==(const Turn&, const Turn&) = default;
};

// The numbers of the lanes of one round, spread evenly: with shares 2 and 1, lane 0, lane 1, lane 0.
std::vector<std::size_t> round_of(const std::vector<Lane>& lanes);

// Whose turn `number` is. `round` is round_of(lanes).
Turn turn_of(const std::vector<std::size_t>& round, std::uint64_t number);

// The laws, "" standing for the judging of every element, that the case of that index is held to in its lane.
std::vector<std::string> checks_of(const Lane& lane, std::uint64_t index);

// One of `count` parts of a campaign that together run exactly its numbers.
struct Shard {
  std::uint64_t index = 0, count = 1;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// "2/8" is the third of eight. Throws InputError.
Shard parse_shard(std::string_view text);

// Whether `number` is the shard's. Each round begins one shard further, so that no shard is left with one lane alone.
bool belongs(const Shard& shard, std::size_t round_size, std::uint64_t number);

}  // namespace dcpcheck
