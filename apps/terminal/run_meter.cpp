#include "apps/terminal/run_meter.hpp"

#include <algorithm>

namespace poseidon::app {

namespace {

constexpr double patience_s = 2, patience_iterations = 3;

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

void run_meter::stepped(const progress::step& s, time_point now) {
  if (!shown_) shown_ = now;
  if (begun() && s.done > newest_.done && !first_iteration_) first_iteration_ = now;
  iterations_.at(static_cast<double>(s.done), now);
  images_.at(static_cast<double>(s.images), now);
  out_.at(static_cast<double>(s.bytes_out), now);
  in_.at(static_cast<double>(s.bytes_in), now);
  newest_ = s;
}

void run_meter::stood_aside(time_point since, time_point until) {
  for (auto* p : {&iterations_, &images_, &out_, &in_}) p->stood_aside(since, until);
  if (first_iteration_ && until > *first_iteration_)
    aside_ += until - std::max(since, *first_iteration_);
}

run_meter::interval run_meter::trained(const progress::iteration& i, time_point now) {
  interval out;
  const auto took = seconds(now - shown_.value_or(now));
  if (took > 0) out.images_s = static_cast<double>(i.images - images_shown_) / took;
  if (nodes_ > 1) {
    const auto communication = static_cast<double>(i.communication_ns - communication_shown_);
    const auto exposed = static_cast<double>(i.exposed_ns - exposed_shown_);
    if (communication > 0) out.hidden = std::max(0.0, 1 - exposed / communication);
    if (took > 0)
      out.net = traffic{static_cast<double>(newest_.bytes_out - out_shown_) / took,
                        static_cast<double>(newest_.bytes_in - in_shown_) / took};
  }
  out.left_s = left_s(now);
  shown_ = now;
  images_shown_ = i.images;
  communication_shown_ = i.communication_ns;
  exposed_shown_ = i.exposed_ns;
  out_shown_ = newest_.bytes_out;
  in_shown_ = newest_.bytes_in;
  return out;
}

/// Assumes that test phases keep their share of the time.
std::optional<double> run_meter::left_s(time_point now) const {
  if (newest_.done >= newest_.total) return std::nullopt;
  const auto left = iterations_.left_s(static_cast<double>(newest_.total), now);
  if (!left || !first_iteration_) return left;
  const auto all = seconds(now - *first_iteration_), aside = seconds(aside_);
  return all > aside && aside > 0 ? *left * all / (all - aside) : *left;
}

std::optional<run_meter::traffic> run_meter::net() const {
  const auto out = out_.per_s(), in = in_.per_s();
  if (nodes_ < 2 || !out || !in) return std::nullopt;
  return traffic{*out, *in};
}

std::optional<double> run_meter::waiting_s(time_point now) const {
  if (!begun() || newest_.done >= newest_.total) return std::nullopt;
  const auto silent = iterations_.silent_s(now);
  if (silent < std::max(patience_s, patience_iterations * iterations_.usual_s()))
    return std::nullopt;
  return silent;
}

}  // namespace poseidon::app
