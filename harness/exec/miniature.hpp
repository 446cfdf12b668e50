// The model in miniature that turns launches into tokens. It has no weight matrices: a token id is a row of seeded tables, a
// query is a stretch of the normed q_c, a logit a weighted sum of all heads' outputs. All of it in fp32 and one order, on the
// host whatever the kernels run on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"

namespace dcpcheck::miniature {

inline constexpr std::int64_t vocabulary = 256;

// Rows of the table `name` of generate's inputs, one for each token id; an id below 0 stands for id 0.
Bytes embed(const Plan& plan, const Inputs& inputs, std::string_view name, std::span<const std::int32_t> ids);

// The queries of heads [first_head, first_head + heads) of every token, fp32 [tokens, heads * (nope + rope)], from its row of
// q_c_out (bf16, dense). Of global head h, element d of the part without position is q_c_out[(97 h + d) % q_lora_rank]; the
// rotary part is from (q_lora_rank / 2 + 97 h) on, turned by RoPE at the token's position, which follows k_pe's style.
Bytes queries(const Plan& plan, const Inputs& inputs, std::span<const std::byte> q_c_out,
              std::span<const std::int64_t> positions, std::int64_t first_head, std::int64_t heads);

// The logit of every token id for one row of all heads' outputs: sums in index order over the table `logits`.
std::vector<float> logits(const Plan& plan, const Inputs& inputs, std::span<const float> outputs);

// The id of the largest logit, the lowest of several; a NaN never wins, and where all are NaN it is -1.
std::int32_t greedy(std::span<const float> logits);

}  // namespace dcpcheck::miniature
