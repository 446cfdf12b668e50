// One query's attention, with what fp32 may do to it.
#pragma once

#include <cstdint>
#include <span>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// softmax(q k_j / sqrt(width of q)) v over keys that are given as rows: q fp32 numbers, k and v bf16 ones. Puts the output
// into columns head * width … of `out`, width being that of a value, and the log-sum-exp of the scores, to base e, into
// column `head` of `lse`; (0, -inf) where there are no keys. Heads must come in their order.
void attend(std::span<const double> q, std::span<const double> keys, std::span<const double> values, std::int64_t width,
            const Arithmetic& how, std::int64_t head, Row& out, Row& lse);

}  // namespace dcpcheck::reference
