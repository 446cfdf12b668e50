#include "harness/core/chunk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;

const std::vector<std::int64_t> kLengths = {0, 1, 2, 7, 8, 31, 32, 33, 95, 96, 100, 257};

Geometry geometry_of(std::int64_t world_size, std::int64_t interleave, std::int64_t start, std::int64_t tokens) {
  Geometry geometry;
  geometry.tp = geometry.world_size = world_size;
  geometry.interleave = interleave;
  for (const std::int64_t length : kLengths) geometry.batch.push_back({length, 3});
  geometry.chunk = {start, tokens};
  return geometry;
}

CacheGroup blocks_of(std::int64_t block_size) {
  CacheGroup group;
  group.block_size = group.kernel_block_size = block_size;
  return group;
}

// Calls body(W, B, I, tokens a chunk) for every W <= 8, I that divides B, and budgets of a few turns up to all.
template <class Body>
void each_budget(Body body) {
  for (std::int64_t world_size = 1; world_size <= 8; ++world_size) {
    for (const std::int64_t block : {1, 4, 6, 16}) {
      for (std::int64_t interleave = 1; interleave <= block; ++interleave) {
        if (block % interleave != 0) continue;
        const std::int64_t turn = world_size * interleave;
        for (const std::int64_t turns : {1, 2, 3, 5, 16, 300}) body(world_size, block, interleave, turns * turn);
      }
    }
  }
}

// A rank's rows of tokens [first, last), counted one by one.
std::int64_t counted(const dcp::Sharding& sharding, std::int64_t rank, std::int64_t first, std::int64_t last) {
  std::int64_t rows = 0;
  for (std::int64_t position = first; position < last; ++position) rows += dcp::owner(sharding, position) == rank ? 1 : 0;
  return rows;
}

TEST(Chunk, LengthsAreTheCountsOfRows) {
  each_budget([](std::int64_t world_size, std::int64_t block, std::int64_t interleave, std::int64_t tokens) {
    const dcp::Sharding sharding{block, world_size, interleave};
    for (std::int64_t start = 0; start <= 257; start += tokens) {
      const ChunkPlan plan = plan_chunk(geometry_of(world_size, interleave, start, tokens), blocks_of(block));
      ASSERT_EQ(plan.requests.size(), kLengths.size());
      std::int64_t rows = 0, context = 0;
      for (std::size_t request = 0; request < kLengths.size(); ++request) {
        const ChunkRequest& chunk = plan.requests[request];
        const std::int64_t end = std::min(start + tokens, kLengths[request]);
        ASSERT_EQ(chunk.tokens, std::max<std::int64_t>(end - start, 0));
        rows += chunk.padded;
        context += chunk.tokens;
        std::int64_t most = 0, all = 0;
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          const std::int64_t valid = plan.valid_rows(request, rank);
          ASSERT_EQ(valid, counted(sharding, rank, start, end)) << world_size << ' ' << block << ' ' << interleave;
          ASSERT_LE(valid, chunk.padded);
          if (chunk.tokens > 0) {
            ASSERT_EQ(chunk.local_start, counted(sharding, rank, 0, start));
          }
          most = std::max(most, valid);
          all += valid;
        }
        ASSERT_EQ(all, chunk.tokens);
        // Padded to whole runs, and no further: rank 0 is the first to own a row of a run.
        ASSERT_EQ(chunk.padded, (most + interleave - 1) / interleave * interleave);
      }
      ASSERT_EQ(plan.local_rows, rows);
      ASSERT_EQ(plan.context_rows, context);
    }
  });
}

TEST(Chunk, EveryTokenIsGatheredOnceOverChunksAndRanks) {
  each_budget([](std::int64_t world_size, std::int64_t block, std::int64_t interleave, std::int64_t tokens) {
    const dcp::Sharding sharding{block, world_size, interleave};
    std::vector<std::vector<int>> gathered;
    gathered.reserve(kLengths.size());
    for (const std::int64_t length : kLengths) gathered.emplace_back(static_cast<std::size_t>(length), 0);
    for (std::int64_t start = 0; start < 257; start += tokens) {
      const ChunkPlan plan = plan_chunk(geometry_of(world_size, interleave, start, tokens), blocks_of(block));
      for (std::int64_t rank = 0; rank < world_size; ++rank) {
        for (std::size_t request = 0; request < kLengths.size(); ++request) {
          const std::int64_t first = plan.requests[request].local_start;
          const std::int64_t last = first + plan.valid_rows(request, rank);
          for (std::int64_t position = 0; position < kLengths[request]; ++position) {
            const std::int64_t local = dcp::local_index(sharding, position);
            if (dcp::owner(sharding, position) == rank && local >= first && local < last) {
              ++gathered[request][static_cast<std::size_t>(position)];
            }
          }
        }
      }
    }
    for (std::size_t request = 0; request < kLengths.size(); ++request) {
      ASSERT_EQ(gathered[request], std::vector<int>(gathered[request].size(), 1))
          << world_size << ' ' << block << ' ' << interleave << ' ' << tokens;
    }
  });
}

TEST(Chunk, StartsInsideABlock) {
  const ChunkPlan plan = plan_chunk(geometry_of(4, 1, 64, 32), blocks_of(64));
  EXPECT_EQ(plan.requests[11].local_start, 16);  // 257 tokens
  EXPECT_EQ(plan.requests[11].padded, 8);
  EXPECT_EQ(plan.requests[8].padded, 8);  // 95: rank 3 has one less
  EXPECT_EQ(plan.valid_rows(8, 2), 8);
  EXPECT_EQ(plan.valid_rows(8, 3), 7);
  EXPECT_EQ(plan.requests[7].tokens, 0);  // 33
  EXPECT_EQ(plan.requests[7].padded, 0);
}

TEST(Chunk, NoTokensMeansAllThatFollow) {
  const ChunkPlan plan = plan_chunk(geometry_of(2, 1, 32, 0), blocks_of(16));
  EXPECT_EQ(plan.requests[11].tokens, 257 - 32);
  EXPECT_EQ(plan.requests[6].tokens, 0);
}

TEST(Chunk, AReplicatedGroupIsWholeOnEachRank) {
  CacheGroup group = blocks_of(16);
  group.slot_mapping = "replicated";
  const ChunkPlan plan = plan_chunk(geometry_of(4, 2, 32, 64), group);
  EXPECT_EQ(plan.requests[11].local_start, 32);
  EXPECT_EQ(plan.requests[11].padded, 64);
  for (std::int64_t rank = 0; rank < 4; ++rank) EXPECT_EQ(plan.valid_rows(11, rank), 64);
}

class ChunkInputs : public testing::Test {
 protected:
  Plan plan(const std::string& op, const std::string& rest) const {
    const Case value = case_from_json(ops_, json::parse(R"({"op":")" + op + R"(",)" + rest + "}", "c"), "c");
    return make_plan(ops_.at(value.op), value, std::int64_t{1} << 32);
  }
  template <class T>
  static std::vector<T> words(const Bytes& bytes) {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  const Ops ops_ = ops_of_source();
};

TEST_F(ChunkInputs, OffsetsAreSumsOfLengths) {
  const std::string geometry = R"("geometry":{"batch":[{"cached":20},{"uncached":2},{"cached":9},{"cached":6}],"tp":4,
    "dcp":{"world_size":4},"chunk":{"start":8,"tokens":8},"caches":{"mla":{"block_size":4}}})";
  const Plan gather = plan("gather_cache", geometry);
  const Inputs inputs = make_inputs(gather);
  EXPECT_THAT(words<std::int32_t>(inputs.get("local_starts", 0)), ElementsAre(2, 0, 2, 2));
  EXPECT_THAT(words<std::int32_t>(inputs.get("local_offsets", 0)), ElementsAre(0, 2, 2, 3, 3));
  EXPECT_THAT(gather.tensor("workspace").shape, ElementsAre(3, 576));
  const Plan reorg = plan("reorg_context", geometry + R"(,"params":{"width":5})");
  EXPECT_THAT(words<std::int32_t>(make_inputs(reorg).get("context_offsets", 0)), ElementsAre(0, 8, 8, 9, 9));
  EXPECT_THAT(reorg.tensor("gathered").shape, ElementsAre(4, 3, 5));
  EXPECT_THAT(reorg.tensor("context").shape, ElementsAre(9, 5));
}

TEST_F(ChunkInputs, GatheredRowsPastARanksOwnAreNaN) {
  // Nine tokens over four ranks: three rows each, of which ranks 1 to 3 own two.
  const Plan reorg = plan("reorg_context", R"("geometry":{"batch":[{"cached":9}],"tp":4,"dcp":{"world_size":4},
    "caches":{"mla":{"block_size":4}}},"params":{"width":7})");
  const auto codes = words<std::uint16_t>(make_inputs(reorg).get("gathered", 0));
  ASSERT_EQ(codes.size(), 4U * 3 * 7);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto value = std::bit_cast<float>(std::uint32_t{codes[i]} << 16);
    EXPECT_EQ(std::isnan(value), i / 21 > 0 && i % 21 / 7 == 2) << i;
  }
}

TEST_F(ChunkInputs, ACacheThatIsReadHoldsItsRecordsAndNaNs) {
  const Plan gather = plan("gather_cache", R"("geometry":{"batch":[{"cached":11}],"tp":2,"dcp":{"world_size":2},
    "caches":{"mla":{"block_size":4,"block_stride_padding":8}}},"params":{"kv_lora_rank":6,"qk_rope_head_dim":2})");
  const TensorPlan& cache = gather.tensor("mla_cache");
  EXPECT_EQ(cache.bytes(), cache.cache.blocks * (4 * 16 + 8));
  const Inputs inputs = make_inputs(gather);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Bytes bytes = inputs.get("mla_cache", rank);
    const auto& records = inputs.prefix.at("mla_cache")[static_cast<std::size_t>(rank)];
    EXPECT_EQ(records.size(), rank == 0 ? 6U : 5U);
    for (const auto& [slot, record] : records) {
      const auto at = bytes.begin() + cache.cache.address(slot, cache.cache.fields[0]);
      EXPECT_TRUE(std::equal(record.begin(), record.end(), at));
      std::fill_n(at, 16, std::byte{0xFF});
    }
    EXPECT_EQ(bytes, Bytes(bytes.size(), std::byte{0xFF}));
  }
}

TEST_F(ChunkInputs, RulesOfTheTwoOps) {
  const auto refusal = [&](const std::string& op, const std::string& rest) -> std::string {
    try {
      plan(op, rest);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string ranks = R"("tp":4,"dcp":{"world_size":4})";
  using testing::HasSubstr;
  EXPECT_THAT(refusal("gather_cache", R"("geometry":{"batch":[{"cached":9}]})"), HasSubstr("reads the mla cache"));
  EXPECT_THAT(refusal("gather_cache", R"("geometry":{"batch":[{"cached":9}],"caches":{"mla":{"slot_mapping":"none"}}})"),
              HasSubstr("reads the mla cache"));
  EXPECT_THAT(
      refusal("gather_cache", R"("geometry":{"batch":[{"cached":9}],"chunk":{"start":2},"caches":{"mla":{}},)" + ranks + "}"),
      HasSubstr("multiples of world_size * interleave"));
  const std::string replicated =
      R"("geometry":{"batch":[{"cached":9}],"caches":{"mla":{"slot_mapping":"replicated"}},)" + ranks + "}";
  EXPECT_EQ(refusal("gather_cache", replicated), "accepted");
  EXPECT_THAT(refusal("reorg_context", replicated), HasSubstr("world_size must be 1"));
  EXPECT_THAT(refusal("reorg_context", R"("geometry":{"batch":[{"cached":9}]})"), HasSubstr("caches.mla must be there"));
}

}  // namespace
}  // namespace dcpcheck
