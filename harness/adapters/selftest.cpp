#include "harness/adapters/selftest.hpp"

#include "harness/core/json.hpp"
#include "harness/exec/runner.hpp"

namespace dcpcheck {
namespace {

// Small, yet with every kind of arithmetic that the kernels have: sums in both norms, square roots, divisions, RoPE,
// e4m3 codes, fp32 and power-of-two scales, subnormal inputs.
constexpr const char* kCase = R"({"op": "fused_norm_rope", "seed": "00000000005e1f7e",
  "geometry": {"batch": [{"uncached": 12}], "tp": 2, "dcp": {"world_size": 2},
               "caches": {"mla": {"block_size": 4}, "indexer": {"block_size": 4, "slot_mapping": "same"}}},
  "params": {"q_lora_rank": 333, "index_topk": 3, "index_k_out": true, "max_position": 16, "mla_layout": "fp8_ds_mla"},
  "values": {"q_c": "mixed"}})";

// The first 16 hex digits of the digest over all ranks and outputs, the same for every compiler, level and device tried.
constexpr const char* kDigest = "642e2d5130f920ae";

}  // namespace

std::string self_test(Backend& backend, const std::map<std::string, BuiltinOp, std::less<>>& ops,
                      const std::vector<Kernel>& kernels) {
  Ops known;
  for (const auto& [name, builtin] : ops) known.emplace(name, builtin.op);
  const Case value = case_from_json(known, json::parse(kCase, "the self-test"), "the self-test");
  const BuiltinOp& op = ops.at(value.op);
  for (const Kernel& kernel : kernels) {
    if (kernel.op != value.op || !kernel.fault.empty() || !backend.can_run(kernel)) continue;
    Prepared prepared = prepare(op.op, op.reference, value, std::int64_t{1} << 30, 1, "the self-test");
    const CaseResult result = run_case(prepared, kernel, backend, {});
    const std::string digest = result.all_digest.substr(0, 16);
    if (digest == kDigest) return "";
    return "the self-test's bits on " + backend.name() + " have the digest " + digest + ", not " + kDigest +
           ": this build does not compute what others do (after a change to kernels/fused_norm_rope that is meant to change "
           "bits, put the new digest into harness/adapters/selftest.cpp; --no-self-test judges the kernels all the same)";
  }
  return "the self-test found no kernel that " + backend.name() + " can run";
}

}  // namespace dcpcheck
