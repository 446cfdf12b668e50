// Launches of a manifest's variants, worked out without a GPU: which variant, how large, and what each parameter holds.
#include "harness/adapters/invocation.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "harness/adapters/manifest_test.hpp"
#include "harness/core/error.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
T value_of(const std::vector<std::byte>& bytes, std::size_t at = 0) {
  T value{};
  if (bytes.size() < at + sizeof value) throw std::out_of_range("a parameter is too short");
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class InvocationTest : public testing::Test {
 protected:
  // A launch of a case: each tensor at a 4096-byte aligned address of no memory, but for those in `shifted`, bytes further.
  struct Laid {
    Laid(const TestBench& bench, const std::string& value, std::map<std::string, std::int64_t> shifted)
        : plan(make_plan(bench.ops.at(*json::parse(value, "case").find("op")->get<std::string>()),
                         case_from_json(bench.ops, json::parse(value, "case"), "case"), TestBench::kMemory)),
          launch{plan, 1, {}, 1, nullptr} {
      std::uintptr_t at = 1 << 20;
      for (const TensorPlan& tensor : plan.tensors) {
        const auto address = at + static_cast<std::uintptr_t>(shifted[tensor.name]);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are all that is looked at
        launch.tensors[tensor.name] = {reinterpret_cast<void*>(address), tensor.dtype, tensor.shape, tensor.strides};
        at += 1 << 20;
      }
    }
    std::uint64_t address(const std::string& tensor) const {
      return reinterpret_cast<std::uintptr_t>(launch.tensors.at(tensor).data);
    }
    Plan plan;
    Launch launch;
  };

  Laid eh_norm(const std::string& params = R"("hidden_size": 64)", std::map<std::string, std::int64_t> shifted = {},
               const std::string& more = "") const {
    return {
        bench_,
        R"({"op": "fused_eh_norm", "seed": "0000000000000007", "geometry": {"batch": [{"uncached": 3}], "tp": 2}, "params": {)" +
            params + "}" + more + "}",
        std::move(shifted)};
  }

  // A manifest with these variants, each without what all have in common: a kernel without parameters.
  Manifest manifest(const std::vector<std::string>& variants, const std::string& op = "fused_eh_norm",
                    const std::string& members = "") const {
    std::string list;
    int number = 0;
    for (const std::string& variant : variants) {
      const std::string module = "k" + std::to_string(number++) + ".ptx";
      static_cast<void>(folder_.write(module, ptx_with("")));
      list += (list.empty() ? "" : ", ") + std::string("{") + variant + R"(, "module": ")" + module + R"(", "entry": "k")" +
              R"(, "parameters": [])" + (variant.find("\"grid\"") == std::string::npos ? R"(, "grid": ["T"])" : "") +
              R"(, "block": [32]})";
    }
    return read(R"({"schema": "dcpcheck.manifest/1", "op": ")" + op + R"(", "name": "a")" + members + R"(, "variants": [)" +
                list + "]}");
  }

  // One variant with these parameters, of a kernel that takes `taken`.
  Manifest with_parameters(const std::string& parameters, const std::string& taken,
                           const std::string& op = "fused_eh_norm") const {
    static_cast<void>(folder_.write("p.ptx", ptx_with(taken)));
    return read(
        R"({"schema": "dcpcheck.manifest/1", "op": ")" + op +
        R"(", "name": "a", "variants": [{"name": "all", "module": "p.ptx", "entry": "k", "grid": [1], "block": [32], "parameters": [)" +
        parameters + "]}]}");
  }

  Manifest read(const std::string& text) const { return read_manifest(folder_.write("m.json", text), bench_.ops, "m"); }

  static Invocation made(const Manifest& manifest, const Laid& laid) {
    auto found = work_out(manifest, laid.launch);
    if (const auto* error = std::get_if<LaunchError>(&found)) throw std::runtime_error(error->why);
    return std::get<Invocation>(std::move(found));
  }
  static LaunchError declined(const Manifest& manifest, const Laid& laid) {
    auto found = work_out(manifest, laid.launch);
    if (const auto* error = std::get_if<LaunchError>(&found)) return *error;
    return {"launched as " + std::get<Invocation>(found).variant->name};
  }

  const ManifestFolder folder_;
  const TestBench bench_;
};

TEST_F(InvocationTest, EachParameterHoldsWhatItIsBoundTo) {
  const Laid laid =
      eh_norm(R"("hidden_size": 64, "embeds_eps": 0.25)", {}, R"(, "layout": {"embeds": {"stride": 72, "offset": 8}})");
  const Manifest manifest = with_parameters(
      R"({"bind": "address", "tensor": "embeds"}, {"bind": "address", "tensor": "out", "offset": "2 * hidden_size"},
         {"bind": "stride", "tensor": "embeds", "axis": 0, "type": "i32"}, {"bind": "shape", "tensor": "out", "axis": 1, "type": "i64"},
         {"bind": "value", "value": "T - 5", "type": "i8"}, {"bind": "value", "value": "rank + W", "type": "i16"},
         {"bind": "number", "param": "embeds_eps", "type": "f32"}, {"bind": "number", "param": "embeds_eps", "type": "f64"},
         {"bind": "constant", "value": -3, "type": "i32"}, {"bind": "constant", "value": 1.5, "type": "f32"}, {"bind": "null"},
         {"bind": "struct", "fields": [{"bind": "value", "value": "T", "type": "i8"}, {"bind": "address", "tensor": "out"},
                                       {"bind": "value", "value": "T", "type": "f32"}]})",
      ".param .u64 a, .param .u64 b, .param .u32 c, .param .u64 d, .param .u8 e, .param .u16 f, .param .f32 g, .param .f64 h, "
      ".param .u32 i, .param .f32 j, .param .u64 k, .param .align 8 .b8 l[24]");
  const Invocation invocation = made(manifest, laid);
  const auto& parameters = invocation.parameters;
  ASSERT_EQ(parameters.size(), 12U);
  EXPECT_EQ(value_of<std::uint64_t>(parameters[0]), laid.address("embeds"));
  EXPECT_EQ(value_of<std::uint64_t>(parameters[1]), laid.address("out") + 128);
  EXPECT_EQ(value_of<std::int32_t>(parameters[2]), 72);
  EXPECT_EQ(value_of<std::int64_t>(parameters[3]), 128);
  EXPECT_EQ(value_of<std::int8_t>(parameters[4]), -2);
  EXPECT_EQ(value_of<std::int16_t>(parameters[5]), 2);
  EXPECT_EQ(value_of<float>(parameters[6]), 0.25F);
  EXPECT_EQ(value_of<double>(parameters[7]), 0.25);
  EXPECT_EQ(value_of<std::int32_t>(parameters[8]), -3);
  EXPECT_EQ(value_of<float>(parameters[9]), 1.5F);
  EXPECT_EQ(value_of<std::uint64_t>(parameters[10]), 0U);
  EXPECT_EQ(value_of<std::int8_t>(parameters[11]), 3);
  EXPECT_EQ(value_of<std::uint64_t>(parameters[11], 8), laid.address("out"));
  EXPECT_EQ(value_of<float>(parameters[11], 16), 3.0F);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_EQ(static_cast<std::int64_t>(parameters[i].size()), invocation.variant->parameters[i].bytes()) << i;
}

TEST_F(InvocationTest, ScratchAndArraysAreMemoryOfTheLaunch) {
  const Laid laid(
      bench_,
      R"({"op": "compute_slot_mapping", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}, {"uncached": 2}],
"caches": {"full": {"block_size": 16}, "window": {"block_size": 32}}}})",
      {});
  const Manifest manifest = with_parameters(
      R"({"bind": "scratch", "bytes": "12 * T"}, {"bind": "scratch", "bytes": 0, "zeroed": true},
         {"bind": "array", "each": {"bind": "address", "tensor": "block_table", "offset": 4}},
         {"bind": "array", "each": {"bind": "value", "value": "group.block_size * block_table.shape0", "type": "i32"}},
         {"bind": "address", "tensor": "block_table.window"},
         {"bind": "struct", "fields": [{"bind": "value", "value": "T", "type": "i32"}, {"bind": "scratch", "bytes": 8}]})",
      ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .align 8 .b8 f[16]",
      "compute_slot_mapping");
  const Invocation invocation = made(manifest, laid);
  ASSERT_EQ(invocation.scratch.size(), 5U);
  EXPECT_EQ(invocation.scratch[4].parameter, 5U);
  EXPECT_EQ(invocation.scratch[4].offset, 8U);
  EXPECT_EQ(invocation.scratch[0].bytes, 84);
  EXPECT_FALSE(invocation.scratch[0].zeroed);
  EXPECT_EQ(invocation.scratch[1].bytes, 0);
  EXPECT_TRUE(invocation.scratch[1].zeroed);
  const Scratch& addresses = invocation.scratch[2];
  EXPECT_EQ(addresses.parameter, 2U);
  EXPECT_EQ(addresses.bytes, 16);
  EXPECT_EQ(value_of<std::uint64_t>(addresses.contents), laid.address("block_table.full") + 4);
  EXPECT_EQ(value_of<std::uint64_t>(addresses.contents, 8), laid.address("block_table.window") + 4);
  EXPECT_EQ(value_of<std::int32_t>(invocation.scratch[3].contents), 32);
  EXPECT_EQ(value_of<std::int32_t>(invocation.scratch[3].contents, 4), 64);
  EXPECT_EQ(value_of<std::uint64_t>(invocation.parameters[4]), laid.address("block_table.window"));
}

TEST_F(InvocationTest, TheFirstVariantThatFitsIsLaunched) {
  const Manifest three =
      manifest({R"("name": "aligned", "when": "option.norm_round == 'none'", "requires": [{"address": "embeds",
"divisible_by": 16}, {"value": "embeds.stride0", "divisible_by": 8}])",
                R"("name": "dense", "requires": [{"value": "embeds.stride0 - hidden_size", "equal_to": 0}])",
                R"("name": "rest", "when": "hidden_size > 8")"});
  EXPECT_EQ(made(three, eh_norm()).variant->name, "aligned");
  EXPECT_EQ(made(three, eh_norm(R"("hidden_size": 64)", {{"embeds", 8}})).variant->name, "dense");
  EXPECT_EQ(made(three, eh_norm(R"("hidden_size": 65)")).variant->name, "dense");
  EXPECT_EQ(made(three, eh_norm(R"("hidden_size": 64)", {}, R"(, "contract": {"norm_round": "bf16"})")).variant->name, "dense");
  EXPECT_EQ(made(three, eh_norm(R"("hidden_size": 64)", {}, R"(, "layout": {"embeds": {"stride": 65}})")).variant->name,
            "rest");
  const auto reason = [&](const std::string& size) {
    const LaunchError none = declined(three, eh_norm(size, {{"embeds", 2}}, R"(, "layout": {"embeds": {"stride": 99}})"));
    EXPECT_EQ(none.kind, LaunchError::Kind::skipped);
    return none.why;
  };
  EXPECT_EQ(
      reason(R"("hidden_size": 7)"),
      "no variant of the manifest fits: aligned: embeds lies at an address that 16 does not divide; dense: embeds.stride0 - "
      "hidden_size is 92, not 0");
  const Manifest one = manifest({R"("name": "wide", "when": "hidden_size > 8")"});
  EXPECT_EQ(declined(one, eh_norm(R"("hidden_size": 7)")).why, "no variant of the manifest fits: wide: not hidden_size > 8");
}

TEST_F(InvocationTest, WhatAParameterCannotHoldIsNoFit) {
  const Laid laid = eh_norm(R"("hidden_size": 200)", {{"out", 2}});
  EXPECT_THAT(
      declined(with_parameters(R"({"name": "n", "bind": "value", "value": "hidden_size", "type": "i8"})", ".param .u8 n"), laid)
          .why,
      HasSubstr("all: /variants/0/parameters/0 (n) is 200, which no i8 holds"));
  EXPECT_THAT(declined(with_parameters(R"({"bind": "address", "tensor": "out", "align": 4})", ".param .u64 n"), laid).why,
              HasSubstr("/variants/0/parameters/0 is an address in out that 4 does not divide"));
}

TEST_F(InvocationTest, ATensorThatIsNotThereIsNullZeroOrNoFit) {
  const Laid laid(bench_, R"({"op": "fused_norm_rope", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 2}],
"caches": {"mla": {}, "indexer": {"present": false}}}, "params": {"indexer": false}})",
                  {});
  const auto with = [&](const std::string& optional) {
    return with_parameters(R"({"bind": "address", "tensor": "index_k", "offset": 4)" + optional + R"(},
{"bind": "stride", "tensor": "index_k", "axis": 0, "type": "i64")" +
                               optional + R"(}, {"bind": "value", "value": "index_k.present", "type": "i32"},
{"bind": "value", "value": "k_pe.present", "type": "i32"})",
                           ".param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d", "fused_norm_rope");
  };
  const Manifest optional = with(R"(, "optional": true)");
  const Invocation invocation = made(optional, laid);
  EXPECT_EQ(value_of<std::uint64_t>(invocation.parameters[0]), 0U);
  EXPECT_EQ(value_of<std::uint64_t>(invocation.parameters[1]), 0U);
  EXPECT_EQ(value_of<std::int32_t>(invocation.parameters[2]), 0);
  EXPECT_EQ(value_of<std::int32_t>(invocation.parameters[3]), 1);
  const LaunchError none = declined(with(""), laid);
  EXPECT_EQ(none.kind, LaunchError::Kind::skipped);
  EXPECT_THAT(none.why, HasSubstr("/variants/0/parameters/0 is of index_k, which the case does not have"));
}

TEST_F(InvocationTest, AnEmptyGridIsNothingToDo) {
  EXPECT_TRUE(made(manifest({R"("name": "none", "grid": ["T - 3", 2])"}), eh_norm()).empty());
  EXPECT_FALSE(made(manifest({R"("name": "some", "grid": ["T", 2])"}), eh_norm()).empty());
}

TEST_F(InvocationTest, WhatCudaDoesNotHaveIsRefused) {
  const auto refused = [&](const std::string& variant) {
    const LaunchError error = declined(manifest({R"("name": "v", )" + variant}), eh_norm());
    EXPECT_EQ(error.kind, LaunchError::Kind::refused);
    return error.why;
  };
  EXPECT_EQ(refused(R"("grid": ["T", "40000 * T"])"),
            "/variants/0 (v): the grid would be 120000 in y, where CUDA has 0 to 65535");
  EXPECT_THAT(refused(R"("grid": ["T - 9"])"), HasSubstr("the grid would be -6 in x"));
}

TEST_F(InvocationTest, WhatCannotBeWorkedOutIsRefusedOrNoFit) {
  const LaunchError grid = declined(manifest({R"("name": "v", "grid": ["1 / (T - 3) + 1"])"}), eh_norm());
  EXPECT_EQ(grid.kind, LaunchError::Kind::refused);
  EXPECT_EQ(grid.why, "/variants/0 (v) cannot be worked out for the case: expression \"1 / (T - 3) + 1\": divides by zero");
  const LaunchError when = declined(manifest({R"("name": "v", "when": "1 / (T - 3) + 1")"}), eh_norm());
  EXPECT_EQ(when.kind, LaunchError::Kind::skipped);
  EXPECT_THAT(when.why, HasSubstr("divides by zero"));
}

TEST_F(InvocationTest, LaunchAttributesAreWorkedOut) {
  const Manifest clustered = manifest({R"("name": "v", "grid": ["2 * T"], "cluster": [2], "shared_bytes": "threes",
"cooperative": true)"},
                                      "fused_eh_norm", R"(, "values": {"threes": "1000 * T"})");
  const Invocation invocation = made(clustered, eh_norm());
  EXPECT_TRUE(invocation.clustered);
  EXPECT_THAT(invocation.cluster, ElementsAre(2, 1, 1));
  EXPECT_THAT(invocation.grid, ElementsAre(6, 1, 1));
  EXPECT_EQ(invocation.shared_bytes, 3000);
  EXPECT_TRUE(invocation.variant->cooperative);
  EXPECT_THAT(declined(manifest({R"("name": "v", "grid": ["T"], "cluster": [2])"}), eh_norm()).why,
              HasSubstr("the grid is 3 in x, which clusters of 2 do not fill"));
  EXPECT_THAT(declined(manifest({R"("name": "v", "grid": ["T"], "shared_bytes": "0 - T")"}), eh_norm()).why,
              HasSubstr("dynamic shared memory would be of -3 bytes"));
}

}  // namespace
}  // namespace dcpcheck
