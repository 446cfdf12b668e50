// Rotary position embedding of a row.
#pragma once

#include <span>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// Turns the first 2 * cos.size() elements of `row` by the angles whose cosines and sines are given: pairs (2i, 2i + 1),
// or (i, i + half) where not interleaved. exact_products: row and table are bf16 numbers.
void rope(Row& row, std::span<const double> cos, std::span<const double> sin, bool interleaved, bool exact_products);

}  // namespace dcpcheck::reference
