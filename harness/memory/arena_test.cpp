#include "harness/memory/arena.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

class ArenaTest : public testing::Test {
 protected:
  Plan plan(const std::string& rest) const {
    const Case value = case_from_json(ops_, json::parse(R"({"op":"fused_norm_rope")" + rest + "}", "c"), "c");
    return make_plan(ops_.at(value.op), value, std::int64_t{1} << 32);
  }
  const Ops ops_ = ops_of_source();
};

constexpr const char* kCase = R"(,"geometry":{"batch":[{"cached":6,"uncached":5}],"tp":2,"dcp":{"world_size":2},
  "caches":{"mla":{"block_size":4},"indexer":{"block_size":4,"slot_mapping":"same"}}},
  "params":{"q_lora_rank":7,"index_topk":3,"max_position":16})";

TEST_F(ArenaTest, EveryBufferHasGuardsOnBothSidesAtLeastABlockWide) {
  const Plan p = plan(
      R"(,"geometry":{"batch":[{"uncached":5}],"caches":{"mla":{"block_size":64,"block_stride_padding":100000}}},"params":{"q_lora_rank":7})");
  const ArenaLayout arena = arena_layout(p);
  const std::int64_t block = p.tensor("mla_cache").cache.block_stride;
  std::int64_t at = 0;
  for (const ArenaBuffer& buffer : arena.buffers) {
    EXPECT_GE(buffer.before, block);
    EXPECT_GE(buffer.after, block);
    EXPECT_EQ(buffer.offset % 256, 0);
    EXPECT_EQ(buffer.offset - buffer.before, at) << "the guards and buffers fill the arena";
    at = buffer.offset + buffer.bytes + buffer.after;
  }
  EXPECT_EQ(at, arena.bytes);
  EXPECT_EQ(arena.buffer("q_c_out").bytes, 5 * 7 * 2);
}

TEST_F(ArenaTest, PoisonsDifferInEveryByteAndBetweenBuffers) {
  const Plan p = plan(kCase);
  const ArenaLayout arena = arena_layout(p);
  Inputs inputs;
  HostMemory a(arena.bytes), b(arena.bytes);
  fill_arena(a.span(), arena, p, inputs, 0, Poison::A);
  fill_arena(b.span(), arena, p, inputs, 0, Poison::B);
  for (std::int64_t i = 0; i < arena.bytes; ++i) ASSERT_EQ(a.data()[i], ~b.data()[i]) << i;
  const auto word = [&](const char* name) {
    std::uint16_t value = 0;
    std::memcpy(&value, a.data() + arena.buffer(name).offset, 2);
    return value;
  };
  EXPECT_EQ(word("q_c_out") & 0xFF80, 0x7F80);
  EXPECT_NE(word("q_c_out"), 0x7F80) << "infinity is a value that a kernel may write";
  EXPECT_NE(word("q_c_out"), word("kv_c_out"));
}

TEST_F(ArenaTest, ThePrefixLiesInTheCacheOfItsRank) {
  const Plan p = plan(kCase);
  const ArenaLayout arena = arena_layout(p);
  const Inputs inputs = make_inputs(p);
  const TensorPlan& cache = p.tensor("mla_cache");
  std::size_t rows = 0;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    HostMemory image(arena.bytes);
    fill_arena(image.span(), arena, p, inputs, rank, Poison::A);
    for (const auto& [slot, record] : inputs.prefix.at("mla_cache").at(static_cast<std::size_t>(rank))) {
      ++rows;
      const std::byte* at = image.data() + arena.buffer("mla_cache").offset + cache.cache.address(slot, cache.cache.fields[0]);
      EXPECT_EQ(std::memcmp(at, record.data(), static_cast<std::size_t>(cache.cache.fields[0].bytes())), 0);
    }
  }
  EXPECT_EQ(rows, 6U) << "six cached tokens, each on one of two ranks";
}

TEST(HostMemory, EndsFlushAgainstAPageThatCannotBeTouched) {
  const HostMemory memory(13, true);
  std::memset(memory.data(), 1, 13);
  EXPECT_EQ((reinterpret_cast<std::uintptr_t>(memory.data()) + 13) % 4096, 0U);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH({ static_cast<volatile std::byte*>(memory.data())[13] = std::byte{1}; }, "");
}

TEST(HostMemory, MovesAndHoldsNothing) {
  HostMemory a(100);
  std::byte* data = a.data();
  HostMemory b = std::move(a);
  EXPECT_EQ(b.data(), data);
  b = HostMemory(0);
  EXPECT_EQ(b.size(), 0);
  EXPECT_NE(b.data(), nullptr);
}

}  // namespace
}  // namespace dcpcheck
