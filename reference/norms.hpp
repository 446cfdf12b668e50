// RMSNorm and LayerNorm of a row, with what fp32 may do to them.
#pragma once

#include <span>

#include "reference/row.hpp"

namespace dcpcheck::reference {

// x / sqrt(mean(x^2) + eps) * weight. x and weight are bf16 numbers, eps an fp32 one. round_normalised: the quotient is
// rounded to bf16 before it is multiplied (contract norm_round).
void rms_norm(std::span<const double> x, std::span<const double> weight, double eps, const Arithmetic& how,
              bool round_normalised, Row& out);

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias, in two passes. x are bf16 numbers; weight, bias and
// eps fp32.
void layer_norm(std::span<const double> x, std::span<const double> weight, std::span<const double> bias, double eps,
                const Arithmetic& how, Row& out);

}  // namespace dcpcheck::reference
