#include "actors/routes/send_rate_meter.hpp"

#include <algorithm>

namespace poseidon {

namespace {

using namespace std::chrono_literals;

constexpr auto shortest = 200ms, longest = 1000ms;
// With less, round trips and the granularity of the kernel's counters would distort the rate.
constexpr std::uint64_t enough_bytes = std::uint64_t{64} << 10, enough_busy_us = 20000;
constexpr double most_hindered = 0.25;  // fraction of the busy time
// Fraction of the busy time in which the sender had no core. What a busy machine sends says nothing about the line.
constexpr double most_waited = 0.1;

}  // namespace

void send_rate_meter::forget() {
  since_.reset();
  links_.clear();
}

void send_rate_meter::begin(time_point now) {
  since_ = now;
  for (auto& [peer, l] : links_) {
    l.first = l.last;
    l.heard = false;
  }
}

std::optional<send_rate_meter::reading> send_rate_meter::heard(worker_id peer, const tcp_flow& flow,
                                                               time_point now) {
  auto [it, fresh] = links_.try_emplace(peer, link{flow, flow});
  it->second.last = flow;
  if (!since_ || fresh) {
    begin(now);
    return std::nullopt;
  }
  it->second.heard = now - *since_ >= shortest;
  const bool all = links_.size() == peers_ && std::all_of(links_.begin(), links_.end(),
                                                          [](auto& l) { return l.second.heard; });
  if (!all) return std::nullopt;
  std::uint64_t bytes = 0, busy = 0, hindered = 0, waited = 0;
  for (const auto& [of, l] : links_) {
    bytes += l.last.acked_bytes - l.first.acked_bytes;
    if (const auto own = l.last.busy_us - l.first.busy_us; own > busy) {
      busy = own;
      hindered = l.last.hindered_us - l.first.hindered_us;
    }
    waited = std::max(waited, l.last.waited_us - l.first.waited_us);
  }
  const bool enough = bytes >= enough_bytes * peers_ && busy >= enough_busy_us;
  if (!enough && now - *since_ < longest) return std::nullopt;
  const auto window = now - *since_;
  begin(now);
  const auto busy_us = static_cast<double>(busy);
  if (!enough || static_cast<double>(hindered) > most_hindered * busy_us ||
      static_cast<double>(waited) > most_waited * busy_us)
    return std::nullopt;
  return reading{8.0 * static_cast<double>(bytes) / busy_us,  // bits in a microsecond
                 busy_us / std::chrono::duration<double, std::micro>(window).count()};
}

}  // namespace poseidon
