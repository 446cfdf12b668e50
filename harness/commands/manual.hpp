// The manual page, and what completes words in bash: both of the same words as --help.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/verb.hpp"

namespace dcpcheck {

// A page of section 1, for man.
std::string man_page(const std::vector<Verb>& verbs, const std::string& version);

// A file for bash-completion's folder.
std::string bash_completion(const std::vector<Verb>& verbs);

}  // namespace dcpcheck
