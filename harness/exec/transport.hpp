// How bytes get from one rank of a case to another: ranks sit on devices, and what goes to another device is carried there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/core/inputs.hpp"
#include "harness/core/verdict.hpp"

namespace dcpcheck {

// Which devices the ranks of a case are spread over, and how what one of them holds gets to another.
struct Spread {
  enum class Transport : std::uint8_t {
    automatic,  // NCCL where each seat is a GPU of its own and libnccl.so.2 is found, else the host
    host,
    nccl,
  };
  // Rank r sits on the (r mod size)th; a device may be there several times. Empty: the first device alone.
  std::vector<int> devices;
  bool all = false;  // in place of `devices`: every device that there is
  Transport transport = Transport::automatic;
};

// Bytes on their way from one rank of a case to another.
struct Parcel {
  std::int64_t from = 0, to = 0;
  const Bytes* bytes = nullptr;
};

// The parcels from one seat to another one, sent one after the other as one message.
struct Route {
  std::int64_t from = 0, to = 0;  // seats
  std::vector<std::size_t> parcels;
  std::int64_t bytes = 0;
};

// By from, then to. What stays on its seat, and what has no bytes, is on none.
std::vector<Route> routes_of(std::span<const Parcel> parcels, std::int64_t seats);

// The message that goes along the route.
Bytes message_on(const Route& route, std::span<const Parcel> parcels);

// Puts the parts of the message that came along the route in the places of their parcels.
void deliver(const Route& route, std::span<const Parcel> parcels, std::span<const std::byte> message,
             std::vector<Bytes>& arrived);

// What arrives through the host: every parcel, as it was given.
std::vector<Bytes> carry_through_host(std::span<const Parcel> parcels);

// A rank is gone, or does not answer: its case can only end. what() is one sentence that names it.
struct RankLost : std::runtime_error {
  RankLost(Status how, const std::string& why) : std::runtime_error(why), status(how) {}
  Status status;  // crash, hang
};

// How long a rank may take to do what it was asked to, and for a rank that ended to be there again:
// DCPCHECK_RANK_SECONDS, or 120. Throws InputError where that is no number of seconds.
std::chrono::milliseconds rank_patience();

}  // namespace dcpcheck
