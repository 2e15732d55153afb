// How the leader has the routes of parameters chosen: before the first view, and again as nodes come and go or links change.
#include "actors/node/leading.hpp"
#include "actors/node/node.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poseidon {

namespace {

/// A list that ends early has the server's route from there on.
bool same_routes(const parameter_routes& a, const parameter_routes& b) {
  for (std::size_t p = 0; p < std::max(a.size(), b.size()); ++p)
    if (route_of(a, as_id<parameter_id>(p)) != route_of(b, as_id<parameter_id>(p))) return false;
  return true;
}

/// Nothing is rounded, and nothing approximated.
bool is_exact(const run_definition& run) {
  return run.wire.empty() &&
         std::none_of(run.routes.begin(), run.routes.end(), [](route r) { return rank_of(r) > 0; });
}

}  // namespace

void leading::choose() {
  const auto& setup = core_.setup;
  if (is_alone()) return;
  spawn_selector(setup.choices.lossy);
  if (!setup.around && setup.choices.shares.what != share_option::kind::equal)
    require_shares(*setup.run, setup.node);
  const auto self = core_.as_node.self();
  core_.as_node.tell<choose_routes>(selector_, {self, self, {}});
}

void leading::spawn_selector(const lossiness& lossy) {
  const auto& setup = core_.setup;
  selector_ = poseidon::spawn<protocol_selector>(
      core_.as_node.system(), *setup.edges, thread_kind::own, "protocol_selector",
      route_request{*setup.run, setup.node, setup.choices.routes, setup.choices.wire, lossy,
                    setup.choices.node_mbit_s, false});
  core_.as_node.monitor(selector_.untyped());
}

/// Another number of nodes may want other routes, where they are not the user's words for each layer. Whoever leads after
/// another node does not know these words; it knows whether routes follow the links. What --lossy has chosen holds for the run: what rounding,
/// or low rank, has kept back would be lost.
void leading::choose_again() {
  const auto& setup = core_.setup;
  if (selector_) core_.as_node.tell<shut_down>(selector_, {});
  selector_ = {};
  const bool may_choose = took_over_ ? setup.run->routes_follow_links
                                     : setup.choices.routes.what != route_option::kind::listed;
  const bool holds = !setup.choices.lossy.is_none() && !is_exact(*setup.run);
  if (is_alone() || setup.around || !may_choose || holds) return;
  spawn_selector({});
  const auto self = core_.as_node.self();
  core_.as_node.tell<choose_routes>(selector_, {self, self, setup.run->shares});
}

void leading::chosen_again(const routes_chosen& m) {
  auto& setup = core_.setup;
  if (!m.error.empty()) return setup.display->warning("routes stay as they are: " + m.error);
  if (m.needs_rate) return measure_links_of_all();
  setup.run->routes_follow_links = m.follow_links;
  if (same_routes(m.routes, setup.run->routes)) return;
  for (const auto& note : m.notes) setup.display->note(note);
  plan_->wants({numbers_of(m.routes), std::nullopt,
                "chosen again for " + plural(core_.view().members.size(), "node")});
}

bool leading::on(const routes_chosen& m) {
  auto& setup = core_.setup;
  if (core_.trains()) {
    chosen_again(m);
    return false;
  }
  if (!m.error.empty()) throw spec_error(m.error);
  const bool first = core_.change.at() == node_stage::starting;
  awaits_routes_ = false;
  const bool again = first && setup.choices.shares.what != share_option::kind::equal;
  routes_need_rate_ = m.needs_rate;
  batch_ = m.batch;
  if (!m.needs_rate && !again) {
    for (const auto& note : m.notes) setup.display->note(note);
    decisions_ = m.decisions;
    planned_.plan_routes(m.later, setup.choices.routes.file);
    setup.run->reasons = m.reasons;
    setup.run->routes = m.routes;
    setup.run->wire = m.wire;
    setup.run->routes_follow_links = m.follow_links;
  }
  if (first) gather();
  if (first || core_.change.at() != node_stage::gathering || core_.view().members.empty())
    return false;
  return tell_view_if_known();
}

void leading::measure_links_of_all() {
  const auto& links = core_.members.links();
  measures_ = core_.change.at() == node_stage::gathering;
  core_.setup.display->detail("routes: timing the links to " + plural(links.size(), "node"));
  std::vector<port<send_frame>> ports;
  for (const auto& [seat, link] : links)
    if (core_.view().has(seat)) ports.push_back(link);
  const auto& members = core_.view().members;
  const bool within_machine = std::all_of(members.begin() + 1, members.end(), [](const auto& m) {
    return is_loopback(parse_host_port(m.address));
  });
  core_.as_node.tell<measure_links>(selector_, {std::move(ports), within_machine});
}

void leading::probe_heard(worker_id from, std::uint32_t round) {
  if (selector_) core_.as_node.tell<probe_answered>(selector_, {from, round});
}

void leading::rate(worker_id from, link_watch::rate r) {
  const auto& run = *core_.setup.run;
  // A program trains for as long as it likes.
  const auto end = core_.setup.around ? std::numeric_limits<std::uint64_t>::max()
                                      : clocks_of(run.solver.spec, run.solver.spec.max_iter());
  const auto now = core_.run.trained_version().value_or(version_id{run.first_clock});
  if (!selector_) return;
  core_.as_node.tell<send_rate_measured>(
      selector_, {from, r.mbit_s, r.probed, end - std::min(end, value(now))});
}

void leading::on(const routes_proposed& m) {
  core_.setup.display->note("routes: " + m.why);
  plan_->wants({numbers_of(m.routes), std::nullopt, m.why});
}

/// What is proposed from now on may give these parameters the factor route.
void leading::on(const factors_offered& m) {
  factor_rows_ = m.rows;
  if (selector_) core_.as_node.tell<choose_by_offers>(selector_, {m});
}

}  // namespace poseidon
