#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check_prefix_split(Trial& trial) {
  const Geometry& geometry = trial.value().geometry;
  if (std::string why = undividable(trial.plan()); !why.empty()) return silent(why);
  if (geometry.batch.empty() || geometry.batch.front().uncached < 4) return silent("the first request has under 4 tokens");
  Relaunches relaunches("prefix_split", trial);
  if (!relaunches.begin()) return relaunches.findings();
  const Request whole = geometry.batch.front();
  // Halves, the later one the longer where they are uneven: and a prefix of two tokens.
  for (const std::int64_t prefix : {whole.uncached / 2, std::int64_t{2}}) {
    relaunches.add([&] {
      return of_rows(trial, {{whole.cached, prefix}}, rows_from(0, prefix), "where an earlier request had the prefix");
    });
    std::vector<Request> batch = geometry.batch;
    batch.front() = {whole.cached + prefix, whole.uncached - prefix};
    relaunches.add(
        [&] { return of_rows(trial, batch, rows_from(prefix, trial.plan().live - prefix), "where the prefix was cached"); });
    if (whole.uncached == 4) break;  // the halves have two tokens
  }
  return relaunches.findings();
}

}  // namespace

Law prefix_split() {
  return {"prefix_split", "A request whose first tokens an earlier request has cached gets the same rows for the others.",
          false, check_prefix_split};
}

}  // namespace dcpcheck::laws
