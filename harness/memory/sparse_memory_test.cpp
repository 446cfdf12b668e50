#include "harness/memory/sparse_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace dcpcheck {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Two TiB, with a window of two pages at 5 GiB and one below its start.
ArenaBuffer buffer() {
  ArenaBuffer buffer;
  buffer.name = "cache";
  buffer.bytes = 2048 * kGiB;
  buffer.before = 4 * kGiB;
  buffer.after = kWindowPage;
  buffer.windows = {{-kWindowPage, 0, 0}, {5 * kGiB, 5 * kGiB + 2 * kWindowPage, kWindowPage}};
  return buffer;
}

TEST(SparseMemory, WindowsComeAndGoAndAreNoStrayPages) {
  const ArenaBuffer sparse = buffer();
  SparseMemory memory(sparse);
  EXPECT_TRUE(memory.touched().empty());
  std::vector<std::byte> image(3 * kWindowPage, std::byte{0x85});
  image[0] = std::byte{1};
  image.back() = std::byte{2};
  memory.bring(image);
  EXPECT_EQ(memory.data()[-kWindowPage], std::byte{1});
  EXPECT_EQ(memory.data()[5 * kGiB + 2 * kWindowPage - 1], std::byte{2});
  memory.data()[5 * kGiB] = std::byte{3};
  std::vector<std::byte> after(image.size());
  memory.fetch(after);
  image[kWindowPage] = std::byte{3};
  EXPECT_EQ(after, image);
  EXPECT_TRUE(memory.touched().empty());
}

TEST(SparseMemory, PagesOutsideTheWindowsTellWhatWasTouched) {
  const ArenaBuffer sparse = buffer();
  SparseMemory memory(sparse);
  memory.bring(std::vector<std::byte>(3 * kWindowPage));
  // Far below, right behind a window, and far above; a page that is read only; the last byte there is.
  std::memset(memory.data() - 3 * kGiB - 4, 0x11, 8);
  memory.data()[5 * kGiB + 2 * kWindowPage] = std::byte{0x22};
  const std::byte read = static_cast<const volatile std::byte*>(memory.data())[1500 * kGiB + 5];
  memory.data()[2048 * kGiB + kWindowPage - 1] = std::byte{0x33};
  const std::vector<Touched> touched = memory.touched();
  ASSERT_EQ(touched.size(), 5U) << "the first lies on two pages";
  EXPECT_EQ(touched[0].byte, -3 * kGiB - 4);
  EXPECT_EQ(touched[0].bytes, 4);
  EXPECT_EQ(touched[0].value, std::byte{0x11});
  EXPECT_EQ(touched[1].byte, -3 * kGiB);
  EXPECT_EQ(touched[2].byte, 5 * kGiB + 2 * kWindowPage);
  EXPECT_EQ(touched[2].bytes, 1);
  EXPECT_EQ(touched[3].byte, 1500 * kGiB);
  EXPECT_EQ(touched[3].bytes, 0) << "read, or written what it held";
  EXPECT_EQ(read, std::byte{});
  EXPECT_EQ(touched[4].byte, 2048 * kGiB + kWindowPage - 1);
  EXPECT_EQ(touched[4].value, std::byte{0x33});
  for (const Touched& page : touched) EXPECT_EQ(page.buffer, "cache");
}

}  // namespace
}  // namespace dcpcheck
