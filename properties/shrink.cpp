#include "properties/shrink.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/core/plan.hpp"
#include "harness/core/recipe.hpp"
#include "properties/facts.hpp"
#include "properties/settle.hpp"

namespace dcpcheck {
namespace {

const std::vector<std::string>& mappings_by_plainness() {
  static const std::vector<std::string> names = {"dcp", "replicated", "none", "same", "random", "explicit"};
  return names;
}

std::uint64_t place_in(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::uint64_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

std::uint64_t size_of_group(const CacheGroup& group) {
  std::uint64_t size = 256 + 16 * place_in(mappings_by_plainness(), group.slot_mapping);
  size += static_cast<std::uint64_t>(group.block_size + group.block_size / group.kernel_block_size);
  size += distance(group.spare_blocks, CacheGroup().spare_blocks);
  size += static_cast<std::uint64_t>(group.block_stride_padding + group.table_columns) + (group.table_columns != 0 ? 4 : 0);
  size += group.enabled ? 0 : 8;
  size += group.sparse ? 64 : 0;
  for (const auto& rank : group.slots) {
    for (const std::int64_t slot : rank) size += slot == -1 ? 0 : slot < 0 ? 2 : 1;
  }
  return size;
}

std::uint64_t size_of_param(const Param& param, const ParamValue& value) {
  if (value == param.plainest) return 0;
  switch (param.kind) {
    case Param::Kind::flag: return 8;
    case Param::Kind::integer: return 1 + distance(std::get<std::int64_t>(value), std::get<std::int64_t>(param.plainest));
    case Param::Kind::number: return value == param.value ? 4 : 8;
    case Param::Kind::choice: return 8 + 4 * place_in(param.choices, std::get<std::string>(value));
  }
  return 8;
}

// Recipes by how little there is to see in them, after the op's own.
std::uint64_t size_of_recipe(const std::string& recipe) {
  if (recipe == "normal:1") return 16;
  return 32 + static_cast<std::uint64_t>(parse_recipe(recipe).kind);
}

// Everything that a proposal is made from.
class Proposals {
 public:
  Proposals(const Op& op, const Case& value) : op_(op), value_(value) {}

  std::vector<Case> all() {
    plain_all_at_once();
    requests();
    tokens();
    padding_and_capacity();
    ranks();
    groups();
    chunk();
    params();
    contract();
    layouts();
    values();
    if (value_.graph) propose([](Case& smaller) { smaller.graph = false; });
    for (const std::uint64_t seed : {0, 1}) {
      if (value_.seed > seed) propose([&](Case& smaller) { smaller.seed = seed; });
    }
    return std::move(out_);
  }

 private:
  // The case with `change` made to it, and with what no longer fits that taken away.
  template <class Change>
  void propose(const Change& change) {
    Case smaller = value_;
    change(smaller);
    settle(op_, smaller);
    if (smaller != value_) out_.push_back(std::move(smaller));
  }

  // Numbers from `value` on towards `least`: there at once, by halves, by steps that keep a number even or whole fourths.
  static std::vector<std::int64_t> towards(std::int64_t least, std::int64_t value) {
    std::vector<std::int64_t> out;
    const std::int64_t sign = value < least ? -1 : 1;
    const std::int64_t far = (value - least) * sign;
    std::set<std::int64_t> taken;
    const auto add = [&](std::int64_t left) {
      if (left >= 0 && left < far && taken.insert(left).second) out.push_back(least + left * sign);
    };
    add(0);
    for (std::int64_t left = far / 2; left > 0 && far - left > 8; left += (far - left) / 2) add(left);
    for (const std::int64_t step : {8, 4, 2, 1}) add(far - step);
    return out;
  }

  void plain_all_at_once() {
    propose([&](Case& smaller) {
      for (const Param& param : op_.params) smaller.params[param.name] = param.plainest;
    });
    propose([](Case& smaller) { smaller.layout.clear(); });
    propose([](Case& smaller) { smaller.values.clear(); });
    propose([&](Case& smaller) {
      for (const Option& option : op_.contract) smaller.contract[option.name] = option.values.front();
    });
    propose([](Case& smaller) {
      smaller.geometry.tp = 1;
      smaller.geometry.world_size = 1;
      smaller.geometry.interleave = 1;
    });
    propose([](Case& smaller) { smaller.geometry.caches.clear(); });
  }

  // Takes tokens [begin, end) of the launch out of the lists of slots.
  static void drop_slots(Case& smaller, std::int64_t begin, std::int64_t end) {
    for (auto& [name, group] : smaller.geometry.caches) {
      for (auto& rank : group.slots) {
        const auto size = static_cast<std::int64_t>(rank.size());
        rank.erase(rank.begin() + std::min(begin, size), rank.begin() + std::min(end, size));
      }
    }
  }

  bool lists_slots() const {
    const auto& caches = value_.geometry.caches;
    return std::any_of(caches.begin(), caches.end(), [](const auto& group) { return !group.second.slots.empty(); });
  }

  std::int64_t first_token(std::size_t request) const {
    std::int64_t token = 0;
    for (std::size_t i = 0; i < request; ++i) token += value_.geometry.batch[i].uncached;
    return token;
  }

  // Halves of the batch, quarters, … and single requests where they are few.
  void requests() {
    const std::size_t count = value_.geometry.batch.size();
    constexpr std::size_t most_parts = 64;
    std::size_t last = 0;
    for (std::size_t parts = 1; count > 0; parts *= 2) {
      const std::size_t length = (count + parts - 1) / parts;
      if (length == last) break;
      last = length;
      for (std::size_t begin = 0; begin < count; begin += length) {
        const std::size_t end = std::min(begin + length, count);
        propose([&](Case& smaller) {
          drop_slots(smaller, first_token(begin), end == count ? value_.geometry.live_tokens() : first_token(end));
          auto& batch = smaller.geometry.batch;
          batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(begin), batch.begin() + static_cast<std::ptrdiff_t>(end));
        });
      }
      if (parts * 2 > most_parts || length == 1) break;
    }
    if (count < 2) return;
    // One request with the tokens of all, and two neighbours as one: where it is the tokens that matter.
    propose([&](Case& smaller) {
      Request all;
      for (const Request& request : value_.geometry.batch) {
        all.cached += request.cached;
        all.uncached += request.uncached;
      }
      smaller.geometry.batch = {all};
    });
    for (std::size_t i = 0; i + 1 < count && count <= most_parts; ++i) {
      propose([&](Case& smaller) {
        auto& batch = smaller.geometry.batch;
        batch[i].cached += batch[i + 1].cached;
        batch[i].uncached += batch[i + 1].uncached;
        batch.erase(batch.begin() + static_cast<std::ptrdiff_t>(i + 1));
      });
    }
  }

  void tokens() {
    const auto& batch = value_.geometry.batch;
    constexpr std::size_t most_requests = 16;
    for (std::size_t i = 0; i < std::min(batch.size(), most_requests); ++i) {
      for (const std::int64_t uncached : towards(0, batch[i].uncached)) {
        propose([&](Case& smaller) {
          const std::int64_t end = first_token(i) + batch[i].uncached;
          drop_slots(smaller, end - (batch[i].uncached - uncached), end);
          smaller.geometry.batch[i].uncached = uncached;
        });
        // Or the first of them go: it shows only where slots are listed.
        if (!lists_slots()) continue;
        propose([&](Case& smaller) {
          drop_slots(smaller, first_token(i), first_token(i) + (batch[i].uncached - uncached));
          smaller.geometry.batch[i].uncached = uncached;
        });
      }
      for (const std::int64_t cached : towards(0, batch[i].cached)) {
        propose([&](Case& smaller) { smaller.geometry.batch[i].cached = cached; });
      }
    }
    if (batch.size() < 2) return;
    propose([&](Case& smaller) {
      for (Request& request : smaller.geometry.batch) request.cached = 0;
    });
    propose([&](Case& smaller) {
      for (Request& request : smaller.geometry.batch) request.cached /= 2;
    });
    // Lists of slots have no halves of all requests at once: those go request by request.
    propose([&](Case& smaller) {
      for (auto& [name, group] : smaller.geometry.caches) group.slots.clear();
      for (Request& request : smaller.geometry.batch) request.uncached /= 2;
    });
  }

  void padding_and_capacity() {
    const Geometry& geometry = value_.geometry;
    for (const std::int64_t padding : towards(0, geometry.padding.tokens)) {
      propose([&](Case& smaller) { smaller.geometry.padding.tokens = padding; });
    }
    const Padding plain;
    for (std::string Padding::*field : {&Padding::slots, &Padding::positions, &Padding::values}) {
      if (geometry.padding.*field == plain.*field) continue;
      propose([&](Case& smaller) { smaller.geometry.padding.*field = plain.*field; });
    }
    for (const std::int64_t capacity : towards(0, geometry.max_batched_tokens)) {
      propose([&](Case& smaller) { smaller.geometry.max_batched_tokens = capacity; });
    }
  }

  void ranks() {
    const Geometry& geometry = value_.geometry;
    const std::int64_t groups = geometry.tp / std::max<std::int64_t>(geometry.world_size, 1);
    for (const std::int64_t fewer : towards(1, groups)) {
      propose([&](Case& smaller) { smaller.geometry.tp = geometry.world_size * fewer; });
    }
    for (const std::int64_t world : towards(1, geometry.world_size)) {
      propose([&](Case& smaller) {
        smaller.geometry.world_size = world;
        smaller.geometry.tp = world * groups;
      });
      // The ranks stay: groups of fewer.
      if (geometry.tp % world == 0) propose([&](Case& smaller) { smaller.geometry.world_size = world; });
    }
    for (const std::int64_t interleave : towards(1, geometry.interleave)) {
      propose([&](Case& smaller) { smaller.geometry.interleave = interleave; });
    }
  }

  void groups() {
    std::set<std::int64_t> sizes;
    for (const auto& [name, group] : value_.geometry.caches) {
      one_group(name, group);
      for (const std::int64_t size : towards(1, group.block_size)) sizes.insert(size);
      for (const std::int64_t size : towards(1, group.kernel_block_size)) sizes.insert(size);
    }
    // Sizes of all groups at once: "same" keeps them together.
    for (const std::int64_t size : sizes) {
      propose([&](Case& smaller) {
        for (auto& [name, group] : smaller.geometry.caches) {
          if (group.block_size > size) resize(group, size);
        }
      });
    }
  }

  static void resize(CacheGroup& group, std::int64_t block_size) {
    const bool one = group.kernel_block_size == group.block_size;
    group.block_size = block_size;
    group.kernel_block_size = one ? block_size : std::gcd(block_size, group.kernel_block_size);
  }

  void one_group(const std::string& name, const CacheGroup& group) {
    const auto on_group = [&](const auto& change) {
      propose([&](Case& smaller) { change(smaller.geometry.caches.at(name)); });
    };
    propose([&](Case& smaller) { smaller.geometry.caches.erase(name); });
    for (const std::string& mapping : mappings_by_plainness()) {
      if (mapping == group.slot_mapping) break;
      on_group([&](CacheGroup& smaller) { smaller.slot_mapping = mapping; });
    }
    for (const std::int64_t size : towards(1, group.block_size)) {
      on_group([&](CacheGroup& smaller) { resize(smaller, size); });
    }
    if (group.kernel_block_size != group.block_size) {
      on_group([](CacheGroup& smaller) { smaller.kernel_block_size = smaller.block_size; });
      on_group([](CacheGroup& smaller) { smaller.block_size = smaller.kernel_block_size; });
    }
    if (group.sparse) {
      on_group([](CacheGroup& smaller) {
        smaller.sparse = false;
        smaller.spare_blocks = CacheGroup{}.spare_blocks;
      });
    }
    for (const std::int64_t spare : towards(CacheGroup{}.spare_blocks, group.spare_blocks)) {
      on_group([&](CacheGroup& smaller) { smaller.spare_blocks = spare; });
    }
    for (const std::int64_t bytes : towards(0, group.block_stride_padding)) {
      on_group([&](CacheGroup& smaller) { smaller.block_stride_padding = bytes; });
    }
    for (const std::int64_t columns : towards(0, group.table_columns)) {
      on_group([&](CacheGroup& smaller) { smaller.table_columns = columns; });
    }
    if (!group.enabled) on_group([](CacheGroup& smaller) { smaller.enabled = true; });
    listed_slots(name, group);
  }

  void listed_slots(const std::string& name, const CacheGroup& group) {
    constexpr std::size_t most_slots = 256;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < group.slots.size(); ++rank) {
      propose([&](Case& smaller) {
        for (std::int64_t& slot : smaller.geometry.caches.at(name).slots[rank]) slot = -1;
      });
      for (std::size_t token = 0; token < group.slots[rank].size(); ++token) {
        if (group.slots[rank][token] == -1 || ++count > most_slots) continue;
        propose([&](Case& smaller) { smaller.geometry.caches.at(name).slots[rank][token] = -1; });
      }
    }
  }

  void chunk() {
    const Geometry& geometry = value_.geometry;
    const std::int64_t turn = geometry.world_size * geometry.interleave;
    for (const std::int64_t turns : towards(0, geometry.chunk.start / turn)) {
      propose([&](Case& smaller) { smaller.geometry.chunk.start = turns * turn; });
    }
    for (const std::int64_t turns : towards(0, geometry.chunk.tokens / turn)) {
      propose([&](Case& smaller) { smaller.geometry.chunk.tokens = turns * turn; });
    }
  }

  void params() {
    for (const Param& param : op_.params) {
      const auto found = value_.params.find(param.name);
      if (found == value_.params.end() || found->second == param.plainest) continue;
      const auto set = [&](ParamValue to) { propose([&](Case& smaller) { smaller.params[param.name] = std::move(to); }); };
      if (param.kind != Param::Kind::integer) set(param.plainest);
      if (param.kind == Param::Kind::number) set(param.value);
      if (param.kind == Param::Kind::choice) {
        for (const std::string& choice : param.choices) {
          if (choice == std::get<std::string>(found->second)) break;
          set(choice);
        }
      }
      if (param.kind == Param::Kind::integer) {
        const std::int64_t plainest = std::get<std::int64_t>(param.plainest);
        for (const std::int64_t number : towards(plainest, std::get<std::int64_t>(found->second))) set(number);
      }
    }
  }

  void contract() {
    for (const Option& option : op_.contract) {
      const auto found = value_.contract.find(option.name);
      if (found == value_.contract.end()) continue;
      for (const std::string& one : option.values) {
        if (one == found->second) break;
        propose([&](Case& smaller) { smaller.contract[option.name] = one; });
      }
    }
  }

  void layouts() {
    for (const auto& entry : value_.layout) {
      const std::string& name = entry.first;  // clang 14 has no bindings in lambdas
      const RowLayout rows = entry.second;
      const auto set = [&](RowLayout to) {
        propose([&](Case& smaller) {
          if (to == RowLayout{}) {
            smaller.layout.erase(name);
          } else {
            smaller.layout[name] = to;
          }
        });
      };
      set({});
      set({rows.stride, 0});
      set({0, rows.offset});
      for (const std::int64_t stride : towards(0, rows.stride)) set({stride, rows.offset});
      for (const std::int64_t offset : towards(0, rows.offset)) set({rows.stride, offset});
    }
  }

  void values() {
    for (const auto& entry : value_.values) {
      const std::string& name = entry.first;
      propose([&](Case& smaller) { smaller.values.erase(name); });
      for (const char* plainer : {"normal:1", "zero", "constant:1"}) {
        propose([&](Case& smaller) { smaller.values[name] = plainer; });
      }
    }
  }

  const Op& op_;
  const Case& value_;
  std::vector<Case> out_;
};

}  // namespace

std::uint64_t size_of_case(const Op& op, const Case& value) {
  const Geometry& geometry = value.geometry;
  const Padding plain;
  std::uint64_t size = 0;
  for (const Request& request : geometry.batch) {
    size += 16 + 4 * static_cast<std::uint64_t>(request.cached + request.uncached);
  }
  size += 4 * static_cast<std::uint64_t>(geometry.padding.tokens);
  size += 4 * ((geometry.padding.slots != plain.slots ? 1U : 0U) + (geometry.padding.positions != plain.positions ? 1U : 0U) +
               (geometry.padding.values != plain.values ? 1U : 0U));
  size += static_cast<std::uint64_t>(geometry.max_batched_tokens);
  size += 64 * static_cast<std::uint64_t>(geometry.tp) + 32 * static_cast<std::uint64_t>(geometry.world_size);
  size += static_cast<std::uint64_t>(geometry.interleave);
  size += static_cast<std::uint64_t>(geometry.chunk.start) + static_cast<std::uint64_t>(geometry.chunk.tokens);
  for (const auto& [name, group] : geometry.caches) size += size_of_group(group);
  for (const Param& param : op.params) {
    const auto found = value.params.find(param.name);
    if (found != value.params.end()) size += size_of_param(param, found->second);
  }
  for (const Option& option : op.contract) {
    const auto found = value.contract.find(option.name);
    if (found != value.contract.end()) size += 8 * place_in(option.values, found->second);
  }
  for (const auto& [name, rows] : value.layout) {
    size += 8 + static_cast<std::uint64_t>(rows.stride) + static_cast<std::uint64_t>(rows.offset);
  }
  for (const auto& [name, recipe] : value.values) size += size_of_recipe(recipe);
  return size + (value.graph ? 8 : 0) + static_cast<std::uint64_t>(std::bit_width(value.seed));
}

std::vector<Case> shrink_proposals(const Op& op, const Case& value) { return Proposals(op, value).all(); }

std::vector<Case> shrinks(const Op& op, const Case& value, std::int64_t memory, const std::function<void(const Case&)>& check) {
  const std::uint64_t size = size_of_case(op, value);
  std::vector<std::pair<std::uint64_t, Case>> smaller;
  for (Case& proposal : shrink_proposals(op, value)) {
    const std::uint64_t left = size_of_case(op, proposal);
    if (left >= size) continue;
    try {
      static_cast<void>(make_plan(op, proposal, memory));
      if (check) check(proposal);
    } catch (const InputError&) {
      continue;
    }
    smaller.emplace_back(left, std::move(proposal));
  }
  std::stable_sort(smaller.begin(), smaller.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  smaller.erase(std::unique(smaller.begin(), smaller.end()), smaller.end());  // of several axes, the same case
  std::vector<Case> out;
  out.reserve(smaller.size());
  for (auto& [left, one] : smaller) out.push_back(std::move(one));
  return out;
}

Case smallest_failing(const Op& op, const Case& value, std::int64_t memory, const std::function<void(const Case&)>& check,
                      const std::function<bool()>& enough, const std::function<bool(const Case&)>& fails) {
  Case smallest = value;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (Case& candidate : shrinks(op, smallest, memory, check)) {
      if (enough()) return smallest;
      if (!fails(candidate)) continue;
      smallest = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return smallest;
}

}  // namespace dcpcheck
