#include "harness/commands/stored.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/commands/cases.hpp"
#include "harness/commands/machine.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

// Where a stored case comes: what was once right is asked before what was only just found wrong.
int rank_of(const std::string& path) {
  int rank = 2;
  for (const fs::path& part : fs::path(path)) {
    if (part == "regressions") rank = 0;
    if (part == "findings") rank = 1;
  }
  return rank;
}

}  // namespace

std::string this_program() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || length == std::ssize(path)) throw_errno("readlink of /proc/self/exe");
  return {path.data(), static_cast<std::size_t>(length)};
}

std::chrono::seconds parse_time(const std::string& option, std::string_view text, std::int64_t most) {
  std::int64_t seconds = 0;
  std::string_view left = text;
  const auto refuse = [&]() {
    throw InputError(option + " takes a time as 90s, 30m or 1h30m, of " + std::to_string(most) + " s at the most, not '" +
                     text::printable(text) + "'");
  };
  while (!left.empty()) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(left.data(), left.data() + left.size(), number);
    if (error != std::errc{} || number < 0 || number > most) refuse();
    left.remove_prefix(static_cast<std::size_t>(stop - left.data()));
    const char unit = left.empty() ? 's' : left.front();
    if (!left.empty()) left.remove_prefix(1);
    if (unit != 's' && unit != 'm' && unit != 'h') refuse();
    seconds += number * (unit == 'h' ? 3600 : unit == 'm' ? 60 : 1);
  }
  if (seconds < 1 || seconds > most) refuse();
  return std::chrono::seconds(seconds);
}

std::vector<StoredCase> stored_cases(const Context& context, const std::vector<std::string>& folders, std::int64_t memory,
                                     std::string& digest) {
  digest.clear();
  if (folders.empty()) return {};
  std::vector<NamedCase> cases = load_cases(context, folders, {{}, memory});
  std::stable_sort(cases.begin(), cases.end(),
                   [](const NamedCase& a, const NamedCase& b) { return rank_of(a.reference) < rank_of(b.reference); });
  std::vector<StoredCase> stored;
  std::set<std::pair<std::string, std::string>> seen;
  Sha256 sum;
  for (NamedCase& named : cases) {
    StoredCase one;
    const json::Value document = json::parse(json::text_of(named.reference), named.reference);
    if (has_finding(document)) one.law = finding_from_json(context.ops, document, named.reference).signature.law;
    if (!seen.emplace(named.id, one.law).second) continue;
    sum.add(named.id + " " + one.law + "\n");
    if (!named.file.value.stored.empty())
      throw InputError(named.reference + ": its tensors lie in files beside it, and a campaign's workers do not take those");
    one.name = named.reference;
    Kernel fixed;
    fixed.op = named.op->name;
    one.expected = expectation_of(named.file, fixed);
    one.value = std::move(named.file.value);
    stored.push_back(std::move(one));
  }
  digest = sum.hex();
  return stored;
}

std::vector<std::string> worker_command(const CampaignSpec& spec, bool no_self_test) {
  std::vector<std::string> words{this_program()};
  for (std::string& word : worker_words(spec)) words.push_back(std::move(word));
  if (no_self_test) words.emplace_back("--no-self-test");
  return words;
}

std::vector<std::string> replay_words(const Context& context, const CampaignSpec& spec) {
  std::vector<std::string> words{context.program, "run", "--backend", spec.backend};
  for (const std::string& folder : spec.op_folders) {
    words.emplace_back("--ops");
    words.push_back(folder);
  }
  if (!spec.memory.empty()) {
    words.emplace_back("--memory");
    words.push_back(spec.memory);
  }
  return words;
}

json::Value run_to_json(const Context& context, const RunSettings& settings, const Shard& shard, const CampaignEnd& end) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) throw_errno("gethostname");
  json::Object spent;
  for (const auto& [what, seconds] : end.spent) spent.emplace_back(what, seconds);
  return json::Object{
      {"tool", to_json(context.tool)},
      {"host", std::string(host.data())},
      {"machine",
       to_json(describe_machine(settings.threads, settings.backend->name() == "cuda" ? settings.backend.get() : nullptr))},
      {"command", array_of(context.command)},
      {"shard", json::Array{static_cast<std::int64_t>(shard.index), static_cast<std::int64_t>(shard.count)}},
      {"cases", end.ran},
      {"seconds", end.seconds},
      {"spent", std::move(spent)}};
}

}  // namespace dcpcheck
