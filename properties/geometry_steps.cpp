// The generators of the geometry: ranks, cache groups, requests, chunks, padding.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "harness/core/philox.hpp"
#include "properties/draft.hpp"
#include "properties/ranges.hpp"
#include "properties/settle.hpp"

namespace dcpcheck {
namespace {

constexpr int kLong = 3;                                     // the bucket of lengths past a block
constexpr std::int64_t kMostSparse = std::int64_t{1} << 26;  // blocks of a sparse cache
constexpr std::int64_t kMostListed = 512;                    // explicit slots in a case, over all ranks

// Draws a field again and again, and keeps what meets the most wishes, above all those that must be met.
template <class Value>
class Best {
 public:
  Best(const GeometryDimensions& dimensions, const std::vector<int>& numbers, const Pick& pick) {
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (!pick.asked(numbers[i])) continue;
      wishes_.push_back({&dimensions[i], pick.wish(numbers[i]), pick.must(numbers[i]) >= 0 ? kMust : 1});
      full_ += wishes_.back().worth;
    }
  }
  // Leaves the best of a few draws in the geometry; false where that misses a bucket in which the case must be.
  bool operator()(Geometry& geometry, Value Geometry::*field, const std::function<Value()>& draw) const {
    constexpr int trials = 12;
    Value best;
    std::int64_t most = -1;
    for (int trial = 0; trial < trials && most < full_; ++trial) {
      geometry.*field = draw();
      std::int64_t score = 0;
      for (const Wish& wish : wishes_) {
        if (wish.dimension->bucket_of(geometry) == wish.bucket) score += wish.worth;
      }
      if (score <= most) continue;
      most = score;
      best = geometry.*field;
    }
    geometry.*field = std::move(best);
    return most / kMust == full_ / kMust;
  }

 private:
  static constexpr std::int64_t kMust = 1000;  // as much as more wishes than there are dimensions

  struct Wish {
    const GeometryDimension* dimension;
    int bucket;
    std::int64_t worth;
  };
  std::vector<Wish> wishes_;
  std::int64_t full_ = 0;
};

Step geometry_step(std::vector<std::string> terms, std::vector<int> dimensions,
                   std::function<void(Draft&, const Pick&, Dice&)> apply) {
  Step step;
  step.terms = std::move(terms);
  step.dimensions = std::move(dimensions);
  step.apply = std::move(apply);
  step.geometry = true;
  return step;
}

std::vector<std::string> of_group(const std::string& group, const std::vector<const char*>& terms) {
  std::vector<std::string> out;
  out.reserve(terms.size());
  for (const char* term : terms) out.push_back(group + "." + term);
  return out;
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out;
}

// A number in the bucket, near its lower end where it has no upper one.
std::int64_t draw_in(const Ranges& ranges, int bucket, std::int64_t spread, Dice& dice) {
  const Range& range = ranges[static_cast<std::size_t>(bucket)];
  return dice.within(range.least, std::min(range.most, range.least + spread));
}

// W, and how many groups of W ranks there are.
Step ranks_step(const Numbers& numbers) {
  const int world = numbers("world_size"), groups = numbers("rank_groups"), owners = numbers("owners");
  return geometry_step({"W", "tp"}, {world, groups}, [=](Draft& draft, const Pick& pick, Dice& dice) {
    Geometry& geometry = draft.value.geometry;
    geometry.world_size = 1;
    if (world >= 0) {
      const int one = pick.asked(owners) ? 0 : 4;  // which ranks own rows is a matter of several
      const bool few = draft.launch != 0 || (draft.narrow && dice.one_in(2));
      const int bucket = pick(world, few ? std::vector<int>{one, 2, 0, 0, 0, 0} : std::vector<int>{one, 4, 2, 4, 2, 1});
      geometry.world_size = draw_in(world_sizes(), bucket, 1, dice);
    }
    geometry.tp = geometry.world_size * draw_in(rank_groups(), pick(groups, {draft.narrow ? 30 : 6, 2, 1}), 1, dice);
  });
}

std::int64_t draw_block_size(const Geometry& geometry, const Pick& pick, int number, Dice& dice) {
  // Groups of one block size are common, and let the interleave size be more than 1 in both.
  if (!pick.asked(number) && !geometry.caches.empty() && dice.one_in(2)) return geometry.caches.begin()->second.block_size;
  static const std::array<std::vector<std::int64_t>, 4> sizes = {
      {{1}, {2, 3, 4, 4, 6, 8, 8, 12, 15}, {16, 16, 32, 64}, {17, 24, 24, 48, 63}}};
  return dice.of(sizes[static_cast<std::size_t>(pick(number, {2, 4, 3, 1}))]);
}

std::int64_t draw_kernel_block_size(std::int64_t block_size, int bucket, Dice& dice) {
  if (bucket == 0) return block_size;
  if (bucket == 1) return 1;
  std::vector<std::int64_t> parts = divisors(block_size);
  if (parts.size() <= 2) return block_size;
  parts.erase(parts.begin());
  parts.pop_back();
  return dice.of(parts);
}

// Which slot mapping a group has, "absent" being one: as likely as they are good for, among those that what is asked for
// leaves.
class MappingDraw {
 public:
  MappingDraw(const Op& op, const std::string& group, const Numbers& numbers)
      : number_(numbers(group + ".slot_mapping")), mappings_(slot_mappings_of(op, group)), listed_(numbers(group + ".slots")) {
    static const std::map<std::string, int> likely = {{"absent", 1},   {"dcp", 6},  {"replicated", 2}, {"random", 1},
                                                      {"explicit", 2}, {"none", 1}, {"same", 3}};
    for (const std::string& mapping : mappings_) weights_.push_back(likely.at(mapping));
    for (const std::string& field : of_group(group, {"block_size", "kernel_blocks", "spare_blocks", "block_stride_padding",
                                                     "sparse", "enabled", "table_columns"})) {
      present_.push_back(numbers(field));
    }
    if (group != groups_of(op).front()) return;
    for (const char* other : {"chunk.start", "chunk.parts", "first.blocks"}) present_.push_back(numbers(other));
    for (const char* other : {"owners", "interleave"}) sharded_.push_back(numbers(other));
  }

  const std::string& operator()(const Pick& pick) const {
    const auto asked = [&](int number) { return pick.asked(number); };
    std::vector<int> weights = weights_;
    const auto only = [&](const auto& fits) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!fits(mappings_[i])) weights[i] = 0;
      }
    };
    if (asked(listed_)) {
      only([](const std::string& mapping) { return mapping == "explicit"; });
    } else if (std::any_of(sharded_.begin(), sharded_.end(), asked)) {
      only([](const std::string& mapping) { return mapping == "dcp"; });
    } else if (std::any_of(present_.begin(), present_.end(), asked)) {
      only([](const std::string& mapping) { return mapping != "absent"; });
    }
    return mappings_[static_cast<std::size_t>(pick(number_, std::move(weights)))];
  }

 private:
  int number_;
  std::vector<std::string> mappings_;
  std::vector<int> weights_;
  int listed_;
  std::vector<int> present_, sharded_;  // dimensions that speak of a group that is there, or that is sharded
};

// A cache group: whether it is there, its map and its blocks.
Step group_step(const Op& op, const std::string& name, const Numbers& numbers) {
  const int mapping = numbers(name + ".slot_mapping"), block = numbers(name + ".block_size"),
            kernel_blocks = numbers(name + ".kernel_blocks"), spare = numbers(name + ".spare_blocks"),
            stride = numbers(name + ".block_stride_padding"), sparse = numbers(name + ".sparse"),
            enabled = numbers(name + ".enabled");
  const MappingDraw draw_mapping(op, name, numbers);
  const Ranges& spare_ranges = spare_counts(op, name);
  return geometry_step(
      of_group(name, {"present", "mapped", "own_map", "sharded", "block_size", "kernel_block_size", "block_stride_padding",
                      "blocks"}),
      {mapping, block, kernel_blocks, spare, stride, sparse, enabled},
      [=, &spare_ranges](Draft& draft, const Pick& pick, Dice& dice) {
        Geometry& geometry = draft.value.geometry;
        geometry.caches.erase(name);
        CacheGroup group;
        group.slot_mapping = draw_mapping(pick);
        if (group.slot_mapping == "absent") return;
        group.block_size = draw_block_size(geometry, pick, block, dice);
        group.kernel_block_size = draw_kernel_block_size(group.block_size, pick(kernel_blocks, {4, 1, 2}), dice);
        std::vector<int> likely = {1, 4, draft.narrow ? 0 : 1};
        if (spare_ranges.size() > likely.size()) likely.push_back(1);
        if (pick.wish(sparse) == 1) likely = {1, 1, 8};
        group.spare_blocks = draw_in(spare_ranges, pick(spare, likely), 5, dice);
        if (group.spare_blocks >= kManyBlocks) {
          group.spare_blocks = kManyBlocks;
          if (!pick.asked(block) && !pick.asked(kernel_blocks)) group.block_size = group.kernel_block_size = kLargeBlock;
        }
        if (stride >= 0) {
          static const std::array<std::vector<std::int64_t>, 4> bytes = {{{0}, {16, 64, 512}, {4, 12, 132}, {1, 2, 6}}};
          group.block_stride_padding = dice.of(bytes[static_cast<std::size_t>(pick(stride, {4, 1, 1, 1}))]);
        }
        // They cost more than they show, most of the time: there is a quota of them.
        group.sparse = sparse >= 0 && pick(sparse, {400, 1}) == 1;
        if (group.sparse && group.spare_blocks > 2) {
          // Slots in which bytes pass 2^32, whatever the records; and such as pass 2^31 themselves.
          static const std::vector<std::int64_t> slots = {1 << 25, 1 << 25, 1 << 27, 1 << 27, std::int64_t{3} << 30};
          group.spare_blocks = std::min(dice.of(slots) / group.kernel_block_size, kMostSparse);
        }
        if (enabled >= 0) group.enabled = pick(enabled, {4, 1}) == 0;
        geometry.caches[name] = std::move(group);
      });
}

// I, which divides the block size of each group that is sharded.
Step interleave_step(const Op& op, const Numbers& numbers) {
  const int number = numbers("interleave");
  return geometry_step(
      {"I"}, {number}, [=, dimensions = interleave_dimensions(op)](Draft& draft, const Pick& pick, Dice& dice) {
        Geometry& geometry = draft.value.geometry;
        std::int64_t common = 0;
        for (const auto& [name, group] : geometry.caches) {
          if (group.slot_mapping == "dcp") common = std::gcd(common, group.block_size);
        }
        // Where nothing is sharded it says nothing but how long chunks are.
        const std::vector<std::int64_t> all = common == 0 ? std::vector<std::int64_t>{1, 2, 4} : divisors(common);
        geometry.interleave = dice.one_in(2) ? 1 : dice.of(all);
        if (number < 0) return;
        const int bucket = pick(number, {4, 2, 2, 2});
        std::vector<std::int64_t> in;
        for (const std::int64_t interleave : all) {
          geometry.interleave = interleave;
          if (dimensions.front().bucket_of(geometry) == bucket) in.push_back(interleave);
        }
        geometry.interleave = dice.of(in.empty() ? all : in);
      });
}

// A length by what lies at its boundaries.
std::int64_t draw_length(const Lengths& lengths, std::int64_t longest, const Pick& pick, int dimension, Dice& dice) {
  // 0, 1, short, long, and then v, v - 1, v + 1, B, B - 1 and B + 1.
  const std::vector<int> weights =
      lengths.block == 0 ? std::vector<int>{1, 2, 5, 3} : std::vector<int>{1, 2, 5, 3, 2, 2, 2, 2, 2, 2};
  const int bucket = pick(dimension, weights);
  const std::vector<std::int64_t> in = lengths_in(lengths, bucket);
  const std::int64_t tokens = in.empty() ? dice.within(0, 8) : dice.of(in);
  // Boundaries of blocks may lie a little farther off than other lengths.
  const std::int64_t most = bucket > kLong ? 4 * longest : longest;
  return pick.asked(dimension) || tokens <= most ? tokens : dice.within(1, longest);
}

// The requests.
class BatchDraw {
 public:
  BatchDraw(const Op& op, const Numbers& numbers)
      : op_(&op),
        launches_(launches_tokens(op)),
        has_context_(has_context(op)),
        meets_keys_(meets_keys(op)),
        requests_(numbers("requests")),
        live_(numbers("live_tokens")),
        uncached_(numbers("first.uncached")),
        cached_(numbers("first.cached")),
        total_(numbers("first.total")),
        chunk_start_(numbers("chunk.start")),
        chunk_parts_(numbers("chunk.parts")),
        dimensions_(batch_dimensions(op)),
        numbers_(numbers.of(dimensions_)) {}

  const std::vector<int>& numbers() const { return numbers_; }

  void operator()(Draft& draft, const Pick& pick, Dice& dice) const {
    Geometry& geometry = draft.value.geometry;
    if (draft.launch != 0) {
      geometry.batch = large(draft, dice);
      return;
    }
    const Lengths lengths = lead_of(*op_, geometry).lengths;
    const bool context = has_context_ && std::none_of(geometry.caches.begin(), geometry.caches.end(), [&](const auto& group) {
                           return has_free_slots(geometry, group.second);
                         });
    const Best<std::vector<Request>> best(dimensions_, numbers_, pick);
    draft.missed |= !best(geometry, &Geometry::batch, [&] { return batch(draft, lengths, context, pick, dice); });
  }

 private:
  std::vector<Request> batch(const Draft& draft, const Lengths& lengths, bool context, const Pick& pick, Dice& dice) const {
    // A part of the context is asked for: it must be long enough to have parts.
    const bool in_parts = (pick.asked(chunk_start_) || pick.asked(chunk_parts_)) && !dice.one_in(4);
    // In some batches no request, in some each is new or has no tokens in this launch.
    const std::int64_t fresh = in_parts ? 0 : dice.of(std::vector<std::int64_t>{0, 0, 0, 1, 3, launches_ ? 4 : 1});
    const std::int64_t idle = dice.of(std::vector<std::int64_t>{0, 0, 0, 1, 2, 3});
    std::vector<Request> out(static_cast<std::size_t>(draw_in(request_counts(), pick(requests_, {1, 6, 4, 5, 1}), 8, dice)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool first = i == 0;
      Request& request = out[i];
      request = lengths_of(draft, lengths, context, first, pick, dice);
      if (context && in_parts && !(first && pick.asked(cached_))) request.cached = dice.of(lengths_in(lengths, kLong));
      const bool asked = first && pick.asked(total_);
      if (dice.within(0, 3) < fresh && !asked && !(first && pick.asked(cached_))) request.cached = 0;
      if (dice.within(0, 3) < idle && !asked && !(first && (pick.asked(uncached_) || dice.one_in(2)))) request.uncached = 0;
      // A draft that cost too much is not to end as one that launches nothing.
      const bool must_launch = draft.narrow && first && launches_ && !asked && !pick.asked(uncached_);
      if (must_launch && request.uncached == 0) request.uncached = 1;
    }
    if (pick.asked(live_) && !out.empty()) {
      const std::int64_t wanted = draw_in(token_counts(), pick.wish(live_), 240, dice);
      std::int64_t others = 0;
      for (std::size_t i = 0; i + 1 < out.size(); ++i) others += out[i].uncached;
      if (wanted >= others && (out.size() > 1 || !pick.asked(uncached_))) out.back().uncached = wanted - others;
    }
    return out;
  }

  Request lengths_of(const Draft& draft, const Lengths& lengths, bool context, bool first, const Pick& pick, Dice& dice) const {
    const auto length = [&](int dimension, std::int64_t longest) {
      return draw_length(lengths, longest, pick, first ? dimension : -1, dice);
    };
    Request request;
    if (context) request.cached = length(cached_, draft.longest);
    request.uncached = launches_ ? length(uncached_, draft.longest) : dice.within(0, 5);
    if (!context || !launches_ || (first && pick.asked(total_) ? dice.one_in(4) : !dice.one_in(3))) return request;
    // It is the end of the request that lies at the boundary.
    const std::int64_t total = length(total_, 2 * draft.longest);
    if (total >= request.cached && (!first || !pick.asked(uncached_) || dice.one_in(2))) {
      request.uncached = total - request.cached;
    } else if (total >= request.uncached) {
      request.cached = total - request.uncached;
    }
    return request;
  }

  // As many rows as draft.launch says, of the launch's tokens or of the context, by one request or many. Padding that is
  // drawn later is no part of them: it makes a launch that is larger still.
  std::vector<Request> large(const Draft& draft, Dice& dice) const {
    // Queries that meet the keys of their request cost its square.
    const std::int64_t most = meets_keys_ ? std::min<std::int64_t>(draft.longest, 16) : draft.launch;
    const std::int64_t each = dice.one_in(2) ? most : std::min<std::int64_t>(most, 4096);
    std::vector<Request> out;
    for (std::int64_t left = draft.launch; left > 0; left -= each) {
      Request request;
      (launches_ ? request.uncached : request.cached) = std::min(left, each);
      out.push_back(request);
    }
    return out;
  }

  const Op* op_;
  bool launches_, has_context_, meets_keys_;
  int requests_, live_, uncached_, cached_, total_, chunk_start_, chunk_parts_;  // numbers of dimensions
  GeometryDimensions dimensions_;
  std::vector<int> numbers_;
};

Step batch_step(const Op& op, const Numbers& numbers) {
  std::vector<std::string> terms = {"T", "live", "cached", "idle", "capacity", "R", "last_position"};
  for (const std::string& group : groups_of(op)) {
    for (std::string& term : of_group(group, {"blocks", "table_columns", "chunk_rows", "context_rows"})) {
      terms.push_back(std::move(term));
    }
  }
  BatchDraw draw(op, numbers);
  std::vector<int> dimensions = draw.numbers();
  return geometry_step(std::move(terms), std::move(dimensions), std::move(draw));
}

// Which part of the context the launch is about.
Step chunk_step(const Op& op, const Numbers& numbers) {
  const GeometryDimensions dimensions = chunk_dimensions(op);
  const std::vector<int> own = numbers.of(dimensions);
  return geometry_step({}, own, [=](Draft& draft, const Pick& pick, Dice& dice) {
    Geometry& geometry = draft.value.geometry;
    geometry.chunk = {};
    if (geometry.caches.empty() || draft.launch != 0) return;
    std::int64_t longest = 0;
    for (const Request& request : geometry.batch) longest = std::max(longest, request.cached);
    const std::int64_t turn = geometry.world_size * geometry.interleave;
    const std::int64_t turns = (longest + turn - 1) / turn;
    const Best<ChunkRange> best(dimensions, own, pick);
    draft.missed |= !best(geometry, &Geometry::chunk, [&] {
      const bool past = dice.one_in(8);
      const std::int64_t start = past ? turns + dice.within(0, 1) : dice.one_in(2) ? 0 : dice.within(0, turns - 1);
      const std::int64_t tokens = dice.one_in(3) ? 0 : dice.one_in(2) ? 1 : dice.within(1, turns + 1);
      return ChunkRange{start * turn, tokens * turn};
    });
  });
}

// Rows after the live ones, as a graph of a fixed size has them.
Step padding_step(const Numbers& numbers) {
  const int tokens = numbers("padding.tokens"), slots = numbers("padding.slots"), positions = numbers("padding.positions"),
            values = numbers("padding.values");
  return geometry_step({"T", "capacity", "padding.in_range"}, {tokens, slots, positions, values},
                       [=](Draft& draft, const Pick& pick, Dice& dice) {
                         Padding padding;
                         padding.tokens = draw_in(padding_counts(), pick(tokens, {6, 1, 3, 1}), 20, dice);
                         if (draft.launch != 0) padding.tokens = dice.one_in(4) ? 1 : 0;
                         if (padding.tokens != 0 && slots >= 0) {
                           static const std::array<const char*, 4> kinds = {"-1", "-block", "int32_min", "int64_min"};
                           padding.slots = kinds[static_cast<std::size_t>(pick(slots, {4, 1, 1, 1}))];
                         }
                         if (padding.tokens != 0 && positions >= 0) {
                           static const std::array<const char*, 3> kinds = {"in_range", "zero", "stale"};
                           padding.positions = kinds[static_cast<std::size_t>(pick(positions, {3, 1, 2}))];
                         }
                         if (padding.tokens != 0 && values >= 0) {
                           const auto families = padding_families();
                           std::vector<int> weights;
                           weights.reserve(families.size());
                           for (const RecipeFamily& family : families) weights.push_back(family.weight);
                           padding.values = dice.of(families[static_cast<std::size_t>(pick(values, weights))].recipes);
                         }
                         draft.value.geometry.padding = std::move(padding);
                       });
}

// How many rows slot maps and top-k have room for.
Step capacity_step(const Numbers& numbers) {
  const int number = numbers("max_batched_tokens");
  return geometry_step({"capacity"}, {number}, [=](Draft& draft, const Pick& pick, Dice& dice) {
    const std::int64_t tokens = draft.value.geometry.tokens();
    const std::array<std::int64_t, 4> sizes = {0, tokens, tokens + 1, tokens + dice.within(2, 70)};
    draft.value.geometry.max_batched_tokens = sizes[static_cast<std::size_t>(pick(number, {4, 1, 1, 2}))];
  });
}

// The width of a group's block table.
Step columns_step(const std::string& name, const Numbers& numbers) {
  const int number = numbers(name + ".table_columns");
  return geometry_step({name + ".table_columns"}, {number}, [=](Draft& draft, const Pick& pick, Dice& dice) {
    const auto found = draft.value.geometry.caches.find(name);
    if (found == draft.value.geometry.caches.end()) return;
    const std::int64_t needed = columns_needed(draft.value.geometry, found->second);
    const std::array<std::int64_t, 4> columns = {0, needed, needed + dice.within(1, 5), dice.within(1, needed - 1)};
    found->second.table_columns = columns[static_cast<std::size_t>(pick(number, {4, 1, 1, 2}))];
  });
}

// A rank's list: of four live tokens `owned` have slots, each another one; the last slot of block 0 is no one's, so that
// what a negative slot would wrap to is seen.
std::vector<std::int64_t> draw_slots(const Geometry& geometry, std::int64_t kernel_block_size, std::int64_t slots,
                                     std::int64_t owned, Dice& dice) {
  const std::vector<std::int64_t> negative = {-1, -1, -1, -2, -kernel_block_size, std::numeric_limits<std::int32_t>::min()};
  Draw places(slots - 1);
  std::vector<std::int64_t> out;
  for (std::int64_t token = 0; token < geometry.live_tokens(); ++token) {
    if (dice.within(0, 3) >= owned || places.left() == 0) {
      out.push_back(dice.of(negative));
      continue;
    }
    const std::int64_t slot = places.next(dice.word());
    out.push_back(slot >= kernel_block_size - 1 ? slot + 1 : slot);
  }
  out.resize(static_cast<std::size_t>(geometry.tokens()), geometry.padding.slots == "-1" ? -1 : -kernel_block_size);
  return out;
}

// The slots of a group that lists them.
Step slots_step(const Op& op, const std::string& name, const Numbers& numbers) {
  const int number = numbers(name + ".slots");
  return geometry_step({}, {number}, [=, &op](Draft& draft, const Pick& pick, Dice& dice) {
    Geometry& geometry = draft.value.geometry;
    if (!geometry.caches.contains(name) || geometry.caches.at(name).slot_mapping != "explicit") return;
    if (geometry.tokens() * geometry.tp > kMostListed) {
      geometry.caches.at(name).slot_mapping = "random";
      return;
    }
    settle(op, draft.value);
    const Environment environment = environment_of(op, draft.value);
    CacheGroup& group = geometry.caches.at(name);
    const std::int64_t slots = std::get<std::int64_t>(environment.at(name + ".blocks")) * group.kernel_block_size;
    const int bucket = pick(number, {1, 1, 1, 4});
    const std::int64_t owner = dice.within(0, geometry.tp - 1);
    group.slots.clear();
    for (std::int64_t rank = 0; rank < geometry.tp; ++rank) {
      const int owned = bucket == 0 || (bucket == 1 && rank != owner) ? 0 : bucket == 3 ? 2 : 4;
      group.slots.push_back(draw_slots(geometry, group.kernel_block_size, slots, owned, dice));
    }
  });
}

}  // namespace

std::vector<Step> geometry_steps(const Op& op, const Numbers& numbers) {
  const std::vector<std::string> groups = groups_of(op);
  std::vector<Step> steps;
  if (uses(op, "tp")) steps.push_back(ranks_step(numbers));
  for (const std::string& group : groups) steps.push_back(group_step(op, group, numbers));
  if (uses(op, "dcp")) steps.push_back(interleave_step(op, numbers));
  if (uses(op, "batch")) steps.push_back(batch_step(op, numbers));
  if (uses(op, "chunk")) steps.push_back(chunk_step(op, numbers));
  if (uses(op, "padding")) steps.push_back(padding_step(numbers));
  if (uses(op, "max_batched_tokens")) steps.push_back(capacity_step(numbers));
  for (const std::string& group : groups) {
    if (numbers(group + ".table_columns") >= 0) steps.push_back(columns_step(group, numbers));
    if (numbers(group + ".slots") >= 0) steps.push_back(slots_step(op, group, numbers));
  }
  return steps;
}

}  // namespace dcpcheck
