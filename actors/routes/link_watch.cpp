#include "actors/routes/link_watch.hpp"

#include <algorithm>

namespace poseidon {

namespace {

constexpr auto timing_interval = std::chrono::milliseconds{1200}, soon = timing_interval / 8;
// The replanner believes a rate that comes four times in succession.
constexpr int enough_to_believe = 4;
constexpr double full_line = 0.5;
constexpr double same_rate = 1.25;

}  // namespace

link_watch::rate link_watch::limited(double mbit_s, bool probed) const {
  if (limit_mbit_s_ > 0) mbit_s = std::min(mbit_s, limit_mbit_s_ * static_cast<double>(peers_));
  return {mbit_s, probed};
}

link_watch::advice link_watch::heard(worker_id peer, const tcp_flow& flow, bool waits_for_a_rise,
                                     time_point now) {
  const auto read = meter_.heard(peer, flow, now);
  if (read && read->busy >= full_line) {
    next_at_ = now + timing_interval;
    return {limited(read->mbit_s, false), {}};
  }
  if (now < next_at_ || !waits_for_a_rise) return {};
  if (timing_ && timing_->mbit_s() <= 0) return {};  // under way
  timing_ = timing_ ? bandwidth_probe(peers_, timing_->mbit_s(), timing_->next_number())
                    : bandwidth_probe(peers_);
  return {{}, timing_->begin(now)};
}

link_watch::advice link_watch::answered(worker_id peer, std::uint32_t round, time_point now) {
  if (!timing_) return {};
  const auto before = timing_->expected_mbit_s();
  if (const auto next = timing_->heard(peer, round, now)) return {{}, next};
  const auto found = timing_->mbit_s();
  if (found <= 0) return {};
  meter_.forget();  // that was not training
  const bool same = std::max(before, found) <= same_rate * std::min(before, found);
  unlike_ = same ? 0 : unlike_ + 1;
  const auto wait = same ? timing_interval : soon * (1 << std::min(3, unlike_ / enough_to_believe));
  next_at_ = now + wait;
  return {limited(found, true), {}};
}

}  // namespace poseidon
