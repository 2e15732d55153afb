// apps/web/view_status.cpp - a cluster_view as a screen of text.
#include "apps/web/diagnosis.hpp"
#include "apps/web/view_json.hpp"
#include "data/batch_shares.hpp"
#include "models/json.hpp"

#include <algorithm>
#include <cstdio>

namespace poseidon {

namespace {

template <class... T>
std::string printed(const char* format, T... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string progress_of(const cluster_view::state& s, const run_history& history) {
  std::string out = s.facts ? s.facts->model + ", " : std::string();
  out += s.phase;
  if (const auto p = history.newest()) {
    out += printed(": clock %llu", static_cast<unsigned long long>(p->clock));
    if (s.facts) out += printed(" of %llu", static_cast<unsigned long long>(s.facts->last_clock));
    out += printed(", loss %.6g, ", p->loss) +
           printed(p->images_s >= 1000 ? "%.0f images/s" : "%.3g images/s", p->images_s);
    if (p->hidden >= 0) out += printed(", %.0f %% of the communication hidden", 100 * p->hidden);
  }
  return out + "\n";
}

std::string member_line(const cluster_view::state& s, std::uint32_t id, const worker_view& w,
                        std::int64_t now) {
  const bool named = s.facts && id < s.facts->members.size() && !s.facts->members[id].empty();
  std::uint64_t out_bytes = 0, in_bytes = 0;
  for (const auto& l : w.links) out_bytes += l.bytes_out, in_bytes += l.bytes_in;
  auto line = printed("worker %-3u %-24s %-8s", id,
                      named ? s.facts->members[id].c_str() : "this node", condition_of(w, now));
  if (w.heard_ns != 0)
    line += printed(" clock %-8llu lag %-4llu heard %.1f s ago, sent %.1f MB, received %.1f MB",
                    static_cast<unsigned long long>(w.clock),
                    static_cast<unsigned long long>(lag_of(s.workers, id, now)),
                    static_cast<double>(now - w.heard_ns) / 1e9,
                    static_cast<double>(out_bytes) / 1e6, static_cast<double>(in_bytes) / 1e6);
  if (s.facts && id < s.facts->shares.size())
    line += ", share " + describe_share(s.facts->shares[id], s.facts->images_per_clock);
  return line + (w.lost ? ": " + w.why_lost : std::string()) + "\n";
}

std::string member_json(const cluster_view::state& s, std::uint32_t id, const worker_view& w,
                        std::int64_t now) {
  const bool named = s.facts && id < s.facts->members.size();
  std::uint64_t out_bytes = 0, in_bytes = 0;
  for (const auto& l : w.links) out_bytes += l.bytes_out, in_bytes += l.bytes_in;
  const bool heard = w.heard_ns != 0;
  const auto known = [&](std::uint64_t v) { return heard ? std::to_string(v) : "null"; };
  return "{\"worker\":" + std::to_string(id) +
         ",\"address\":" + json_text(named ? s.facts->members[id] : "") +
         ",\"condition\":" + json_text(condition_of(w, now)) + ",\"clock\":" + known(w.clock) +
         ",\"lag\":" + known(lag_of(s.workers, id, now)) + ",\"heard_s_ago\":" +
         (heard ? json_number(static_cast<double>(now - w.heard_ns) / 1e9) : "null") +
         ",\"bytes_out\":" + known(out_bytes) + ",\"bytes_in\":" + known(in_bytes) + ",\"share\":" +
         (s.facts && id < s.facts->shares.size() ? std::to_string(s.facts->shares[id]) : "null") +
         ",\"why_lost\":" + (w.lost ? json_text(w.why_lost) : "null") + "}";
}

}  // namespace

std::string status_json(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    const auto p = view.history().newest();
    std::string out = "{\"phase\":" + json_text(s.phase);
    out += ",\"model\":" + (s.facts ? json_text(s.facts->model) : "null");
    out += ",\"clock\":" + (p ? std::to_string(p->clock) : "null");
    out += ",\"last_clock\":" + (s.facts ? std::to_string(s.facts->last_clock) : "null");
    out += ",\"loss\":" + (p ? json_number(p->loss) : "null");
    out += ",\"images_per_s\":" + (p ? json_number(p->images_s) : "null");
    out += ",\"hidden\":" + (p && p->hidden >= 0 ? json_number(p->hidden) : "null");
    out += ",\"workers\":[";
    json_comma comma;
    for (const auto& [id, w] : s.workers) out += comma() + member_json(s, id, w, now);
    return out + "],\"doctor\":" + diagnosis_json(diagnose(s, now), now) + "}";
  });
}

std::string status_text(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    auto out = progress_of(s, view.history());
    for (const auto& [id, w] : s.workers) out += member_line(s, id, w, now);
    const auto found = diagnose(s, now);
    if (found.stall) out += "stall: " + to_string(*found.stall, now) + "\n";
    for (const auto& slow : found.stragglers) out += "straggler: " + to_string(slow) + "\n";
    if (!found.stall && found.stragglers.empty() && !s.ended) out += "nobody stands still\n";
    return out;
  });
}

}  // namespace poseidon
