// apps/web/view_status.cpp - a cluster_view as a screen of text.
#include "apps/web/diagnosis.hpp"
#include "apps/web/lag.hpp"
#include "apps/web/link_traffic.hpp"
#include "apps/web/view_json.hpp"
#include "data/batch_shares.hpp"
#include "models/words.hpp"

#include <cstdio>
#include <optional>

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
  out += s.words();
  if (const auto p = history.newest()) {
    out += printed(": iteration %llu", static_cast<unsigned long long>(p->clock));
    if (s.facts && s.facts->last_clock > 0)  // a program trains for as long as it likes
      out += printed(" of %llu", static_cast<unsigned long long>(s.facts->last_clock));
    out += printed(", loss %.6g, ", p->loss) +
           printed(p->images_s >= 1000 ? "%.0f images/s" : "%.3g images/s", p->images_s);
    if (p->hidden >= 0) out += printed(", %.0f %% of the communication hidden", 100 * p->hidden);
  }
  if (const auto pause = history.paused_for())
    out += (history.newest() ? ", " : ": ") + pause->what + " " + std::to_string(pause->done) +
           "/" + std::to_string(pause->total);
  return out + "\n";
}

std::string member_line(const cluster_view::state& s, std::uint32_t id, const worker_view& w,
                        std::int64_t now) {
  const auto address = s.facts ? s.facts->address_of(id) : "";
  const auto traffic = traffic_of(s, id);
  auto line = printed("worker %-3u %-24s %-8s", id, address.empty() ? "this node" : address.c_str(),
                      condition_of(w, now, s.silent_after_ns()));
  if (w.contact.heard_ns != 0)
    line += printed(" iteration %-8llu lag %-4llu heard %.1f s ago, sent %.1f MB, received %.1f MB",
                    static_cast<unsigned long long>(shown_clock(s, w)),
                    static_cast<unsigned long long>(shown_lag(s, id, now)),
                    static_cast<double>(now - w.contact.heard_ns) / 1e9,
                    static_cast<double>(traffic.out) / 1e6, static_cast<double>(traffic.in) / 1e6);
  if (const auto probes = traffic.probes_out + traffic.probes_in; probes > 0)
    line += printed(" (and %.1f MB of probes)", static_cast<double>(probes) / 1e6);
  if (s.facts && s.facts->worker_of(id) < s.facts->shares.size())
    line += ", share " +
            describe_share(s.facts->shares[s.facts->worker_of(id)], s.facts->images_per_clock);
  return line + (w.contact.lost ? ": " + w.contact.why_lost : std::string()) + "\n";
}

json_object member_status(const cluster_view::state& s, std::uint32_t id, const worker_view& w,
                          std::int64_t now) {
  const auto traffic = traffic_of(s, id);
  const auto if_heard = [&](auto v) {
    return w.contact.heard_ns != 0 ? std::optional(v) : std::nullopt;
  };
  json_object out;
  out.put("worker", id);
  out.put("address", s.facts ? s.facts->address_of(id) : "");
  out.put("condition", condition_of(w, now, s.silent_after_ns()))
      .put("clock", if_heard(shown_clock(s, w)));
  out.put("lag", if_heard(shown_lag(s, id, now)));
  out.put("heard_s_ago", if_heard(static_cast<double>(now - w.contact.heard_ns) / 1e9));
  out.put("bytes_out", if_heard(traffic.out + traffic.probes_out));
  out.put("bytes_in", if_heard(traffic.in + traffic.probes_in));
  out.put("probe_bytes_out", if_heard(traffic.probes_out));
  out.put("probe_bytes_in", if_heard(traffic.probes_in));
  const bool has_share = s.facts && s.facts->worker_of(id) < s.facts->shares.size();
  out.put("share",
          has_share ? std::optional(s.facts->shares[s.facts->worker_of(id)]) : std::nullopt);
  return out.put("why_lost", w.contact.lost ? std::optional(w.contact.why_lost) : std::nullopt);
}

}  // namespace

std::string members_text(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    const auto epoch = s.facts ? s.facts->epoch : 0;
    std::string out =
        "view " + std::to_string(epoch) + ": " +
        plural(std::max<std::size_t>(1, s.facts ? s.facts->members.size() : 0), "node");
    if (s.facts && !s.facts->witnesses.empty())
      out += " and " + std::to_string(s.facts->witnesses.size()) +
             (s.facts->witnesses.size() == 1 ? " witness" : " witnesses");
    if (s.facts) out += ", worker " + std::to_string(s.facts->leader) + " leads";
    for (const auto& [id, w] : s.workers) {
      const auto address = s.facts ? s.facts->address_of(id) : "";
      out += printed("\nworker %-3u %-24s %s", id, address.empty() ? "this node" : address.c_str(),
                     condition_of(w, now, s.silent_after_ns()));
    }
    if (s.facts)
      for (const auto& [id, address] : s.facts->witnesses)
        out += printed("\nwitness %-2u %-24s votes", id, address.c_str());
    return out + "\n";
  });
}

std::string members_json(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    json_array members;
    for (const auto& [id, w] : s.workers)
      members.put(json_object()
                      .put("worker", id)
                      .put("address", s.facts ? s.facts->address_of(id) : "")
                      .put("condition", condition_of(w, now, s.silent_after_ns())));
    json_object out;
    out.put("view", s.facts ? s.facts->epoch : 0).put("leader", s.facts ? s.facts->leader : 0);
    out.put("members", members);
    if (s.facts && !s.facts->witnesses.empty()) out.put("witnesses", witnesses_json(*s.facts));
    return out.text();
  });
}

std::string status_json(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    const auto p = view.history().newest();
    const auto of_run = [&](auto member) {
      return s.facts ? std::optional((*s.facts).*member) : std::nullopt;
    };
    const auto of_point = [&](auto member) {
      return p ? std::optional((*p).*member) : std::nullopt;
    };
    json_object out;
    put_stage(out, s);
    out.put("model", of_run(&run_facts::model));
    out.put("clock", of_point(&run_history::point::clock));
    out.put("last_clock", of_run(&run_facts::last_clock));
    out.put("loss", of_point(&run_history::point::loss));
    out.put("images_per_s", of_point(&run_history::point::images_s));
    out.put("hidden", p && p->hidden >= 0 ? std::optional(p->hidden) : std::nullopt);
    const auto pause = view.history().paused_for();
    out.put("testing", pause ? std::optional(pause->done) : std::nullopt);
    out.put("testing_total", pause ? std::optional(pause->total) : std::nullopt);
    out.put("results", of_run(&run_facts::promise));
    json_array workers;
    for (const auto& [id, w] : s.workers) workers.put(member_status(s, id, w, now));
    out.put("workers", workers);
    return out.put("doctor", diagnosis_json(diagnose(s, now), now)).text();
  });
}

std::string status_text(const cluster_view& view) {
  const auto now = now_ns();
  return view.read([&](const cluster_view::state& s) {
    auto out = progress_of(s, view.history());
    for (const auto& [id, w] : s.workers) out += member_line(s, id, w, now);
    if (s.facts && !s.facts->promise.empty()) out += s.facts->promise + "\n";
    const auto found = diagnose(s, now);
    if (found.stall) out += "stall: " + to_string(*found.stall, now) + "\n";
    for (const auto& slow : found.stragglers) out += "straggler: " + to_string(slow) + "\n";
    if (!found.stall && found.stragglers.empty() && !s.ended()) out += "no worker is stalled\n";
    return out;
  });
}

}  // namespace poseidon
