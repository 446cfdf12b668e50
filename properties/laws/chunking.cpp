#include <algorithm>

#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

constexpr std::int64_t kChunks = 4;   // that the whole launch is cut into
constexpr std::int64_t kSingles = 3;  // tokens that are also launched one by one, as decoding does

// The requests' parts in rows [begin, end) of the launch.
std::vector<Request> requests_in(const Geometry& geometry, std::int64_t begin, std::int64_t end) {
  std::vector<Request> parts;
  std::int64_t first = 0;
  for (const Request& request : geometry.batch) {
    const std::int64_t from = std::max(begin, first), to = std::min(end, first + request.uncached);
    if (from < to) parts.push_back({request.cached + from - first, to - from});
    first += request.uncached;
  }
  return parts;
}

LawFindings check_chunking(Trial& trial) {
  const Plan& plan = trial.plan();
  if (std::string why = undividable(plan); !why.empty()) return silent(why);
  if (plan.live < 2) return silent("there are under 2 tokens");
  Relaunches relaunches("chunking", trial);
  if (!relaunches.begin()) return relaunches.findings();
  const auto launch = [&](std::int64_t begin, std::int64_t end) {
    relaunches.add([&] {
      return of_rows(trial, requests_in(plan.value.geometry, begin, end), rows_from(begin, end - begin),
                     "in a launch of " + std::to_string(end - begin) + (end - begin == 1 ? " token" : " tokens"));
    });
  };
  const std::int64_t chunk = (plan.live + kChunks - 1) / kChunks;
  for (std::int64_t begin = 0; begin < plan.live; begin += chunk) launch(begin, std::min(begin + chunk, plan.live));
  for (std::int64_t i = 0; chunk > 1 && i < kSingles; ++i) {
    const std::int64_t token = i * (plan.live - 1) / (kSingles - 1);
    launch(token, token + 1);
  }
  return relaunches.findings();
}

}  // namespace

Law chunking() {
  return {"chunking", "A batch in several launches, one token at a time too, gets the rows that it gets in one.", false,
          check_chunking};
}

}  // namespace dcpcheck::laws
