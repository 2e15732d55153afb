#include "actors/link_probe.hpp"

#include <algorithm>
#include <memory>
#include <span>

namespace poseidon {

namespace {

// 64 KiB take 5 ms at 100 Mbit/s; 16 MiB take 13 ms at 10 Gbit/s. The whole stays below a fifth of a second
// on links that are worth a choice.
constexpr std::size_t first_bytes = std::size_t{64} << 10, most_bytes = std::size_t{16} << 20;
constexpr double long_enough_s = 0.02, expected_s = 0.025;

}  // namespace

link_probe::round link_probe::begin(time_point now) {
  began_ = now;
  now_ = {first_number_, 1};
  return now_;
}

std::optional<link_probe::round> link_probe::heard(worker_id peer, std::uint32_t number,
                                                   time_point now) {
  if (number != now_.number || mbit_s_ > 0) return std::nullopt;
  heard_.insert(peer);
  if (heard_.size() < peers_) return std::nullopt;
  heard_.clear();
  const auto took = std::chrono::duration<double>(now - began_).count();
  const bool trip = now_.number == first_number_;
  if (trip) trip_s_ = took;
  if (!trip && (took - trip_s_ >= long_enough_s || now_.bytes >= most_bytes)) {
    const auto bits = 8.0 * static_cast<double>(now_.bytes) * static_cast<double>(peers_);
    mbit_s_ = bits / std::max(took - trip_s_, 1e-6) / 1e6;
    return std::nullopt;
  }
  const auto expected = static_cast<std::size_t>(expected_mbit_s_ * 1e6 / 8 * expected_s) / peers_;
  now_ = {now_.number + 1, std::clamp(trip ? expected : 4 * now_.bytes, first_bytes, most_bytes)};
  began_ = now;
  return now_;
}

std::vector<send_frame> frames_of(const link_probe::round& r, std::uint64_t priority) {
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
