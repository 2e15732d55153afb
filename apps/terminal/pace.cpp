#include "apps/terminal/pace.hpp"

#include <algorithm>

namespace poseidon::app {

namespace {

// Readings that are closer together count as one, so that a net of a thousand iterations a second costs little.
constexpr std::chrono::milliseconds apart{100};
constexpr std::size_t least_kept = 4;

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

void pace::at(double done, time_point now) {
  if (readings_.size() >= 2 && now - readings_[readings_.size() - 2].when < apart)
    readings_.back() = {now, done};
  else
    readings_.push_back({now, done});
  while (readings_.size() > least_kept && now - readings_[1].when > window_) readings_.pop_front();
}

void pace::stood_aside(time_point since, time_point until) {
  for (auto& r : readings_) r.when += std::max(until - std::max(r.when, since), until - until);
}

std::optional<double> pace::per_s() const {
  if (readings_.size() < 2) return std::nullopt;
  const auto& first = readings_.front();
  const auto& last = readings_.back();
  const auto took = seconds(last.when - first.when);
  if (took <= 0) return std::nullopt;
  return (last.done - first.done) / took;
}

std::optional<double> pace::left_s(double total, time_point now) const {
  const auto rate = per_s();
  if (!rate || *rate <= 0) return std::nullopt;
  const auto remaining = std::max(total - readings_.back().done, 0.0);
  return std::max({(remaining - 1) / *rate, remaining / *rate - silent_s(now), 0.0});
}

double pace::silent_s(time_point now) const {
  return readings_.empty() ? 0 : std::max(seconds(now - readings_.back().when), 0.0);
}

double pace::usual_s() const {
  const auto rate = per_s();
  return rate && *rate > 0 ? 1 / *rate : 0;
}

}  // namespace poseidon::app
