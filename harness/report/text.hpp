// Text for a terminal: widths in columns, lines cut and wrapped, lists and ranges as a person writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dcpcheck::text {

// Of a terminal, and of all that is written for one.
constexpr int kColumns = 80;

// Columns that `text` (UTF-8) takes on a terminal.
int width(std::string_view text);

// `text` in exactly `columns` columns: padded with spaces, or cut with "…" as its last.
std::string fit(std::string_view text, int columns);

// `text` in lines of at most `columns`, broken at spaces (inside a word only where it is longer than a line); each
// line after the first starts with `indent` spaces. Ends with a newline.
std::string wrap(std::string_view text, int columns, int indent = 0);

// "a", "a and b", "a, b and c".
std::string list(const std::vector<std::string>& words);

// "0-3, 7"; past `most` ranges ", …" stands for the rest.
std::string ranges(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, std::size_t most);

// "1 row", "2 rows".
std::string count(std::int64_t number, const std::string& noun);

// The known word that `word` was most likely meant to be; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// `word` as a POSIX shell reads it back.
std::string shell_quote(std::string_view word);

// Control characters as "\xNN", so that a file's name cannot steer the terminal.
std::string printable(std::string_view text);

}  // namespace dcpcheck::text
