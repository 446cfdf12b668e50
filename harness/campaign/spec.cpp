#include "harness/campaign/spec.hpp"

#include <charconv>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
json::Value to_json(const CampaignSpec& spec) {
  json::Object shares;
  for (const auto& [op, share] : spec.shares) shares.emplace_back(op, share);
  return json::Object{
      {"seed", hex_of(spec.seed)},
      {"backend", spec.backend},
      {"kernels", array_of(spec.kernels)},
      {"ops", array_of(spec.ops)},
      {"op_folders", array_of(spec.op_folders)},
      {"laws", array_of(spec.laws)},
      {"shares", std::move(shares)},
      {"from", spec.base},
      {"set", array_of(spec.settings)},
      {"corpora", array_of(spec.corpora)},
      {"corpus_digest", spec.corpus_digest},
      {"memory", spec.memory},
      {"cases", static_cast<std::int64_t>(spec.cases)},
      {"shard", json::Array{static_cast<std::int64_t>(spec.shard.index), static_cast<std::int64_t>(spec.shard.count)}}};
}

CampaignSpec spec_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  reader.object({"seed", "backend", "kernels", "ops", "op_folders", "laws", "shares", "from", "set", "corpora", "corpus_digest",
                 "memory", "cases", "shard"});
  CampaignSpec spec;
  const std::string seed = reader.at("seed").string();
  const auto [stop, error] = std::from_chars(seed.data(), seed.data() + seed.size(), spec.seed, 16);
  if (error != std::errc{} || stop != seed.data() + seed.size()) reader.at("seed").fail("it is 16 hex digits");
  spec.backend = reader.at("backend").string();
  spec.kernels = words_of(reader.at("kernels"));
  spec.ops = words_of(reader.at("ops"));
  spec.op_folders = words_of(reader.at("op_folders"));
  spec.laws = words_of(reader.at("laws"));
  for (const auto& [op, share] : reader.at("shares").members()) spec.shares[op] = share.integer(1, 1000);
  spec.base = reader.at("from").string();
  spec.settings = words_of(reader.at("set"));
  spec.corpora = words_of(reader.at("corpora"));
  spec.corpus_digest = reader.at("corpus_digest").string();
  spec.memory = reader.at("memory").string();
  spec.cases = static_cast<std::uint64_t>(reader.at("cases").count());
  const std::vector<Reader> shard = reader.at("shard").elements();
  if (shard.size() != 2) reader.at("shard").fail("it is [index, count]");
  spec.shard.count = static_cast<std::uint64_t>(shard[1].integer(1, 1'000'000));
  spec.shard.index = static_cast<std::uint64_t>(shard[0].integer(0, static_cast<std::int64_t>(spec.shard.count) - 1));
  return spec;
}

std::string difference(const CampaignSpec& a, const CampaignSpec& b) {
  if (a.seed != b.seed) return "--seed";
  if (a.backend != b.backend) return "--backend";
  if (a.kernels != b.kernels) return "--kernel";
  if (a.ops != b.ops) return "--op";
  if (a.op_folders != b.op_folders) return "--ops";
  if (a.laws != b.laws) return "--law";
  if (a.shares != b.shares) return "--share";
  if (a.base != b.base) return "--from";
  if (a.settings != b.settings) return "--set";
  if (a.corpora != b.corpora) return "--corpus";
  if (a.corpus_digest != b.corpus_digest) return "--corpus (the cases that are there)";
  if (a.memory != b.memory) return "--memory";
  if (!(a.shard == b.shard)) return "--shard";
  return "";
}

std::vector<std::string> worker_words(const CampaignSpec& spec) {
  std::vector<std::string> words{"worker", "--seed", hex_of(spec.seed), "--backend", spec.backend, "--threads", "1"};
  const auto each = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      words.emplace_back(option);
      words.push_back(value);
    }
  };
  each("--kernel", spec.kernels);
  each("--op", spec.ops);
  each("--ops", spec.op_folders);
  each("--law", spec.laws);
  for (const auto& [op, share] : spec.shares) each("--share", {op + "=" + std::to_string(share)});
  if (!spec.memory.empty()) each("--memory", {spec.memory});
  return words;
}

}  // namespace dcpcheck
