// Which rows a reference works out where a sample of them is asked for (ReferenceOptions::sample).
#pragma once

#include <cstdint>
#include <vector>

namespace dcpcheck::reference {

// `sample` of the rows [0, live), spread evenly, the first and the last among them; a sample of one is the last, which of a
// prompt sees most. All of them where there are no more, or `sample` is 0.
inline std::vector<std::int64_t> sampled_rows(std::int64_t live, std::int64_t sample) {
  std::vector<std::int64_t> rows;
  if (sample == 1 && live > 1) return {live - 1};
  const std::int64_t count = sample > 0 && sample < live ? sample : live;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(count == live ? i : i * (live - 1) / (count - 1));
  return rows;
}

}  // namespace dcpcheck::reference
