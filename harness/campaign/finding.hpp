// A finding: what a kernel gets wrong, in the smallest case that was found, as a file that `dcpcheck run` takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/answer.hpp"
#include "harness/core/case.hpp"

namespace dcpcheck {

struct Finding {
  std::string id;  // id_of(signature)
  Signature signature;
  std::uint64_t number = 0;  // the campaign's, of the first case that has it
  std::string of;            // that case's name
  std::uint64_t seed = 0;    // the campaign's
  std::string backend;
  Check check;                        // of `value`
  Case value;                         // shrunk, as far as it was
  Case from;                          // what it was shrunk from
  std::map<std::string, int> reruns;  // by status: what came of running `from` again; empty: it has not been
  std::int64_t evaluations = 0;       // that shrinking took
  std::string stopped;                // why shrinking ended before nothing more could be taken away; "": it did not
  std::vector<std::string> replay;    // the words of the replay line that stand before the file: program, verb, options
};

// A case file ("dcpcheck.case/1") with all else under "finding".
json::Value to_json(const Ops& ops, const Finding& finding);
// Throws InputError, its sentence beginning with `source`, where it is no finding's file.
Finding finding_from_json(const Ops& ops, const json::Value& document, const std::string& source);
// Whether the document has a finding in it, or is a plain case.
bool has_finding(const json::Value& document);

// The words of a replay line: `words`, then the kernel and, unless every element is judged, the law.
std::vector<std::string> replay_of(std::vector<std::string> words, const Signature& signature);

// The line that replays the finding's file.
std::string replay_line(const Finding& finding, const std::string& path);

// folder/<id>.json, written whole or not at all.
std::string path_of(const std::string& folder, const std::string& id);
void write_finding(const Ops& ops, const std::string& folder, const Finding& finding);

// What is known already: which findings, where they are told of, and until when that holds.
struct Known {
  std::map<std::string, std::string> fields;  // of a signature: what is left out matches anything
  std::string issue;                          // a link
  std::string expires;                        // "2027-01-31": from the day after on it is red again
};

// The list in the file `path`: [{"op", "kernel", "law", "reason", "buffer", "issue", "expires"}, …]. Throws InputError.
std::vector<Known> load_known(const std::string& path);

// The entry that the signature matches; nullptr where none does. `today`: "2026-11-30"; an entry that has expired matches, too.
const Known* known_as(const std::vector<Known>& list, const Signature& signature);
bool has_expired(const Known& known, const std::string& today);
// Today's date, in UTC, as such a text.
std::string today();

}  // namespace dcpcheck
