#include "actors/routes/bandwidth_probe.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace poseidon {

namespace {

// 64 KiB take 5 ms at 100 Mbit/s; 16 MiB take 13 ms at 10 Gbit/s. From 10 Mbit/s on all rounds together take less than a
// third of a second.
constexpr std::size_t first_bytes = std::size_t{64} << 10, most_bytes = std::size_t{16} << 20;
constexpr double long_enough_s = 0.02, expected_s = 0.025;
// Least fraction of a round that is not the round trip: with less, other traffic has held up the trips.
constexpr double least_load = 0.1;

}  // namespace

bandwidth_probe::round bandwidth_probe::begin(time_point now) {
  began_ = now;
  now_ = {first_number_, 1};
  return now_;
}

std::optional<bandwidth_probe::round> bandwidth_probe::heard(worker_id peer, std::uint32_t number,
                                                             time_point now) {
  if (number != now_.number || mbit_s_ > 0) return std::nullopt;
  heard_.insert(peer);
  if (heard_.size() < peers_) return std::nullopt;
  heard_.clear();
  const auto took = std::chrono::duration<double>(now - began_).count();
  const bool trip = now_.bytes == 1;
  const bool counts = trip || took - trip_s_ >= long_enough_s || now_.bytes >= most_bytes;
  const auto first = std::exchange(first_s_, std::nullopt);
  if (counts && first && !trip) {
    const auto shortest = std::min(*first, took);
    const auto bits = 8.0 * static_cast<double>(now_.bytes) * static_cast<double>(peers_);
    mbit_s_ = bits / std::max(shortest - trip_s_, least_load * shortest) / 1e6;
    return std::nullopt;
  }
  if (counts && !first) {
    first_s_ = took;
  } else if (trip) {
    trip_s_ = std::min(*first, took);
    const auto expected =
        static_cast<std::size_t>(expected_mbit_s_ * 1e6 / 8 * expected_s) / peers_;
    now_.bytes = std::clamp(expected, first_bytes, most_bytes);
  } else {
    now_.bytes = std::min(4 * now_.bytes, most_bytes);
  }
  ++now_.number;
  began_ = now;
  return now_;
}

std::vector<send_frame> frames_of(const bandwidth_probe::round& r, std::uint64_t priority) {
  static constexpr std::size_t largest = std::size_t{1} << 20;
  const auto bytes = std::make_shared<std::vector<std::byte>>(std::min(largest, r.bytes));
  std::vector<send_frame> out;
  for (std::size_t sent = 0; sent < r.bytes; sent += largest) {
    const auto part = std::span<const std::byte>(*bytes).first(std::min(largest, r.bytes - sent));
    out.push_back(
        {frames::probe{r.number, sent + part.size() == r.bytes}, {bytes, part}, priority});
  }
  return out;
}

}  // namespace poseidon
