#include "harness/adapters/builtin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/core/bf16.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/json.hpp"
#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

constexpr std::byte kPoison{0xA5};

const Ops& ops() {
  static const Ops all = ops_of_source();
  return all;
}

const Kernel& kernel_named(const std::string& name) {
  static const std::vector<Kernel> all = builtin_kernels();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Kernel& kernel) { return kernel.name == name; });
  if (found == all.end()) throw std::runtime_error("no kernel " + name);
  return *found;
}

// A case as a file would have it, planned, with its inputs.
struct Planned {
  Plan plan;
  Inputs inputs;

  explicit Planned(const std::string& text) {
    const Case value = case_from_json(ops(), json::parse(text, "test"), "test");
    plan = make_plan(ops().at(value.op), value, std::int64_t{1} << 30);
    inputs = make_inputs(plan);
  }

  // The memory of every tensor after a launch on `rank`, with room for a block on both sides of caches.
  struct Memory {
    std::map<std::string, Bytes> storage;
    std::map<std::string, std::size_t> start;
    LaunchError refused;
  };
  Memory run(const std::string& kernel, std::int64_t rank) const {
    Memory memory;
    Launch launch{plan, rank, {}, 2, nullptr};
    for (const TensorPlan& tensor : plan.tensors) {
      if (!tensor.in_place_of.empty()) continue;
      const auto margin = static_cast<std::size_t>(tensor.role == Role::cache ? tensor.cache.block_stride : 0);
      Bytes& bytes = memory.storage[tensor.name];
      if (tensor.role == Role::in) {
        bytes = inputs.get(tensor.name, rank);
      } else {
        bytes.assign(static_cast<std::size_t>(tensor.bytes()) + 2 * margin, kPoison);
      }
      memory.start[tensor.name] = margin + static_cast<std::size_t>(tensor.offset * size_of(tensor.dtype));
      launch.tensors[tensor.name] = {bytes.data() + memory.start[tensor.name], tensor.dtype, tensor.shape, tensor.strides};
    }
    for (const TensorPlan& tensor : plan.tensors) {
      if (!tensor.in_place_of.empty()) launch.tensors[tensor.name] = launch.tensors.at(tensor.in_place_of);
    }
    memory.refused = kernel_named(kernel).host(launch);
    return memory;
  }
};

TEST(BuiltinKernels, AreNamedByOpAndFaultInOrder) {
  std::vector<std::string> names;
  for (const Kernel& kernel : builtin_kernels()) {
    names.push_back(kernel.name);
    EXPECT_EQ(kernel.name, "builtin:" + kernel.op + (kernel.fault.empty() ? "" : "@" + kernel.fault));
    EXPECT_EQ(kernel.doc.empty(), kernel.fault.empty()) << kernel.name;
    EXPECT_EQ(kernel.source.empty(), kernel.fault.empty()) << kernel.name;
    EXPECT_EQ(kernel.reason.empty(), kernel.fault.empty()) << kernel.name;
    EXPECT_EQ(kernel.caught_by.empty(), kernel.fault.empty()) << kernel.name;
    // A fault that only a law can tell has right values, by sums of its own.
    EXPECT_EQ(kernel.lanes, kernel.reason == "law" ? 0 : kernel.op == "dense_prefill" ? 32 : 128) << kernel.name;
    EXPECT_TRUE(kernel.host);
#ifdef DCPCHECK_HAVE_CUDA
    // Faults may be left out of a build (DCPCHECK_CUDA_FAULTS), but then all of them.
    EXPECT_TRUE(kernel.cuda || !kernel.fault.empty()) << kernel.name;
#else
    EXPECT_FALSE(kernel.cuda);
#endif
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"builtin:compute_slot_mapping", "builtin:compute_slot_mapping@localise_replicated",
                                            "builtin:compute_slot_mapping@ownership_in_kernel_blocks",
                                            "builtin:fused_norm_rope", "builtin:fused_norm_rope@cache_unguarded",
                                            "builtin:fused_norm_rope@k_gated", "builtin:fused_norm_rope@q_gated"}));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(BuiltinKernels, EachFaultFileIsInTheList) {
  std::set<std::string> files, listed;
  for (const auto& op : std::filesystem::directory_iterator(std::string(DCPCHECK_SOURCE_DIR) + "/kernels")) {
    if (!std::filesystem::is_directory(op.path() / "faults")) continue;
    for (const auto& file : std::filesystem::directory_iterator(op.path() / "faults")) {
      files.insert(op.path().filename().string() + "@" + file.path().stem().string());
    }
  }
  for (const Kernel& kernel : builtin_kernels()) {
    if (!kernel.fault.empty()) listed.insert(kernel.op + "@" + kernel.fault);
  }
  EXPECT_EQ(files, listed);
}

const char* const kSlots = R"({"op": "compute_slot_mapping", "seed": "0000000000000005", "geometry": {
  "batch": [{"cached": 7, "uncached": 40}, {"cached": 0, "uncached": 9}], "tp": 4, "dcp": {"world_size": 2, "interleave": 2},
  "padding": {"tokens": 3}, "max_batched_tokens": 60,
  "caches": {"a": {"block_size": 8, "kernel_block_size": 4}, "b": {"block_size": 16, "slot_mapping": "replicated"},
             "c": {"block_size": 8, "enabled": false}}}, "contract": {"tail": "query_end"}})";

TEST(BuiltinComputeSlotMapping, GivesTheSlotsOfTheCase) {
  const Planned planned(kSlots);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto memory = planned.run("builtin:compute_slot_mapping", rank);
    EXPECT_EQ(memory.refused.why, "");
    const TensorPlan& out = planned.plan.tensor("slot_mapping");
    const auto* slots = reinterpret_cast<const std::int64_t*>(memory.storage.at("slot_mapping").data());
    ASSERT_EQ(out.shape, (std::vector<std::int64_t>{3, 60}));
    const std::vector<std::string> groups = {"a", "b"};
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<std::int64_t> expected = slots_of(planned.plan, groups[g], rank);
      expected.resize(49);
      expected.resize(60, -1);
      const auto* row = slots + static_cast<std::ptrdiff_t>(g) * out.strides[0];
      EXPECT_EQ(std::vector<std::int64_t>(row, row + 60), expected) << "rank " << rank << " group " << groups[g];
    }
    const auto* disabled = reinterpret_cast<const std::byte*>(slots + 2 * out.strides[0]);
    EXPECT_EQ(std::count(disabled, disabled + 480, kPoison), 480);
  }
}

TEST(BuiltinComputeSlotMapping, AsManyGroupsAsACaseMayHave) {
  std::string caches;
  for (int i = 0; i < 16; ++i) {
    caches += std::string(i > 0 ? R"(, "g)" : R"("g)") + std::to_string(10 + i) + R"(": {"block_size": )" +
              std::to_string(4 + i) + "}";
  }
  const Planned planned(R"({"op": "compute_slot_mapping", "geometry": {"batch": [{"cached": 3, "uncached": 50}], "caches": {)" +
                        caches + "}}}");
  const auto memory = planned.run("builtin:compute_slot_mapping", 0);
  const TensorPlan& out = planned.plan.tensor("slot_mapping");
  const auto* slots = reinterpret_cast<const std::int64_t*>(memory.storage.at("slot_mapping").data());
  for (int i = 0; i < 16; ++i) {
    const auto* row = slots + i * out.strides[0];
    EXPECT_EQ(std::vector<std::int64_t>(row, row + 50), slots_of(planned.plan, std::string("g") + std::to_string(10 + i), 0))
        << i;
  }
}

std::string fused(const std::string& params, const std::string& contract) {
  return R"({"op": "fused_norm_rope", "seed": "0000000000000009", "geometry": {
    "batch": [{"cached": 7, "uncached": 40}, {"cached": 0, "uncached": 9}], "tp": 4, "dcp": {"world_size": 4, "interleave": 1},
    "caches": {"mla": {"block_size": 16}, "indexer": {"block_size": 16, "slot_mapping": "same"}}},
    "params": {)" +
         params + R"(}, "contract": {)" + contract + "}}";
}

TEST(BuiltinFusedNormRope, WritesWhatEveryRankMustHave) {
  const Planned planned(fused(R"("index_k_out": true, "mla_layout": "fp8_ds_mla")", ""));
  const auto first = planned.run("builtin:fused_norm_rope", 0);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto memory = planned.run("builtin:fused_norm_rope", rank);
    EXPECT_EQ(memory.refused.why, "");
    for (const std::string name : {"q_c_out", "kv_c_out", "k_pe_out", "index_k_out", "topk_indices"}) {
      EXPECT_EQ(memory.storage.at(name), first.storage.at(name)) << name << " of rank " << rank;
      const Bytes& bytes = memory.storage.at(name);
      EXPECT_LT(std::count(bytes.begin(), bytes.end(), kPoison), static_cast<std::ptrdiff_t>(bytes.size() / 16)) << name;
    }
    // A record of each owned slot and no other byte.
    const std::vector<std::int64_t> slots = slots_of(planned.plan, "mla", rank);
    for (const std::string name : {"mla_cache", "indexer_cache"}) {
      const TensorPlan& cache = planned.plan.tensor(name);
      Bytes bytes = memory.storage.at(name);
      for (const std::int64_t slot : slots) {
        if (slot < 0) continue;
        for (const FieldPlan& field : cache.cache.fields) {
          const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(memory.start.at(name)) + cache.cache.address(slot, field);
          EXPECT_LT(std::count(at, at + field.bytes(), kPoison), std::max<std::int64_t>(field.bytes() / 4, 2));
          std::fill_n(at, field.bytes(), kPoison);
        }
      }
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), kPoison), static_cast<std::ptrdiff_t>(bytes.size())) << name;
    }
  }
}

TEST(BuiltinFusedNormRope, InPlaceGivesTheSameCachesAndOutputs) {
  const Planned separate(fused("", "")), in_place(fused("", R"("k_outputs": "in_place")"));
  const auto a = separate.run("builtin:fused_norm_rope", 1), b = in_place.run("builtin:fused_norm_rope", 1);
  EXPECT_EQ(a.storage.at("kv_c_out"), b.storage.at("kv_c"));
  EXPECT_EQ(a.storage.at("k_pe_out"), b.storage.at("k_pe"));
  EXPECT_EQ(a.storage.at("mla_cache"), b.storage.at("mla_cache"));
}

TEST(BuiltinFusedNormRope, EveryParamAndOptionReachesTheKernel) {
  // Each must change a byte of what the plain case leaves.
  const std::string base = R"("mla_layout": "fp8_ds_mla", "index_k_out": true)";
  const auto plain = Planned(fused(base, "")).run("builtin:fused_norm_rope", 0);
  const auto all = [](const Planned::Memory& memory) {
    std::map<std::string, Bytes> outputs;
    for (const std::string name : {"q_c_out", "kv_c_out", "k_pe_out", "index_k_out", "mla_cache", "indexer_cache"}) {
      outputs[name] = memory.storage.at(name);
    }
    return outputs;
  };
  for (const std::string param :
       {R"("q_eps": 0.5)", R"("kv_eps": 0.5)", R"("index_eps": 0.5)", R"("rope_interleaved": false)",
        R"("index_rope_interleaved": false)", R"("rope_table_dtype": "bf16")", R"("index_rope_dim": 32)"}) {
    EXPECT_NE(all(Planned(fused(base + ", " + param, "")).run("builtin:fused_norm_rope", 0)), all(plain)) << param;
  }
  for (const std::string option : {R"("norm_round": "bf16")", R"("pre_rope_round": "bf16")", R"("pre_quant_round": "bf16")",
                                   R"("tile_scale": "fp32_mul")", R"("tile_scale": "pow2")"}) {
    EXPECT_NE(all(Planned(fused(base, option)).run("builtin:fused_norm_rope", 0)), all(plain)) << option;
  }
}

TEST(BuiltinFusedNormRope, FaultsReachTheKernel) {
  const Planned planned(fused("", ""));
  const auto right = planned.run("builtin:fused_norm_rope", 0);
  const auto differs = [&](const std::string& fault, const std::string& tensor) {
    return planned.run("builtin:fused_norm_rope@" + fault, 0).storage.at(tensor) != right.storage.at(tensor);
  };
  EXPECT_TRUE(differs("k_gated", "kv_c_out"));
  EXPECT_FALSE(differs("k_gated", "q_c_out"));
  EXPECT_TRUE(differs("q_gated", "q_c_out"));
  EXPECT_TRUE(differs("cache_unguarded", "mla_cache"));
  EXPECT_TRUE(differs("cache_unguarded", "indexer_cache"));
  EXPECT_FALSE(differs("cache_unguarded", "kv_c_out"));
}

std::string chunk_case(const std::string& op, std::int64_t world_size, std::int64_t interleave, const std::string& rest) {
  return R"({"op": ")" + op + R"(", "seed": "0000000000000007", "geometry": {
    "batch": [{"cached": 200}, {"uncached": 3}, {"cached": 77, "uncached": 9}, {"cached": 70}, {"cached": 30}], "tp": 4,
    "dcp": {"world_size": )" +
         std::to_string(world_size) + R"(, "interleave": )" + std::to_string(interleave) +
         R"(}, "chunk": {"start": 64, "tokens": 64}, "caches": {"mla": {"block_size": 16, "kernel_block_size": 8}}}, )" + rest +
         "}";
}

TEST(BuiltinGatherCache, PiecesPutTogetherAreTheContextOfOneRank) {
  for (const std::string layout : {"bf16", "fp8", "fp8_ds_mla"}) {
    const std::string params = R"("params": {"mla_layout": ")" + layout + R"("})";
    const Bytes whole =
        Planned(chunk_case("gather_cache", 1, 1, params)).run("builtin:gather_cache", 0).storage.at("workspace");
    ASSERT_EQ(whole.size(), (64U + 13 + 6) * 576 * 2);
    for (const std::int64_t world_size : {1, 2, 4}) {
      for (const std::int64_t interleave : {1, 2, 16}) {
        const Planned planned(chunk_case("gather_cache", world_size, interleave, params));
        Bytes pieces;
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          const auto memory = planned.run("builtin:gather_cache", rank);
          EXPECT_EQ(memory.refused.why, "");
          const Bytes& piece = memory.storage.at("workspace");
          pieces.insert(pieces.end(), piece.begin(), piece.end());
        }
        Planned reorg(chunk_case("reorg_context", world_size, interleave, R"("params": {"width": 576})"));
        ASSERT_EQ(reorg.inputs.shared.at("gathered").size(), pieces.size());
        reorg.inputs.shared["gathered"] = pieces;
        EXPECT_EQ(reorg.run("builtin:reorg_context", 0).storage.at("context"), whole)
            << layout << ' ' << world_size << ' ' << interleave;
        Planned by_rank(chunk_case("reorg_context", world_size, interleave,
                                   R"("params": {"width": 576}, "contract": {"order": "rank_major"})"));
        by_rank.inputs.shared["gathered"] = pieces;
        // The two orders are one where there is one rank, or one turn of them.
        const bool same = world_size == 1 || world_size * interleave == 64;
        EXPECT_EQ(by_rank.run("builtin:reorg_context", 0).storage.at("context") == whole, same);
      }
    }
  }
}

TEST(BuiltinGatherCache, FaultsReachTheKernel) {
  const Planned gather(chunk_case("gather_cache", 4, 2, R"("params": {"mla_layout": "fp8"})"));
  const auto right = gather.run("builtin:gather_cache", 1).storage.at("workspace");
  for (const std::string fault :
       {"local_length_wrong_in_second_chunk", "start_block_aligned", "scale_left_out", "global_positions_in_local_table"}) {
    // A chunk from token 64 of 4 ranks starts with local row 16, which a kernel block of 8 starts with, too.
    EXPECT_EQ(gather.run("builtin:gather_cache@" + fault, 1).storage.at("workspace") == right, fault == "start_block_aligned")
        << fault;
  }
}

TEST(BuiltinReorgContext, FaultsReachTheKernel) {
  const Planned reorg(chunk_case("reorg_context", 4, 2, R"("params": {"width": 9}, "contract": {"order": "rank_major"})"));
  const auto right = reorg.run("builtin:reorg_context", 0).storage.at("context");
  for (const std::string fault : {"stale_rows_read", "interleave_ignored", "request_order_lost"}) {
    EXPECT_NE(reorg.run("builtin:reorg_context@" + fault, 0).storage.at("context"), right) << fault;
  }
}

}  // namespace
}  // namespace dcpcheck
