#include "harness/campaign/tally.hpp"

#include <utility>

#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kReasonsKept = 64;  // reasons to skip; a kernel may have one a case

void sum(StatusCounts& into, const StatusCounts& counts) {
  for (const auto& [status, count] : counts) into[status] += count;
}

json::Value counts_to_json(const StatusCounts& counts) {
  json::Object object;
  for (const auto& [status, count] : counts) object.emplace_back(std::string(name_of(status)), count);
  return object;
}

StatusCounts counts_from_json(const Reader& reader, const std::string& source) {
  StatusCounts counts;
  for (const auto& [name, count] : reader.members()) counts[status_named(name, source)] = count.count();
  return counts;
}

json::Value named_to_json(const std::map<std::string, StatusCounts>& named) {
  json::Object object;
  for (const auto& [name, counts] : named) object.emplace_back(name, counts_to_json(counts));
  return object;
}

void add_skipped(std::map<std::string, std::int64_t>& skipped, const std::string& why, std::int64_t count) {
  if (skipped.contains(why) || skipped.size() < kReasonsKept) {
    skipped[why] += count;
  } else {
    skipped["for other reasons"] += count;
  }
}

}  // namespace

void Tally::add(const std::string& op, std::int64_t ranks, const std::vector<Check>& checks) {
  const Status status = status_of(checks);
  ++cases;
  rank_cases += ranks;
  ++by_status[status];
  ++by_op[op][status];
  for (const Check& check : checks) {
    ++by_law[check.law][check.status];
    if (check.status == Status::skipped) add_skipped(skipped, check.detail, 1);
  }
}

void Tally::add(const Tally& other) {
  cases += other.cases;
  rank_cases += other.rank_cases;
  sum(by_status, other.by_status);
  for (const auto& [op, counts] : other.by_op) sum(by_op[op], counts);
  for (const auto& [law, counts] : other.by_law) sum(by_law[law], counts);
  for (const auto& [why, count] : other.skipped) add_skipped(skipped, why, count);
}

json::Value to_json(const Tally& tally) {
  json::Object skipped;
  for (const auto& [why, count] : tally.skipped) skipped.emplace_back(why, count);
  return json::Object{{"cases", tally.cases},
                      {"rank_cases", tally.rank_cases},
                      {"by_status", counts_to_json(tally.by_status)},
                      {"by_op", named_to_json(tally.by_op)},
                      {"by_law", named_to_json(tally.by_law)},
                      {"skipped", std::move(skipped)}};
}

Tally tally_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  reader.object({"cases", "rank_cases", "by_status", "by_op", "by_law", "skipped"});
  Tally tally;
  tally.cases = reader.at("cases").count();
  tally.rank_cases = reader.at("rank_cases").count();
  tally.by_status = counts_from_json(reader.at("by_status"), source);
  for (const auto& [op, counts] : reader.at("by_op").members()) tally.by_op[op] = counts_from_json(counts, source);
  for (const auto& [law, counts] : reader.at("by_law").members()) tally.by_law[law] = counts_from_json(counts, source);
  for (const auto& [why, count] : reader.at("skipped").members()) tally.skipped[why] = count.count();
  return tally;
}

}  // namespace dcpcheck
