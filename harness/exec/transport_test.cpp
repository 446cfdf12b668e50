// What goes from seat to seat, and that every parcel arrives as it was.
#include "harness/exec/transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/core/error.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/nccl_library.hpp"

namespace dcpcheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Bytes bytes(int first, std::size_t count) {
  Bytes made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return made;
}

TEST(Routes, AreOfWhatLeavesItsSeat) {
  const Bytes a = bytes(1, 3), b = bytes(10, 2), none;
  // Ranks 0 and 2 sit on seat 0 of two, ranks 1 and 3 on seat 1.
  const std::vector<Parcel> parcels{{0, 1, &a}, {0, 2, &a}, {3, 2, &b}, {2, 3, &b}, {1, 0, &none}, {1, 1, &a}};
  const std::vector<Route> routes = routes_of(parcels, 2);
  ASSERT_THAT(routes, SizeIs(2));
  EXPECT_EQ(routes[0].from, 0);
  EXPECT_EQ(routes[0].to, 1);
  EXPECT_THAT(routes[0].parcels, ElementsAre(0, 3));
  EXPECT_EQ(routes[0].bytes, 5);
  EXPECT_EQ(routes[1].from, 1);
  EXPECT_THAT(routes[1].parcels, ElementsAre(2));
  EXPECT_THAT(routes_of(parcels, 1), IsEmpty());
}

TEST(Routes, BringEveryParcelToItsPlace) {
  const Bytes a = bytes(1, 3), b = bytes(10, 2), c = bytes(20, 5);
  const std::vector<Parcel> parcels{{0, 1, &a}, {1, 0, &b}, {0, 1, &c}};
  std::vector<Bytes> arrived(parcels.size());
  for (const Route& route : routes_of(parcels, 2)) deliver(route, parcels, message_on(route, parcels), arrived);
  EXPECT_THAT(arrived, ElementsAre(a, b, c));
  EXPECT_EQ(carry_through_host(parcels), arrived);
}

TEST(Routes, AMessageOfAnotherSizeIsRefused) {
  const Bytes a = bytes(1, 3);
  const std::vector<Parcel> parcels{{0, 1, &a}};
  std::vector<Bytes> arrived(1);
  const Route route = routes_of(parcels, 2).front();
  EXPECT_THROW(deliver(route, parcels, bytes(1, 2), arrived), HarnessError);
  EXPECT_THROW(deliver(route, parcels, bytes(1, 4), arrived), HarnessError);
}

TEST(Transport, TheHostsDevicesAreLabels) {
  Spread spread;
  spread.devices = {0, 0, 3};
  const std::unique_ptr<Backend> backend = make_host_backend(spread);
  EXPECT_THAT(backend->devices(), ElementsAre("0: the CPU", "0: the CPU", "3: the CPU"));
  EXPECT_EQ(backend->transport(), "host");
  EXPECT_EQ(make_host_backend()->transport(), "none");
  EXPECT_THAT(make_host_backend()->devices(), SizeIs(1));
}

TEST(Transport, NcclIsRefusedOnTheHost) {
  Spread spread;
  spread.transport = Spread::Transport::nccl;
  EXPECT_THROW(make_host_backend(spread), InputError);
}

TEST(Nccl, IsNotFoundWithAReason) {
  std::string why;
  EXPECT_EQ(NcclLibrary::find(&why, "libdcpcheck-has-no-such.so.2"), nullptr);
  EXPECT_THAT(why, HasSubstr("libdcpcheck-has-no-such.so.2"));
  // A library that is there, and is another one.
  EXPECT_EQ(NcclLibrary::find(&why, "libc.so.6"), nullptr);
  EXPECT_THAT(why, HasSubstr("libc.so.6 has no ncclGetVersion"));
}

TEST(RankPatience, IsANumberOfSeconds) {
  ASSERT_EQ(::setenv("DCPCHECK_RANK_SECONDS", "1.5", 1), 0);
  EXPECT_EQ(rank_patience(), std::chrono::milliseconds(1500));
  for (const char* bad : {"", "soon", "0", "-1", "1s", "1e9"}) {
    ASSERT_EQ(::setenv("DCPCHECK_RANK_SECONDS", bad, 1), 0);
    EXPECT_THROW(rank_patience(), InputError) << bad;
  }
  ASSERT_EQ(::unsetenv("DCPCHECK_RANK_SECONDS"), 0);
  EXPECT_EQ(rank_patience(), std::chrono::seconds(120));
}

}  // namespace
}  // namespace dcpcheck
