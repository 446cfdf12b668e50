#include "harness/report/text.hpp"

#include <algorithm>

#include "harness/core/reader.hpp"

namespace dcpcheck::text {
namespace {

// Bytes of the UTF-8 sequence that starts with `lead`; 1 for what is none.
std::size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  if (lead >= 0xC0) return 2;
  return 1;
}

// Columns of one sequence: scripts from Hangul on are counted double, which is never too few.
int columns_of(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 4) return 2;
  if (sequence.size() == 3 && lead == 0xE2) return 1;  // punctuation and mathematics: "…", "≠"
  return sequence.size() == 3 && lead >= 0xE1 ? 2 : 1;
}

std::vector<std::string_view> sequences(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::min(sequence_length(static_cast<unsigned char>(text[at])), text.size() - at);
    parts.push_back(text.substr(at, length));
    at += length;
  }
  return parts;
}

}  // namespace

int width(std::string_view text) {
  int columns = 0;
  for (const std::string_view part : sequences(text)) columns += columns_of(part);
  return columns;
}

std::string fit(std::string_view text, int columns) {
  std::string line(text);
  int used = width(text);
  if (used > columns) {
    line.clear();
    used = 0;
    for (const std::string_view part : sequences(text)) {
      if (used + columns_of(part) > columns - 1) break;
      line += part;
      used += columns_of(part);
    }
    line += "…";
    ++used;
  }
  return line.append(static_cast<std::size_t>(std::max(columns - used, 0)), ' ');
}

std::string wrap(std::string_view text, int columns, int indent) {
  std::string lines;
  int used = 0;
  bool fresh = true;  // nothing but the indent stands on the line
  const auto new_line = [&] {
    lines += '\n';
    lines.append(static_cast<std::size_t>(indent), ' ');
    used = indent;
    fresh = true;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fresh) {
      if (used + 1 + width(word) <= columns) {
        lines += ' ';
        ++used;
      } else {
        new_line();
      }
    }
    for (const std::string_view part : sequences(word)) {
      if (used + columns_of(part) > columns) new_line();
      lines += part;
      used += columns_of(part);
      fresh = false;
    }
    if (word.empty() && fresh) {  // leading spaces are meant
      lines += ' ';
      ++used;
    }
  }
  return lines + '\n';
}

std::string list(const std::vector<std::string>& words) {
  std::string line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) line += i + 1 == words.size() ? " and " : ", ";
    line += words[i];
  }
  return line;
}

std::string ranges(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges, std::size_t most) {
  std::string line;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i > 0) line += ", ";
    if (i == most) return line + "…";
    line += std::to_string(ranges[i].first);
    if (ranges[i].second != ranges[i].first) line.append("-").append(std::to_string(ranges[i].second));
  }
  return line;
}

std::string count(std::int64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) { return nearest_name(word, known, 3); }

std::string shell_quote(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("@%+=:,./_-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {
      line += "\\x";
      line += digits[byte >> 4];
      line += digits[byte & 15];
    }
  }
  return line;
}

}  // namespace dcpcheck::text
