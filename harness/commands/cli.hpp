// The command line: words to a verb and its arguments.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/verb.hpp"

namespace dcpcheck {

struct CommandLine {
  const Verb* verb = nullptr;  // null: print `answer` and be done (--help, --version)
  Arguments arguments;
  std::string answer;
};

// `words` without the program's name. Options may stand on either side of the verb. Throws InputError, with a
// suggestion where a word looks mistyped.
CommandLine parse_command_line(const std::vector<std::string>& words, const std::vector<Verb>& verbs,
                               const std::string& version);

// What the pages begin with, how options and streams are used, and the exit codes.
extern const std::string kAbout, kConventions, kExitCodes;

// The page that `dcpcheck --help` (verb null) or `dcpcheck VERB --help` shows.
std::string help_page(const std::vector<Verb>& verbs, const Verb* verb);

}  // namespace dcpcheck
