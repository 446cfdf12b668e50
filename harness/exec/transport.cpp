#include "harness/exec/transport.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {

std::vector<Route> routes_of(std::span<const Parcel> parcels, std::int64_t seats) {
  std::map<std::pair<std::int64_t, std::int64_t>, Route> routes;
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    const std::int64_t from = parcels[i].from % seats, to = parcels[i].to % seats;
    if (from == to || parcels[i].bytes->empty()) continue;
    Route& route = routes[{from, to}];
    route.from = from;
    route.to = to;
    route.parcels.push_back(i);
    route.bytes += static_cast<std::int64_t>(parcels[i].bytes->size());
  }
  std::vector<Route> sorted;
  for (auto& [ends, route] : routes) sorted.push_back(std::move(route));
  return sorted;
}

Bytes message_on(const Route& route, std::span<const Parcel> parcels) {
  Bytes message;
  message.reserve(static_cast<std::size_t>(route.bytes));
  for (const std::size_t i : route.parcels) message.insert(message.end(), parcels[i].bytes->begin(), parcels[i].bytes->end());
  return message;
}

void deliver(const Route& route, std::span<const Parcel> parcels, std::span<const std::byte> message,
             std::vector<Bytes>& arrived) {
  if (static_cast<std::int64_t>(message.size()) != route.bytes)
    throw HarnessError("what came from seat " + std::to_string(route.from) + " to seat " + std::to_string(route.to) + " is " +
                       std::to_string(message.size()) + " bytes, not " + std::to_string(route.bytes));
  for (const std::size_t i : route.parcels) {
    const std::size_t bytes = parcels[i].bytes->size();
    arrived[i].assign(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes));
    message = message.subspan(bytes);
  }
}

std::vector<Bytes> carry_through_host(std::span<const Parcel> parcels) {
  std::vector<Bytes> arrived;
  arrived.reserve(parcels.size());
  for (const Parcel& parcel : parcels) arrived.push_back(*parcel.bytes);
  return arrived;
}

std::chrono::milliseconds rank_patience() {
  constexpr std::chrono::milliseconds usual{120'000};
  const char* const text = std::getenv("DCPCHECK_RANK_SECONDS");
  if (text == nullptr) return usual;
  double seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= 0.001) || !(seconds <= 1e6))
    throw InputError("DCPCHECK_RANK_SECONDS is '" + std::string(text) +
                     "', but it is a number of seconds from 0.001 to 1000000");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace dcpcheck
