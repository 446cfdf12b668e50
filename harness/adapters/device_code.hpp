// What a cubin or PTX file says of the kernels in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dcpcheck {

struct EntryParameters {
  std::vector<std::int64_t> bytes;  // of each parameter, in order
};

// The kernels in `code` by name, with their parameters; nullopt where the file tells of an entry in a way that is not known
// here (the driver then has the last word). Throws InputError, a half-sentence, where `code` is neither a cubin nor PTX, or
// is cut short.
std::map<std::string, std::optional<EntryParameters>> entries_of(std::string_view code);

}  // namespace dcpcheck
