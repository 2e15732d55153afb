#include "apps/terminal/run_meter.hpp"

#include <algorithm>

namespace poseidon::app {

namespace {

constexpr double patience_s = 2, patience_iterations = 3;

/// Another node that comes to lead counts anew.
double grown(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

void run_meter::stepped(const progress::step& s, time_point now) {
  if (!shown_) shown_ = moment_at(now);
  if (begun() && s.done > newest_.done) {
    pauses_.computed(now);
    if (!first_iteration_) first_iteration_ = moment_at(now);
  }
  iterations_.at(static_cast<double>(s.done), now);
  images_.at(static_cast<double>(s.images), now);
  out_.at(static_cast<double>(s.bytes_out), now);
  in_.at(static_cast<double>(s.bytes_in), now);
  newest_ = s;
}

void run_meter::pause_ends(time_point now) {
  if (!pauses_.end(now)) return;
  for (auto* p : {&iterations_, &images_, &out_, &in_}) p->stood_aside(pauses_.since(), now);
}

run_meter::interval run_meter::trained(const progress::iteration& i, time_point now) {
  interval out;
  const auto since = shown_.value_or(moment_at(now));
  shown_ = moment_at(now);
  const auto took = seconds((now - since.when) - (shown_->paused - since.paused));
  // Iterations that are trained again, after a loss, add nothing.
  if (took > 0 && i.images >= images_shown_)
    images_s_ = static_cast<double>(i.images - images_shown_) / took;
  out.images_s = images_s_;
  if (nodes_ > 1) {
    const auto communication = grown(i.communication_ns, communication_shown_);
    const auto exposed = grown(i.exposed_ns, exposed_shown_);
    if (communication > 0) out.hidden = std::max(0.0, 1 - exposed / communication);
    if (took > 0)
      out.net = traffic{static_cast<double>(newest_.bytes_out - out_shown_) / took,
                        static_cast<double>(newest_.bytes_in - in_shown_) / took};
  }
  out.left_s = left_s(now);
  out.tests_left_s = tests_left_s(now);
  images_shown_ = i.images;
  communication_shown_ = i.communication_ns;
  exposed_shown_ = i.exposed_ns;
  out_shown_ = newest_.bytes_out;
  in_shown_ = newest_.bytes_in;
  return out;
}

std::optional<double> run_meter::left_s(time_point now) const {
  if (newest_.done >= newest_.total) return std::nullopt;
  return iterations_.left_s(static_cast<double>(newest_.total), now);
}

std::optional<double> run_meter::tests_left_s(time_point now) const {
  const auto left = left_s(now);
  if (!left || !first_iteration_) return std::nullopt;
  const auto all = seconds(now - first_iteration_->when);
  const auto aside = seconds(pauses_.paused(now) - first_iteration_->paused);
  if (aside <= 0 || aside >= all) return std::nullopt;
  return *left * aside / (all - aside);
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
