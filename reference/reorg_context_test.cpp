#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/chunk.hpp"
#include "reference/test_case.hpp"

namespace dcpcheck::reference::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint16_t> context_of(const Worked& worked) {
  const Admissible& rows = worked.expected.find("context")->second;
  EXPECT_TRUE(rows.exact);
  std::vector<std::uint16_t> codes(static_cast<std::size_t>(rows.rows * rows.columns));
  if (!codes.empty()) std::memcpy(codes.data(), rows.codes.data(), rows.codes.size());
  return codes;
}

// Puts `tags`, a number for each row of each rank's piece, in place of the gathered rows; the case has width 1.
void tag_rows(Worked& worked, const std::vector<std::uint16_t>& tags) {
  Bytes& bytes = worked.inputs.shared.find("gathered")->second;
  ASSERT_EQ(bytes.size(), tags.size() * 2);
  std::memcpy(bytes.data(), tags.data(), bytes.size());
  worked.refresh();
}

TEST(ReorgContext, ByHand) {
  const std::string geometry =
      R"({"op": "reorg_context", "geometry": {"batch": [{"cached": 8}], "tp": 4, "dcp": {"world_size": 4},
    "caches": {"mla": {"block_size": 4}}}, "params": {"width": 1})";
  // Each rank has two rows: rank 0 positions 0 and 4, rank 1 1 and 5, and so on.
  Worked by_position(geometry + "}");
  tag_rows(by_position, {0, 4, 1, 5, 2, 6, 3, 7});
  EXPECT_THAT(context_of(by_position), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  Worked by_rank(geometry + R"(, "contract": {"order": "rank_major"}})");
  tag_rows(by_rank, {0, 4, 1, 5, 2, 6, 3, 7});
  EXPECT_THAT(context_of(by_rank), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
}

TEST(ReorgContext, PaddedRowsAreLeftOut) {
  // Two requests of 5 and 3 tokens in runs of 2 over two ranks: padded to 4 and 2 rows; 99 is what nobody wrote.
  const std::string geometry = R"({"op": "reorg_context", "geometry": {"batch": [{"cached": 5}, {}, {"cached": 3}], "tp": 2,
    "dcp": {"world_size": 2, "interleave": 2}, "caches": {"mla": {"block_size": 4}}}, "params": {"width": 1})";
  const std::vector<std::uint16_t> pieces = {0, 1, 4, 99, 10, 11, 2, 3, 99, 99, 12, 99};
  Worked by_position(geometry + "}");
  tag_rows(by_position, pieces);
  EXPECT_THAT(context_of(by_position), ElementsAre(0, 1, 2, 3, 4, 10, 11, 12));
  Worked by_rank(geometry + R"(, "contract": {"order": "rank_major"}})");
  tag_rows(by_rank, pieces);
  EXPECT_THAT(context_of(by_rank), ElementsAre(0, 1, 4, 2, 3, 10, 11, 12));
}

TEST(ReorgContext, RowsOfAnyWorldAreWhereTheirPositionsSay) {
  for (const std::int64_t world : {1, 2, 3, 8}) {
    for (const std::int64_t run : {1, 2, 16}) {
      for (const std::string order : {"position", "rank_major"}) {
        const std::int64_t start = 2 * world * run;
        Worked worked(
            R"({"op": "reorg_context", "geometry": {"batch": [{"cached": 300}, {"cached": 5}, {"cached": 121}], "tp": 24,
          "dcp": {"world_size": )" +
            std::to_string(world) + R"(, "interleave": )" + std::to_string(run) + R"(}, "chunk": {"start": )" +
            std::to_string(start) + R"(}, "caches": {"mla": {"block_size": 16}}}, "params": {"width": 1},
          "contract": {"order": ")" +
            order + R"("}})");
        const Geometry& geometry = worked.plan.value.geometry;
        const ChunkPlan plan = plan_chunk(geometry, geometry.caches.at("mla"));
        // A row's tag is its request and position, and 65535 where the rank owns none.
        std::vector<std::uint16_t> tags, right;
        for (std::int64_t rank = 0; rank < world; ++rank) {
          for (std::size_t request = 0; request < 3; ++request) {
            const ChunkRequest& chunk = plan.requests[request];
            std::vector<std::uint16_t> piece;
            for (std::int64_t position = chunk.start; position < chunk.start + chunk.tokens; ++position) {
              if (dcp::owner(plan.sharding, position) != rank) continue;
              piece.push_back(static_cast<std::uint16_t>(1000 * request + static_cast<std::size_t>(position)));
            }
            piece.resize(static_cast<std::size_t>(chunk.padded), 65535);
            tags.insert(tags.end(), piece.begin(), piece.end());
          }
        }
        for (std::size_t request = 0; request < 3; ++request) {
          const ChunkRequest& chunk = plan.requests[request];
          for (std::int64_t rank = 0; rank < (order == "position" ? 1 : world); ++rank) {
            for (std::int64_t position = chunk.start; position < chunk.start + chunk.tokens; ++position) {
              if (order == "position" || dcp::owner(plan.sharding, position) == rank)
                right.push_back(static_cast<std::uint16_t>(1000 * request + static_cast<std::size_t>(position)));
            }
          }
        }
        tag_rows(worked, tags);
        ASSERT_EQ(context_of(worked), right) << world << ' ' << run << ' ' << order;
      }
    }
  }
}

}  // namespace
}  // namespace dcpcheck::reference::testing
