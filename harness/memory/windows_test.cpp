#include "harness/memory/windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/error.hpp"
#include "harness/core/geometry_inputs.hpp"
#include "harness/core/test_ops.hpp"
#include "harness/memory/arena.hpp"
#include "harness/memory/write_set.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kTwo31 = std::int64_t{1} << 31;
constexpr std::int64_t kTwo32 = std::int64_t{1} << 32;

class WindowsTest : public testing::Test {
 protected:
  Plan plan(const std::string& caches, const std::string& batch = R"([{"cached":6,"uncached":7}])") const {
    const std::string text = R"({"op":"fused_norm_rope","geometry":{"batch":)" + batch +
                             R"(,"tp":2,"dcp":{"world_size":2},"caches":)" + caches +
                             R"(},"params":{"q_lora_rank":7,"index_topk":3,"max_position":16,"mla_layout":"fp8_ds_mla"}})";
    return make_plan(ops_.at("fused_norm_rope"), case_from_json(ops_, json::parse(text, "c"), "c"), std::int64_t{1} << 30);
  }
  static bool holds(const std::vector<Window>& windows, std::int64_t begin, std::int64_t end) {
    return std::any_of(windows.begin(), windows.end(), [&](const Window& w) { return w.begin <= begin && end <= w.end; });
  }
  const Ops ops_ = ops_of_source();
};

constexpr const char* kSparse = R"({"mla":{"block_size":4,"spare_blocks":60000000,"sparse":true},
  "indexer":{"block_size":4,"spare_blocks":60000000,"sparse":true,"slot_mapping":"same"}})";

TEST(Images, AreWhatAnAddressComesToIn32Bits) {
  EXPECT_THAT(images_of(100, 1), ElementsAre(100));
  EXPECT_THAT(images_of(kTwo31 + 8, 1), ElementsAre(kTwo31 + 8, -kTwo31 + 8));
  EXPECT_THAT(images_of(kTwo32 + 8, 1), ElementsAre(kTwo32 + 8, 8));
  // 2^32 + 8 bytes are 2^30 + 2 floats, which wrap nowhere; 2^33 + 8 are 2^31 + 2, which are negative where they are signed.
  EXPECT_THAT(images_of(kTwo32 + 8, 4), ElementsAre(kTwo32 + 8, 8));
  EXPECT_THAT(images_of(2 * kTwo32 + 8, 4), ElementsAre(2 * kTwo32 + 8, 8, -2 * kTwo32 + 8));
  EXPECT_THAT(images_of(kTwo31 + 9, 2), ElementsAre(kTwo31 + 9, -kTwo31 + 9)) << "an odd byte stays one";
}

TEST_F(WindowsTest, HoldEveryRecordAndItsImagesAndBothEnds) {
  const Plan p = plan(kSparse);
  const Inputs inputs = make_inputs(p);
  for (const char* name : {"mla_cache", "indexer_cache"}) {
    const TensorPlan& tensor = p.tensor(name);
    const std::vector<Window> windows = windows_of(p, tensor, 8192);
    std::int64_t last = windows.front().begin - 1, bytes = 0, records = 0;
    for (const Window& window : windows) {
      EXPECT_LT(last, window.begin) << "sorted, and apart";
      EXPECT_EQ(window.begin % kWindowPage, 0);
      EXPECT_EQ(window.end % kWindowPage, 0);
      last = window.end;
      bytes += window.end - window.begin;
    }
    EXPECT_LE(bytes, tensor.cache.resident);
    EXPECT_LT(bytes, 1 << 21);
    EXPECT_TRUE(holds(windows, -8192, tensor.cache.block_stride));
    EXPECT_TRUE(holds(windows, tensor.bytes() - tensor.cache.block_stride, tensor.bytes() + 8192));
    const auto expect_field = [&](std::int64_t slot, const FieldPlan& field) {
      ++records;
      for (const std::int64_t image : images_of(tensor.cache.address(slot, field), size_of(field.dtype)))
        EXPECT_TRUE(holds(windows, image, image + field.bytes())) << slot << " " << image;
    };
    std::int64_t past = 0;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      for (const Span& span : write_set(p, tensor, inputs, rank)) {
        expect_field(span.slot, tensor.cache.fields[static_cast<std::size_t>(span.field)]);
        past += span.begin > kTwo32 ? 1 : 0;
      }
      for (const auto& [slot, record] : inputs.prefix.at(name)[static_cast<std::size_t>(rank)]) {
        for (const FieldPlan& field : tensor.cache.fields) expect_field(slot, field);
      }
    }
    EXPECT_EQ(records, 13 * static_cast<std::int64_t>(tensor.cache.fields.size())) << "each token on one of the two ranks";
    EXPECT_GT(past, 0) << "a case in which nothing lies past 2^32 shows nothing";
  }
}

TEST_F(WindowsTest, SlotsAreTakenIn32BitsToo) {
  const Plan p = plan(R"({"mla":{"block_size":64,"spare_blocks":67108864,"sparse":true,"slot_mapping":"explicit",
    "slots":[[4294967300,-1],[-1,4294967295]]}})",
                      R"([{"uncached":2}])");
  const TensorPlan& tensor = p.tensor("mla_cache");
  const std::vector<Window> windows = windows_of(p, tensor, 8192);
  const FieldPlan& codes = tensor.cache.fields[0];
  for (const std::int64_t slot : {std::int64_t{4294967300}, std::int64_t{4}, std::int64_t{4294967295}}) {
    const std::int64_t address = tensor.cache.address(slot, codes);
    EXPECT_TRUE(holds(windows, address, address + codes.bytes())) << slot;
  }
}

TEST_F(WindowsTest, AnImageHasTheWindowsAlone) {
  const Plan p = plan(kSparse);
  const ArenaLayout arena = arena_layout(p);
  EXPECT_LT(arena.bytes, 1 << 22);
  EXPECT_LE(4 * arena.bytes, p.memory);
  const ArenaBuffer& buffer = arena.buffer("mla_cache");
  EXPECT_GT(buffer.bytes, 30 * kTwo32);
  std::int64_t at = buffer.offset;
  for (const Window& window : buffer.windows) {
    EXPECT_EQ(buffer.place(window.begin), at);
    at += window.end - window.begin;
    EXPECT_EQ(buffer.place(window.end - 1), at - 1);
  }
  EXPECT_THROW(static_cast<void>(buffer.place(buffer.windows[0].end)), HarnessError);
  EXPECT_THROW(static_cast<void>(buffer.place(buffer.windows[0].begin - 1)), HarnessError);
  // The parts of a range are its windows, cut to it.
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  buffer.each_part(buffer.windows[1].begin + 10, buffer.windows[2].begin + 20,
                   [&](std::int64_t begin, std::int64_t end) { parts.emplace_back(begin, end); });
  EXPECT_THAT(parts, ElementsAre(testing::Pair(buffer.windows[1].begin + 10, buffer.windows[1].end),
                                 testing::Pair(buffer.windows[2].begin, buffer.windows[2].begin + 20)));
}

TEST_F(WindowsTest, ThePrefixLiesInItsWindows) {
  const Plan p = plan(kSparse);
  const ArenaLayout arena = arena_layout(p);
  const Inputs inputs = make_inputs(p);
  HostMemory a(arena.bytes), b(arena.bytes);
  fill_arena(a.span(), arena, p, inputs, 1, Poison::A);
  fill_arena(b.span(), arena, p, inputs, 1, Poison::B);
  std::int64_t same = 0, records = 0;
  for (std::int64_t i = 0; i < arena.bytes; ++i) same += a.data()[i] == b.data()[i] ? 1 : 0;
  for (const auto& [name, ranks] : inputs.prefix) records += std::ssize(ranks[1]) * p.tensor(name).cache.record_bytes;
  EXPECT_EQ(same, records) << "all else is poison";
  EXPECT_GT(records, 0);
}

TEST_F(WindowsTest, SparseGroupsFollowTheirRules) {
  const auto refusal = [&](const std::string& text) {
    try {
      static_cast<void>(case_from_json(ops_, json::parse(text, "c"), "c"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(R"({"op":"gather_cache","geometry":{"batch":[{"cached":4}],"caches":{"mla":{"sparse":true}}}})"),
              HasSubstr("gather_cache is no single launch that writes records of the group and reads none"));
  EXPECT_THAT(refusal(R"({"op":"generate","geometry":{"batch":[{"uncached":4}],"caches":{"mla":{"sparse":true}}}})"),
              HasSubstr("no single launch"));
  EXPECT_THAT(
      refusal(R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":4}],"caches":{"mla":{"spare_blocks":1048577}}}})"),
      HasSubstr("spare_blocks"));
  EXPECT_THAT(refusal(R"({"op":"fused_norm_rope","geometry":{"batch":[{"uncached":4}],
    "caches":{"mla":{"sparse":true},"indexer":{"slot_mapping":"same"}}}})"),
              HasSubstr("spare_blocks and sparse must be those of the mla cache"));
  EXPECT_THAT([&] { plan(R"({"mla":{"block_size":1048576,"spare_blocks":67108864,"sparse":true}})"); },
              testing::ThrowsMessage<InputError>(HasSubstr("at most 2^42")));
  const Plan p = plan(kSparse);
  EXPECT_LT(p.memory, 1 << 25) << "windows, and not the range";
  EXPECT_THROW(static_cast<void>(make_plan(ops_.at("fused_norm_rope"), p.value, p.memory - 1)), InputError);
}

TEST_F(WindowsTest, IdsOfCasesThatAreNotSparseStay) {
  const auto text = [&](const char* caches) {
    const Case value = case_from_json(
        ops_, json::parse(std::string(R"({"op":"fused_norm_rope","geometry":{"caches":)") + caches + "}}", "c"), "c");
    return json::canonical(case_to_json(ops_.at("fused_norm_rope"), value));
  };
  EXPECT_EQ(text(R"({"mla":{}})"), text(R"({"mla":{"sparse":false}})"));
  EXPECT_THAT(text(R"({"mla":{"sparse":true}})"), HasSubstr(R"("mla":{"sparse":true})"));
}

}  // namespace
}  // namespace dcpcheck
