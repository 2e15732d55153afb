#include "actors/telemetry/run_history.hpp"

#include "actors/core/trace.hpp"
#include "models/json.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

namespace {

constexpr std::size_t kept_lines = 500;
constexpr std::size_t kept_points = 20000, kept_tests = 4000, kept_traffic = 4000;
constexpr double shortest_rate_s = 0.25;  // reports of several nodes come in bursts

}  // namespace

run_history::run_history(std::shared_ptr<progress> next, std::size_t nodes)
    : next_(std::move(next)),
      nodes_(nodes),
      began_ns_(now_ns()),
      points_(kept_points),
      tests_(kept_tests) {}

double run_history::seconds() const {
  return static_cast<double>(now_ns() - began_ns_) / 1e9;
}

void run_history::trained(const iteration& i, const std::vector<output_value>& outputs) {
  {
    const std::lock_guard lock(mutex_);
    last_clock_ = i.last_clock;
    if (names_.empty())
      for (const auto& o : outputs) names_.push_back(o.name);
    point p{i.clock, seconds(), i.loss, i.learning_rate, 0, -1, i.outputs};
    if (images_at_s_ < 0 || p.seconds - images_at_s_ >= shortest_rate_s) {
      if (images_at_s_ >= 0)
        images_s_ = static_cast<double>(i.images - images_) / (p.seconds - images_at_s_);
      images_at_s_ = p.seconds;
      images_ = i.images;
    }
    p.images_s = images_s_;
    const auto communication = static_cast<double>(i.communication_ns - communication_ns_);
    const auto exposed = static_cast<double>(i.exposed_ns - exposed_ns_);
    if (nodes_ > 1 && communication > 0)
      p.hidden = std::clamp(1 - exposed / communication, 0.0, 1.0);
    communication_ns_ = i.communication_ns;
    exposed_ns_ = i.exposed_ns;
    points_.push(points_.seen(), std::move(p));
  }
  if (next_) next_->trained(i, outputs);
}

void run_history::tested(std::size_t test_net, std::uint64_t clock,
                         const std::vector<double>& means,
                         const std::vector<output_value>& outputs) {
  {
    const std::lock_guard lock(mutex_);
    test t{test_net, clock, seconds(), means, {}};
    for (const auto& o : outputs) t.names.push_back(o.name);
    const auto same_phase = tests_.newest() != nullptr && tests_.newest()->clock == clock;
    tests_.push(same_phase ? test_phases_ - 1 : test_phases_++, std::move(t));
  }
  if (next_) next_->tested(test_net, clock, means, outputs);
}

void run_history::snapshot(std::uint64_t clock, const std::string& path, const std::string& error) {
  add_line(error.empty() ? "snapshot " + path
                         : "snapshot of clock " + std::to_string(clock) + " failed: " + error,
           !error.empty());
  if (next_) next_->snapshot(clock, path, error);
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
  if (next_) next_->stepped(s);
}

std::shared_ptr<void> run_history::working(long_task task) {
  return next_ ? next_->working(std::move(task)) : nullptr;
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
  lines_.push_back({lines_seen_++, seconds(), std::move(text), bad});
  if (lines_.size() > kept_lines) lines_.pop_front();
}

std::string run_history::json(place& from) const {
  const std::lock_guard lock(mutex_);
  const auto more_traffic = !traffic_.empty() && traffic_.back().seconds > from.traffic_s;
  if (from.points == points_.seen() && from.tests == tests_.seen() && from.lines == lines_seen_ &&
      !more_traffic)
    return {};
  json_array points, tests, lines, traffic;
  points_.for_each_from(from.points, [&](const point& p) {
    auto row = json_array::of(p.clock, p.seconds, p.loss, p.learning_rate, p.images_s, p.hidden);
    for (const double v : p.outputs) row.put(v);
    points.put(row);
  });
  tests_.for_each_from(from.tests, [&](const test& t) {
    json_object row;
    row.put("net", t.net).put("clock", t.clock).put("seconds", t.seconds);
    row.put("names", json_array::from(t.names)).put("means", json_array::from(t.means));
    tests.put(row);
  });
  for (const auto& l : lines_)
    if (l.number >= from.lines)
      lines.put(json_array::of(l.number, l.seconds, l.text, l.bad ? 1 : 0));
  for (const auto& t : traffic_)
    if (t.seconds > from.traffic_s) traffic.put(json_array::of(t.seconds, t.out, t.in));
  from = {points_.seen(), tests_.seen(), lines_seen_,
          traffic_.empty() ? -1 : traffic_.back().seconds};
  json_object out;
  out.put("last_clock", last_clock_).put("outputs", json_array::from(names_));
  out.put("points", points).put("tests", tests).put("lines", lines).put("traffic", traffic);
  return out.text();
}

std::string run_history::csv() const {
  const std::lock_guard lock(mutex_);
  const auto number = [](double v) { return std::isfinite(v) ? json_number(v) : "nan"; };
  std::string out = "NumIters,Seconds,LearningRate";
  for (const auto& n : names_) out += "," + n;
  out += ",smoothed_loss,images_per_second\n";
  points_.for_each_from(0, [&](const point& p) {
    out += std::to_string(p.clock) + "," + number(p.seconds) + "," + number(p.learning_rate);
    for (const double v : p.outputs) out += "," + number(v);
    out += "," + number(p.loss) + "," + number(p.images_s) + "\n";
  });
  return out;
}

}  // namespace poseidon
