// What came of one case of a campaign, as a worker tells it to its campaign: a line of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/json.hpp"
#include "harness/core/verdict.hpp"

namespace dcpcheck {

// A case held to one law, or judged element by element.
struct Check {
  std::string law;  // "": every element was judged
  Status status = Status::not_run;
  std::string reason;             // name_of(Reason); of a crash how it ended, of a hang "hang"
  std::string buffer;             // of the first violation; "" where there is none
  std::string detail;             // one sentence where there are no coordinates
  std::vector<std::string> what;  // what is wrong, a sentence each
  std::string inputs_digest, all_digest;
};

struct Answer {
  std::uint64_t number = 0;
  std::int64_t ranks = 0;  // of the case
  std::vector<Check> checks;
};

// What two failures have in common where they are taken for one finding.
struct Signature {
  std::string op, kernel, law, reason, buffer;
  friend auto operator<=>(const Signature&, const Signature&) = default;
};

// 16 hex digits that stand for the signature: the same on each machine.
std::string id_of(const Signature& signature);

// Whether a check of that status is one that a campaign must tell of one by one: not a pass, and not skipped.
bool is_told(Status status);
// … and is a finding: it failed, crashed, hung, or came out differently when it was run again.
bool is_finding(Status status);

// The case's own status: the worst of its checks'.
Status status_of(const std::vector<Check>& checks);

// The status of that name. Throws InputError, its sentence beginning with `source`.
Status status_named(const std::string& name, const std::string& source);

// Reason, sentences and the inputs' digest only where the check is one that is told.
json::Value to_json(const Check& check);
Check check_from_json(const json::Value& value, const std::string& source);
json::Value to_json(const Signature& signature);
Signature signature_from_json(const json::Value& value, const std::string& source);

}  // namespace dcpcheck
