#include "harness/campaign/state.hpp"

#include <algorithm>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

constexpr const char* kSchema = "dcpcheck.journal/1";

std::uint64_t number_of(const Reader& reader) { return static_cast<std::uint64_t>(reader.count()); }

json::Value lane_to_json(const Lane& lane) {
  return json::Object{{"op", lane.op},         {"kernel", lane.kernel},       {"share", lane.share},
                      {"judged", lane.judged}, {"laws", array_of(lane.laws)}, {"declaration", lane.declaration}};
}

Lane lane_from_json(const Reader& reader) {
  reader.object({"op", "kernel", "share", "judged", "laws", "declaration"});
  Lane lane{reader.at("op").string(),
            reader.at("kernel").string(),
            reader.at("share").integer(1, 1000),
            reader.at("judged").boolean(),
            {},
            reader.at("declaration").value()};
  lane.laws = words_of(reader.at("laws"));
  return lane;
}

}  // namespace

json::Value lanes_to_json(const std::vector<Lane>& lanes) {
  json::Array array;
  for (const Lane& lane : lanes) array.push_back(lane_to_json(lane));
  return array;
}

std::vector<Lane> lanes_from_json(const json::Value& value, const std::string& source) {
  std::vector<Lane> lanes;
  for (const Reader& lane : Reader(value, source).elements()) lanes.push_back(lane_from_json(lane));
  return lanes;
}

json::Value opening(const CampaignSpec& spec, const std::vector<Lane>& lanes, std::uint64_t stored, const std::string& tool) {
  return json::Object{{"journal", kSchema},
                      {"tool", tool},
                      {"spec", to_json(spec)},
                      {"lanes", lanes_to_json(lanes)},
                      {"stored", static_cast<std::int64_t>(stored)}};
}

json::Value range_done(std::uint64_t from, std::uint64_t to, const Tally& tally) {
  return json::Object{{"done", json::Array{static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)}},
                      {"tally", to_json(tally)}};
}

json::Value case_told(std::uint64_t number, const ToldCase& told) {
  json::Array checks;
  for (const Check& check : told.checks) checks.push_back(to_json(check));
  return json::Object{{"case", static_cast<std::int64_t>(number)},
                      {"lane", static_cast<std::int64_t>(told.lane)},
                      {"name", told.name},
                      {"checks", std::move(checks)}};
}

json::Value cases_asked(std::uint64_t cases) { return json::Object{{"cases", static_cast<std::int64_t>(cases)}}; }

json::Value finding_made(const std::string& id, std::uint64_t number) {
  return json::Object{{"finding", id}, {"of", static_cast<std::int64_t>(number)}};
}

void take(CampaignState& state, const json::Value& record, const std::string& source) {
  const Reader reader(record, source);
  if (const auto done = reader.find("done")) {
    const std::vector<Reader> ends = done->elements();
    if (ends.size() != 2) done->fail("it is [from, to]");
    const std::uint64_t from = number_of(ends[0]), to = number_of(ends[1]);
    if (state.done.next_inside(from) < to) done->fail("no case is done twice");
    state.done.add(from, to);
    state.tally.add(tally_from_json(reader.at("tally").value(), source));
  } else if (const auto number = reader.find("case")) {
    ToldCase told;
    told.lane = static_cast<std::size_t>(reader.at("lane").integer(0, static_cast<std::int64_t>(state.lanes.size()) - 1));
    told.name = reader.at("name").string();
    for (const Reader& check : reader.at("checks").elements()) told.checks.push_back(check_from_json(check.value(), source));
    state.told[number_of(*number)] = std::move(told);
  } else if (const auto cases = reader.find("cases")) {
    state.spec.cases = number_of(*cases);
  } else if (const auto finding = reader.find("finding")) {
    state.investigated[finding->string()] = number_of(reader.at("of"));
  } else {
    reader.fail("a record is of a range done, a case, a finding, or how many cases are asked for");
  }
}

CampaignState state_of(const std::vector<json::Value>& records, const std::string& source) {
  if (records.empty()) throw InputError(source + ": the journal is empty, so there is no campaign to go on with");
  const Reader first(records.front(), source);
  first.object({"journal", "tool", "spec", "lanes", "stored"});
  first.at("journal").one_of({kSchema});
  CampaignState state;
  state.spec = spec_from_json(first.at("spec").value(), source);
  state.lanes = lanes_from_json(first.at("lanes").value(), source);
  state.stored = number_of(first.at("stored"));
  for (std::size_t i = 1; i < records.size(); ++i) take(state, records[i], source + ", line " + std::to_string(i + 1));
  return state;
}

bool is_of_shard(const CampaignState& state, const std::vector<std::size_t>& round, std::uint64_t number) {
  const Shard& shard = state.spec.shard;
  if (number < state.stored) return number % shard.count == shard.index;
  return belongs(shard, round.size(), number - state.stored);
}

CampaignState merged(const std::vector<CampaignState>& shards, const std::vector<std::string>& names, bool partial) {
  const CampaignState& first = shards.front();
  const std::vector<std::size_t> round = round_of(first.lanes);
  const std::uint64_t count = first.spec.shard.count;
  std::map<std::uint64_t, std::size_t> by_index;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    CampaignSpec spec = shards[i].spec;
    spec.shard.index = first.spec.shard.index;
    const std::string other = difference(first.spec, spec);
    if (!other.empty() || spec.cases != first.spec.cases)
      throw InputError(names[i] + " and " + names.front() + " are of campaigns with another " +
                       (other.empty() ? "--cases" : other));
    if (lanes_to_json(shards[i].lanes) != lanes_to_json(first.lanes) || shards[i].stored != first.stored)
      throw InputError(names[i] + " and " + names.front() + " were run with other kernels, ops, laws or stored cases");
    if (const auto [twice, added] = by_index.emplace(shards[i].spec.shard.index, i); !added)
      throw InputError(names[i] + " and " + names[twice->second] + " are the same shard, " + std::to_string(twice->first) +
                       " of " + std::to_string(count));
    if (first.spec.cases == 0 || partial) continue;
    for (std::uint64_t number = 0, end = first.stored + first.spec.cases; number < end; ++number) {
      const std::uint64_t next = std::min(shards[i].done.next_outside(number), end);
      number = next;
      if (number < end && is_of_shard(shards[i], round, number))
        throw InputError(names[i] + " has not run its case " + std::to_string(number) +
                         ": go on with it first (--resume), or take what there is (--partial)");
    }
  }
  for (std::uint64_t index = 0; index < count; ++index)
    if (!by_index.contains(index))
      throw InputError("shard " + std::to_string(index) + " of " + std::to_string(count) + " is missing");
  CampaignState all;
  all.spec = first.spec;
  all.spec.shard = Shard{};
  all.lanes = first.lanes;
  all.stored = first.stored;
  for (const CampaignState& shard : shards) {
    all.tally.add(shard.tally);
    all.told.insert(shard.told.begin(), shard.told.end());
    for (const auto& [id, number] : shard.investigated) {
      const auto [made, added] = all.investigated.emplace(id, number);
      if (!added) made->second = std::min(made->second, number);
    }
  }
  return all;
}

Signature signature_of(const Lane& lane, const Check& check) {
  return {lane.op, lane.kernel, check.law, check.status == Status::flaky ? "flaky" : check.reason, check.buffer};
}

std::map<std::string, Met> findings_of(const CampaignState& state) {
  std::map<std::string, Met> met;
  for (const auto& [number, told] : state.told) {
    for (const Check& check : told.checks) {
      if (!is_finding(check.status)) continue;
      const Signature signature = signature_of(state.lanes.at(told.lane), check);
      Met& one = met[id_of(signature)];
      if (one.cases++ == 0) {
        one.signature = signature;
        one.first = number;
        one.check = check;
      }
    }
  }
  return met;
}

}  // namespace dcpcheck
