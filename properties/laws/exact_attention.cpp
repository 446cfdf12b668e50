#include <cmath>
#include <cstring>

#include "harness/core/bf16.hpp"
#include "harness/core/chunk.hpp"
#include "harness/core/philox.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

bool power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Element [row, column] of a storage by rows.
template <class T>
void put(Bytes& storage, const TensorPlan& tensor, std::int64_t row, std::int64_t column, T value) {
  const std::int64_t element = tensor.offset + row * tensor.strides[0] + column;
  std::memcpy(storage.data() + static_cast<std::size_t>(element) * sizeof value, &value, sizeof value);
}

// A small integer for each element of the keys' rows.
std::int64_t value_of(const Stream& stream, std::int64_t row, std::int64_t column, std::int64_t width) {
  return static_cast<std::int64_t>(stream.word(static_cast<std::uint64_t>(row * width + column)) % 17) - 8;
}

// Queries of zeros weigh all keys alike. Where their number is a power of two and the values are small integers, the output is
// their mean, exactly.
LawFindings check_exact_attention(Trial& trial) {
  const Plan& plan = trial.plan();
  const Case& value = plan.value;
  const bool causal = value.flag("causal");
  const TensorPlan* const keys = plan.find(causal ? "kv_c" : "context_kv_c");
  if (keys == nullptr || plan.live == 0) return silent("there are no keys, or no queries");
  const std::int64_t heads = value.integer("heads"), width = value.integer("v_head_dim");
  const std::int64_t kv_lora = value.integer("kv_lora_rank");
  Setting setting = trial.setting();
  const Stream stream(value.seed, "exact attention");
  const TensorPlan& query = plan.tensor("q");
  for (std::int64_t rank = 0; rank < value.geometry.tp; ++rank) {
    Bytes& storage = setting.inputs.ranks[static_cast<std::size_t>(rank)].at("q");
    for (std::int64_t row = 0; row < plan.tokens; ++row) {
      for (std::int64_t i = 0; i < query.columns(); ++i) put(storage, query, row, i, 0.0F);
    }
  }
  Bytes& kv = setting.inputs.shared.at(keys->name);
  for (std::int64_t row = 0; row < keys->rows(); ++row) {
    for (std::int64_t i = 0; i < kv_lora; ++i) {
      const std::uint16_t code = encode_bf16(static_cast<float>(value_of(stream, row, i, kv_lora)));
      put(kv, *keys, row, i, code);
    }
  }
  // A NaN or an infinity of the case's own would be one in the scores, too.
  if (const TensorPlan* const rope = plan.find(causal ? "k_pe" : "context_k_pe")) {
    Bytes& storage = setting.inputs.shared.at(rope->name);
    for (std::int64_t row = 0; row < rope->rows(); ++row) {
      for (std::int64_t i = 0; i < rope->columns(); ++i) put(storage, *rope, row, i, encode_bf16(1.0F));
    }
  }
  const Observation seen = trial.observe(setting);
  if (!seen.refused.empty()) return silent("the launch was refused: " + seen.refused);

  Differences differences("exact_attention", plan);
  const std::vector<std::int64_t> context = causal ? std::vector<std::int64_t>{} : [&] {
    std::vector<std::int64_t> offsets = {0};
    for (const ChunkRequest& request : plan_chunk(value.geometry, value.geometry.caches.at("mla")).requests)
      offsets.push_back(offsets.back() + request.tokens);
    return offsets;
  }();
  std::int64_t first = 0;
  for (std::size_t request = 0; request < value.geometry.batch.size(); ++request) {
    const std::int64_t tokens = value.geometry.batch[request].uncached;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int64_t begin = causal ? first : context[request];
      const std::int64_t end = causal ? first + i + 1 : context[request + 1];
      if (!power_of_two(end - begin)) continue;
      for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
        Bytes should(static_cast<std::size_t>(heads * width) * sizeof(float));
        for (std::int64_t head = 0; head < heads; ++head) {
          const std::int64_t global = static_cast<std::int64_t>(rank) * heads + head;
          for (std::int64_t d = 0; d < width; ++d) {
            const std::int64_t column = (kv_lora / 2 + global * width + d) % kv_lora;
            std::int64_t sum = 0;
            for (std::int64_t key = begin; key < end; ++key) sum += value_of(stream, key, column, kv_lora);
            const float mean = static_cast<float>(sum) / static_cast<float>(end - begin);
            std::memcpy(should.data() + static_cast<std::size_t>(head * width + d) * sizeof mean, &mean, sizeof mean);
          }
        }
        differences.compare("out", static_cast<std::int64_t>(rank), first + i,
                            seen.ranks[rank].at("out")[static_cast<std::size_t>(first + i)], should,
                            "the mean of the values that it sees");
      }
    }
    first += tokens;
  }
  LawFindings findings;
  findings.compared = differences.compared();
  findings.violations = differences.take();
  return findings;
}

}  // namespace

Law exact_attention() {
  return {"exact_attention",
          "A query of zeros that sees as many keys as a power of two, of small integers, gets their mean, bit for bit.", false,
          check_exact_attention};
}

}  // namespace dcpcheck::laws
