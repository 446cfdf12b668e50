// What a run of `generate` puts out: greedy tokens, and how sure each of them is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dcpcheck {

// One greedy step, over all requests: the request whose choice was the narrowest stands for it.
struct TokenStep {
  std::string stage;   // "prefill.0", "decode.3": whose outputs the logits were made of
  bool known = false;  // margin and bound are: nothing that they rest on depends on memory that nobody wrote
  double margin = 0;   // the fp64 logit of the token that was chosen, less that of the next best
  double bound = 0;    // how far apart right kernels may bring the two: under it, two right runs may choose differently
  bool conclusive() const { return !known || margin > bound; }
};

struct Tokens {
  std::vector<std::vector<std::int32_t>> ids;           // run A's: by request, prompt excluded; -1 where all logits were NaN
  std::vector<std::vector<std::int32_t>> poison_b_ids;  // run B's
  std::string digest, poison_b_digest;                  // SHA-256 of the ids, int32, little-endian, request after request
  std::vector<TokenStep> steps;
};

}  // namespace dcpcheck
