#include "actors/telemetry/run_history.hpp"

#include "actors/core/trace.hpp"

#include <algorithm>

namespace poseidon {

namespace {

constexpr std::size_t kept_lines = 500, kept_views = 500;
constexpr std::size_t kept_points = 20000, kept_tests = 4000, kept_traffic = 4000;
constexpr std::size_t kept_values = 1'000'000, least_points = 500;  // of nets with many outputs
constexpr double shortest_rate_s = 0.25;  // reports of several nodes come in bursts

}  // namespace

run_history::run_history(std::shared_ptr<progress> next, std::size_t nodes)
    : next_(std::move(next)),
      nodes_(nodes),
      began_ns_(now_ns()),
      names_(std::make_shared<std::vector<std::string>>()),
      points_(kept_points),
      tests_(kept_tests) {}

double run_history::seconds() const {
  return static_cast<double>(now_ns() - began_ns_) / 1e9;
}

void run_history::trained(const iteration& i, const std::vector<output_value>& outputs) {
  {
    const std::lock_guard lock(mutex_);
    last_clock_ = i.last_clock;
    if (!first_) name_outputs(outputs);
    point p{.clock = i.clock,
            .seconds = seconds(),
            .loss = i.loss,
            .learning_rate = i.learning_rate,
            .outputs = i.outputs};
    newest_ = {i.clock, p.seconds - pauses_.paused_s()};
    if (!first_) first_ = newest_;
    if (images_at_s_ < 0 || newest_.trained_s - images_at_s_ >= shortest_rate_s) {
      // Iterations that are trained again, after a loss, add nothing.
      if (images_at_s_ >= 0 && i.images >= images_)
        images_s_ = static_cast<double>(i.images - images_) / (newest_.trained_s - images_at_s_);
      images_at_s_ = newest_.trained_s;
      images_ = i.images;
    }
    p.images_s = images_s_;
    if (nodes_ > 1 && i.communication_ns > communication_ns_ && i.exposed_ns >= exposed_ns_)
      p.hidden = std::clamp(1 - static_cast<double>(i.exposed_ns - exposed_ns_) /
                                    static_cast<double>(i.communication_ns - communication_ns_),
                            0.0, 1.0);
    communication_ns_ = i.communication_ns;
    exposed_ns_ = i.exposed_ns;
    points_.push(points_.seen(), std::move(p));
  }
  if (next_) next_->trained(i, outputs);
}

void run_history::name_outputs(const std::vector<output_value>& outputs) {
  std::vector<std::string> names;
  for (const auto& o : outputs) names.push_back(o.name);
  points_.at_most(std::clamp(kept_values / (names.size() + 1), least_points, kept_points));
  names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

void run_history::tested(std::size_t test_net, std::uint64_t clock,
                         const std::vector<double>& means,
                         const std::vector<output_value>& outputs) {
  {
    const std::lock_guard lock(mutex_);
    test t{test_net, clock, seconds(), means, {}};
    for (const auto& o : outputs) t.names.push_back(o.name);
    newest_tests_[test_net] = t;
    const auto same_phase = tests_.newest() != nullptr && tests_.newest()->clock == clock;
    tests_.push(same_phase ? test_phases_ - 1 : test_phases_++, std::move(t));
  }
  if (next_) next_->tested(test_net, clock, means, outputs);
}

void run_history::snapshot(std::uint64_t clock, const std::string& path, const std::string& error) {
  add_line(error.empty() ? "snapshot " + path
                         : "snapshot of iteration " + std::to_string(clock) + " failed: " + error,
           !error.empty());
  if (next_) next_->snapshot(clock, path, error);
}

void run_history::viewed(const view& v) {
  {
    const std::lock_guard lock(mutex_);
    nodes_ = v.seats.size();
    views_.push_back({v.first_clock, seconds(), nodes_, v.changed});
    ++views_seen_;
    if (views_.size() > kept_views) views_.pop_front();
  }
  add_line(describe(v), false);
  if (next_) next_->viewed(v);
}

void run_history::promised(const promise& p) {
  add_line(p.text, false);
  if (next_) next_->promised(p);
}

void run_history::note(const std::string& text) {
  add_line(text, false);
  if (next_) next_->note(text);
}

void run_history::warning(const std::string& text) {
  add_line(text, true);
  if (next_) next_->warning(text);
}

void run_history::stepped(const step& s) {
  pauses_.computed();
  if (next_) next_->stepped(s);
}

std::shared_ptr<void> run_history::working(long_task task) {
  auto shown = next_ ? next_->working(task) : nullptr;
  return task.training_pauses ? pauses_.begin(std::move(task), std::move(shown)) : shown;
}

void run_history::detail(const std::string& text) {
  if (next_) next_->detail(text);
}

void run_history::carried(std::uint64_t bytes_out, std::uint64_t bytes_in) {
  const std::lock_guard lock(mutex_);
  const auto now = seconds();
  if (!traffic_.empty() && now - traffic_.back().seconds < traffic_step_s_) return;
  traffic_.push_back({now, bytes_out, bytes_in});
  if (traffic_.size() < kept_traffic) return;
  for (std::size_t i = 0; 2 * i < traffic_.size(); ++i) traffic_[i] = traffic_[2 * i];
  traffic_.resize(traffic_.size() / 2);
  traffic_step_s_ *= 2;
}

run_history::values run_history::newest_values() const {
  const std::lock_guard lock(mutex_);
  const auto* p = points_.newest();
  return {p == nullptr ? std::nullopt : std::optional(*p), names_, newest_tests_};
}

std::optional<run_history::point> run_history::newest() const {
  const std::lock_guard lock(mutex_);
  const auto* p = points_.newest();
  return p == nullptr ? std::nullopt : std::optional(*p);
}

void run_history::ended(const std::string& error) {
  add_line(error.empty() ? "the run has ended" : "the run has ended: " + error, !error.empty());
}

void run_history::add_line(std::string text, bool bad) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(
      std::make_shared<const line>(line{lines_seen_++, seconds(), std::move(text), bad}));
  if (lines_.size() > kept_lines) lines_.pop_front();
}

run_history::copy run_history::now(const place& from) const {
  const std::lock_guard lock(mutex_);
  copy c;
  c.last_clock = last_clock_;
  c.names = names_;
  c.points = points_.now();
  c.tests = tests_.now();
  const auto new_lines = std::min<std::uint64_t>(lines_seen_ - from.lines, lines_.size());
  c.lines.assign(lines_.end() - static_cast<std::ptrdiff_t>(new_lines), lines_.end());
  const auto new_views = std::min<std::uint64_t>(views_seen_ - from.views, views_.size());
  c.views.assign(views_.end() - static_cast<std::ptrdiff_t>(new_views), views_.end());
  const auto is_read = [&](const traffic& t) { return t.seconds <= from.traffic_s; };
  c.traffics.assign(std::partition_point(traffic_.begin(), traffic_.end(), is_read),
                    traffic_.end());
  if (first_ && newest_.clock > first_->clock && last_clock_ > newest_.clock)
    c.left_s = static_cast<double>(last_clock_ - newest_.clock - 1) *
               (newest_.trained_s - first_->trained_s) /
               static_cast<double>(newest_.clock - first_->clock);
  c.end = {points_.seen(), tests_.seen(), lines_seen_, views_seen_,
           traffic_.empty() ? -1 : traffic_.back().seconds};
  return c;
}

}  // namespace poseidon
