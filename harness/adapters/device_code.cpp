#include "harness/adapters/device_code.hpp"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

using Entries = std::map<std::string, std::optional<EntryParameters>>;

// A T at byte `at`; the file is anybody's, so every read is checked.
template <class T>
T read(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) throw InputError("is cut short");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view part(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) throw InputError("is cut short");
  return bytes.substr(at, size);
}

std::string_view name_at(std::string_view names, std::uint64_t at) {
  if (at >= names.size()) throw InputError("names a section out of its bounds");
  const std::string_view rest = names.substr(at);
  return rest.substr(0, rest.find('\0'));
}

// The records of a kernel's .nv.info section: a format byte, an attribute byte, a half-word that is either the value or how
// many bytes follow.
std::optional<EntryParameters> parameters_in(std::string_view info) {
  constexpr std::uint8_t sized = 4;
  constexpr std::uint8_t parameter = 0x17;
  constexpr std::uint8_t parameter_bytes = 0x19;  // of all of them
  std::map<std::uint16_t, std::int64_t> found;
  bool told = true;  // false: there are parameters, in records of another kind
  for (std::uint64_t at = 0; at < info.size();) {
    const auto format = read<std::uint8_t>(info, at);
    const auto attribute = read<std::uint8_t>(info, at + 1);
    const auto size = read<std::uint16_t>(info, at + 2);
    at += 4;
    if (attribute == parameter_bytes && size > 0) told = false;
    if (format != sized) continue;
    const std::string_view record = part(info, at, size);
    at += size;
    if (attribute != parameter || size != 12) continue;
    // index u32, ordinal u16, offset u16, and a word with the size in its upper bits
    found[read<std::uint16_t>(record, 4)] = read<std::uint32_t>(record, 8) >> 18;
  }
  if (found.empty() && !told) return std::nullopt;
  EntryParameters parameters;
  for (const auto& [ordinal, bytes] : found) {
    if (ordinal != parameters.bytes.size()) return std::nullopt;
    parameters.bytes.push_back(bytes);
  }
  return parameters;
}

Entries in_cubin(std::string_view code) {
  const auto header = read<Elf64_Ehdr>(code, 0);
  constexpr int cuda_machine = 190;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != cuda_machine)
    throw InputError("is an ELF file, but no cubin");
  std::vector<Elf64_Shdr> sections;
  sections.reserve(header.e_shnum);
  for (int i = 0; i < header.e_shnum; ++i)
    sections.push_back(read<Elf64_Shdr>(code, header.e_shoff + std::uint64_t{header.e_shentsize} * static_cast<unsigned>(i)));
  if (header.e_shstrndx >= sections.size()) throw InputError("names no sections");
  for (const Elf64_Shdr& section : sections)
    if (section.sh_type != SHT_NOBITS) static_cast<void>(part(code, section.sh_offset, section.sh_size));
  static_cast<void>(part(code, header.e_phoff, std::uint64_t{header.e_phentsize} * header.e_phnum));
  const std::string_view names = part(code, sections[header.e_shstrndx].sh_offset, sections[header.e_shstrndx].sh_size);
  Entries entries;
  constexpr std::string_view prefix = ".nv.info.";
  for (const Elf64_Shdr& section : sections) {
    const std::string_view name = name_at(names, section.sh_name);
    if (!name.starts_with(prefix)) continue;
    entries.emplace(name.substr(prefix.size()), parameters_in(part(code, section.sh_offset, section.sh_size)));
  }
  return entries;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

// PTX as words: names, numbers, and each other character by itself; comments left out.
std::vector<std::string_view> words_of(std::string_view code) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < code.size();) {
    if (code.substr(at, 2) == "//") {
      at = std::min(code.find('\n', at), code.size());
    } else if (code.substr(at, 2) == "/*") {
      const std::size_t end = code.find("*/", at + 2);
      if (end == std::string_view::npos) throw InputError("is cut short: a comment has no end");
      at = end + 2;
    } else if (std::isspace(static_cast<unsigned char>(code[at])) != 0) {
      ++at;
    } else {
      std::size_t end = at + 1;
      if (is_name(code[at]) || code[at] == '.') {
        while (end < code.size() && is_name(code[end])) ++end;
      }
      words.push_back(code.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

std::int64_t bytes_of_ptx(std::string_view type) {
  if (type.size() < 3 || type.front() != '.') return 0;
  const std::string_view bits = type.substr(2);
  return bits == "8" ? 1 : bits == "16" ? 2 : bits == "32" ? 4 : bits == "64" ? 8 : 0;
}

// `.entry name ( .param [.align n] .type [attributes] name [ '[' n ']' ], … )`
Entries in_ptx(std::string_view code) {
  const std::vector<std::string_view> words = words_of(code);
  Entries entries;
  std::int64_t depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "{") ++depth;
    if (words[i] == "}") --depth;
    if (words[i] != ".entry") continue;
    if (i + 1 >= words.size()) throw InputError("is cut short");
    std::optional<EntryParameters> parameters(std::in_place);
    const std::string name(words[i + 1]);
    i += 2;
    if (i < words.size() && words[i] == "(") {
      std::int64_t bytes = 0;
      for (++i; i < words.size() && words[i] != ")"; ++i) {
        if (words[i] == ".param") bytes = 0;
        if (words[i] == ".align" || words[i] == ".ptr") {
          ++i;
          continue;
        }
        if (bytes == 0) bytes = bytes_of_ptx(words[i]);
        const bool ends = i + 1 < words.size() && (words[i + 1] == "," || words[i + 1] == ")");
        if (words[i] == "[" && i + 1 < words.size()) {
          std::int64_t count = 0;
          for (const char c : words[i + 1].substr(0, 9)) count = c >= '0' && c <= '9' ? 10 * count + (c - '0') : count;
          bytes *= count;
        }
        if (!ends) continue;
        if (bytes > 0 && parameters) parameters->bytes.push_back(bytes);
        if (bytes <= 0) parameters.reset();
      }
      if (i >= words.size()) throw InputError("is cut short");
    }
    entries.emplace(name, std::move(parameters));
    if (i < words.size() && words[i] == "{") ++depth;
  }
  if (depth != 0) throw InputError("is cut short: a { has no }");
  return entries;
}

}  // namespace

Entries entries_of(std::string_view code) {
  if (code.empty()) throw InputError("is empty");
  if (code.starts_with(ELFMAG)) return in_cubin(code);
  if (code.find('\0') == std::string_view::npos && code.find(".version") != std::string_view::npos) return in_ptx(code);
  throw InputError("is neither a cubin nor PTX");
}

}  // namespace dcpcheck
