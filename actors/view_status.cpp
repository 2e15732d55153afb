// actors/view_status.cpp - a cluster_view as a screen of text.
#include "actors/diagnosis.hpp"
#include "actors/view_json.hpp"

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
  return line + (w.lost ? ": " + w.why_lost : std::string()) + "\n";
}

}  // namespace

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
