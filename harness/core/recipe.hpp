// The recipes by which inputs are filled (inputs.hpp lists them), parsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dcpcheck {

struct Recipe {
  enum class Kind : std::uint8_t {
    // of values: fill any float tensor
    normal,
    ladder,
    large_mean,
    signs,
    zero,
    constant,
    critical,
    saturating,
    tiny,
    mixed,
    special,
    nan,
    weights,
    around,
    unit_circle,
    lse,
    empty,
    sparse,
    below,
    stored,
    // of the geometry: fill float tensors
    gathered,
    partials,
    // of the geometry: fill integer tensors
    positions,
    query_start_loc,
    idx_mapping,
    block_table,
    slots,
    group,
    chunk,
  };
  Kind kind = Kind::zero;
  double number = 0;  // normal, constant, around, sparse, below
  std::string
      argument;  // slots: the cache group; group, chunk: the field; partials: the tensor of their LSEs; stored: the digest

  bool of_geometry() const { return kind >= Kind::gathered; }
};

// The recipe in `text`. Throws InputError that names the text and what is wrong with it.
Recipe parse_recipe(std::string_view text);

}  // namespace dcpcheck
