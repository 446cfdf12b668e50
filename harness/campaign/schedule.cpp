#include "harness/campaign/schedule.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {

std::vector<std::size_t> round_of(const std::vector<Lane>& lanes) {
  // The k-th of s turns stands at (2k + 1) / 2s of the round; compared as whole numbers, crosswise.
  struct Place {
    std::int64_t above, below;
    std::size_t lane;
  };
  std::vector<Place> places;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    for (std::int64_t k = 0; k < lanes[lane].share; ++k) places.push_back({2 * k + 1, 2 * lanes[lane].share, lane});
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.above * b.below < b.above * a.below; });
  std::vector<std::size_t> round;
  round.reserve(places.size());
  for (const Place& place : places) round.push_back(place.lane);
  return round;
}

Turn turn_of(const std::vector<std::size_t>& round, std::uint64_t number) {
  const auto place = static_cast<std::ptrdiff_t>(number % round.size());
  const std::size_t lane = round[static_cast<std::size_t>(place)];
  const auto share = static_cast<std::uint64_t>(std::count(round.begin(), round.end(), lane));
  const auto before = static_cast<std::uint64_t>(std::count(round.begin(), round.begin() + place, lane));
  return {lane, number / round.size() * share + before};
}

std::vector<std::string> checks_of(const Lane& lane, std::uint64_t index) {
  if (!lane.judged) return lane.laws;
  std::vector<std::string> checks{""};
  if (!lane.laws.empty()) checks.push_back(lane.laws[index % lane.laws.size()]);
  return checks;
}

Shard parse_shard(std::string_view text) {
  const auto number = [&](std::string_view digits) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc{} || stop != digits.data() + digits.size())
      throw InputError("--shard takes INDEX/COUNT, as 0/4, not '" + text::printable(text) + "'");
    return value;
  };
  const std::size_t slash = std::min(text.find('/'), text.size());
  const Shard shard{number(text.substr(0, slash)), number(text.substr(std::min(slash + 1, text.size())))};
  if (shard.count == 0 || shard.count > 1'000'000 || shard.index >= shard.count)
    throw InputError("--shard " + text::printable(text) +
                     ": the index goes from 0 to one below the count, which is at most 1000000");
  return shard;
}

bool belongs(const Shard& shard, std::size_t round_size, std::uint64_t number) {
  return (number + number / round_size) % shard.count == shard.index;
}

}  // namespace dcpcheck
