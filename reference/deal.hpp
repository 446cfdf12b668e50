// Who owns which position of a request, by dealing them out one after the other: no closed form here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcpcheck::reference {

// Where each position of a request lies: on which rank, and as that rank's how-manieth row.
struct Deal {
  std::vector<std::int32_t> owner;
  std::vector<std::int64_t> local;
};

// Deals positions 0 .. count - 1 to `ranks` ranks. Each logical block of every rank together make a virtual block; in
// it the ranks take turns, `run` positions a turn, the first rank first.
inline Deal deal_positions(std::int64_t count, std::int64_t block_size, std::int64_t ranks, std::int64_t run) {
  Deal deal;
  std::vector<std::int64_t> has(static_cast<std::size_t>(ranks), 0);
  std::int64_t in_block = 0, in_run = 0;
  std::size_t turn = 0;
  for (std::int64_t position = 0; position < count; ++position) {
    deal.owner.push_back(static_cast<std::int32_t>(turn));
    deal.local.push_back(has[turn]++);
    if (++in_run == run) {
      in_run = 0;
      turn = turn + 1 == has.size() ? 0 : turn + 1;
    }
    if (++in_block == block_size * ranks) {
      in_block = 0;
      in_run = 0;
      turn = 0;
    }
  }
  return deal;
}

}  // namespace dcpcheck::reference
