// Merging parts of an attention output by their log-sum-exps: what merge_ranks and merge_chunks have in common.
//
// out = sum_r w_r o_r and lse = m + log sum_r E_r, with m the largest LSE, E_r = exp(l_r - m) and w_r = E_r / sum E, all
// sums in the order of the parts. A part without keys is neutral whatever its output holds: it is passed over, as 0 times
// a NaN is a NaN.
#pragma once

#include <cstdint>

#include "kernels/block.cuh"
#include "kernels/math.cuh"

namespace kernels {

// The decisions of a merge as it should be. A fault overrides one of them.
struct MergeDecisions {
  static constexpr const char* name = "";
  static constexpr const char* doc = "";
  static constexpr const char* source = "";
  static constexpr const char* reason = "";
  static constexpr const char* caught_by = "";

  // An LSE as the merge takes it: +inf and NaN, which some kernels leave where there were no keys, as -inf.
  static DCPCHECK_HD float read(float lse) {
    const float infinity = dcpcheck::float_of_bits(0x7F800000U);
    return lse < infinity ? lse : -infinity;
  }
  // Whether a part of such an LSE has no keys.
  static DCPCHECK_HD bool is_empty(float lse) { return lse == -dcpcheck::float_of_bits(0x7F800000U); }
  // Whether LSEs are logarithms to base 2, where the contract says so; else to base e.
  static DCPCHECK_HD bool base_2(bool contract) { return contract; }
  // What is subtracted from each LSE before the exponential, by the largest of them.
  static DCPCHECK_HD float shift(float largest) { return largest; }
  // Whether part `part` takes part at all.
  static DCPCHECK_HD bool takes_part(std::int64_t part) {
    (void)part;
    return true;
  }
  // A part's weight, by its share of the sum, and how many parts have keys.
  static DCPCHECK_HD float weight(float share, std::int64_t parts) {
    (void)parts;
    return share;
  }
};

// Whether `Decisions` overrides any of these.
template <class Decisions>
constexpr bool overrides_a_merge_decision() {
  return !same_function<&Decisions::read, &MergeDecisions::read> ||
         !same_function<&Decisions::is_empty, &MergeDecisions::is_empty> ||
         !same_function<&Decisions::base_2, &MergeDecisions::base_2> ||
         !same_function<&Decisions::shift, &MergeDecisions::shift> ||
         !same_function<&Decisions::takes_part, &MergeDecisions::takes_part> ||
         !same_function<&Decisions::weight, &MergeDecisions::weight>;
}

// Merges the `parts` parts of one token and head: part r has the LSE part.lse(r) and `width` outputs at part.out(r). Its
// result may lie on one of the parts. The block needs `parts` floats of scratch.
template <class Decisions, class Part>
DCPCHECK_HD void merge(const Block& block, std::int64_t parts, std::int64_t width, bool contract_base_2, const Part& part,
                       float* out, float* lse) {
  const float infinity = dcpcheck::float_of_bits(0x7F800000U);
  const bool base_2 = Decisions::base_2(contract_base_2);
  const auto counts = [&](std::int64_t r) {
    return Decisions::takes_part(r) && !Decisions::is_empty(Decisions::read(part.lse(r)));
  };
  const auto power = [&](std::int64_t r, float shift) {
    const float distance = Decisions::read(part.lse(r)) - shift;
    return base_2 ? exp2(distance) : exp(distance);
  };
  // Every thread goes through the few LSEs by itself.
  float largest = -infinity;
  std::int64_t with_keys = 0;
  for (std::int64_t r = 0; r < parts; ++r) {
    if (!counts(r)) continue;
    largest = larger(Decisions::read(part.lse(r)), largest);
    ++with_keys;
  }
  const float shift = Decisions::shift(largest);
  float sum = 0.0F;
  for (std::int64_t r = 0; r < parts; ++r) {
    if (counts(r)) sum = sum + power(r, shift);
  }
  // No part has a weight below 0, so that this says which are passed over.
  float* const weights = block.scratch;
  block.each(parts,
             [&](std::int64_t r) { weights[r] = counts(r) ? Decisions::weight(power(r, shift) / sum, with_keys) : -1.0F; });
  block.sync();  // also before an LSE is written that may lie on one of the parts'
  block.each(width, [&](std::int64_t i) {
    float total = 0.0F;
    for (std::int64_t r = 0; r < parts; ++r) {
      if (weights[r] == -1.0F) continue;
      total = total + weights[r] * part.out(r)[i];
    }
    store_fp32(out + i, total);
  });
  const float merged = with_keys == 0 ? -infinity : shift + (base_2 ? log2(sum) : log(sum));
  block.each(1, [&](std::int64_t) { store_fp32(lse, merged); });
}

}  // namespace kernels
