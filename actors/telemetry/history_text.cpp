// actors/telemetry/history_text.cpp - a run's history as JSON for the page, and as CSV.
#include "actors/telemetry/run_history.hpp"
#include "models/json.hpp"

#include <cmath>

namespace poseidon {

std::string run_history::json(place& from) const {
  const auto c = now(from);
  if (from.points == c.end.points && from.tests == c.end.tests && c.lines.empty() &&
      c.traffics.empty())
    return {};
  json_array points, tests, lines, traffic, views;
  c.points.for_each_from(from.points, [&](const point& p) {
    auto row = json_array::of(p.clock, p.seconds, p.loss, p.learning_rate, p.images_s, p.hidden);
    for (const double v : p.outputs) row.put(v);
    points.put(row);
  });
  c.tests.for_each_from(from.tests, [&](const test& t) {
    json_object row;
    row.put("net", t.net).put("clock", t.clock).put("seconds", t.seconds);
    row.put("names", json_array::from(t.names)).put("means", json_array::from(t.means));
    tests.put(row);
  });
  for (const auto& l : c.lines)
    lines.put(json_array::of(l->number, l->seconds, l->text, l->bad ? 1 : 0));
  for (const auto& t : c.traffics) traffic.put(json_array::of(t.seconds, t.out, t.in));
  for (const auto& v : c.views) views.put(json_array::of(v.clock, v.seconds, v.nodes, v.changed));
  from = c.end;
  json_object out;
  out.put("last_clock", c.last_clock).put("left_s", c.left_s);
  out.put("outputs", json_array::from(*c.names)).put("points", points).put("tests", tests);
  return out.put("lines", lines).put("traffic", traffic).put("views", views).text();
}

std::string run_history::csv() const {
  const auto c = now({});
  const auto number = [](double v) { return std::isfinite(v) ? json_number(v) : "nan"; };
  std::string out = "NumIters,Seconds,LearningRate";
  for (const auto& n : *c.names) out += "," + n;
  out += ",smoothed_loss,images_per_second\n";
  c.points.for_each_from(0, [&](const point& p) {
    out += std::to_string(p.clock) + "," + number(p.seconds) + "," + number(p.learning_rate);
    for (const double v : p.outputs) out += "," + number(v);
    out += "," + number(p.loss) + "," + number(p.images_s) + "\n";
  });
  return out;
}

}  // namespace poseidon
