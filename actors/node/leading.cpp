#include "actors/node/leading.hpp"

#include "actors/node/node.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <cmath>
#include <utility>

namespace poseidon {

namespace {

/// As frames::view has them.
std::vector<std::uint8_t> numbers_of(const parameter_routes& routes) {
  std::vector<std::uint8_t> out;
  for (const auto r : routes) out.push_back(static_cast<std::uint8_t>(r));
  return out;
}

}  // namespace

// -- until there is a view -------------------------------------------------------------------------------

void leading::choose() {
  const auto& setup = node_.setup_;
  selector_ = poseidon::spawn<protocol_selector>(
      node_.system(), *setup.edges, thread_kind::own, "protocol_selector",
      route_request{*setup.run, setup.node, setup.routes, setup.wire, setup.node_mbit_s, false});
  node_.monitor(selector_.untyped());
  if (setup.shares.what != share_option::kind::equal) require_shares(*setup.run, setup.node);
  const handle<node> self(&node_);
  node_.tell<choose_routes>(selector_, {self, self, {}});
}

void leading::on(const routes_chosen& m) {
  auto& setup = node_.setup_;
  if (!m.error.empty()) throw spec_error(m.error);
  const bool first = node_.phase_ == run_phase::starting;
  const bool again = first && setup.shares.what != share_option::kind::equal;
  routes_need_rate_ = m.needs_rate;
  batch_ = m.batch;
  if (!m.needs_rate && !again) {
    for (const auto& note : m.notes) setup.display->note(note);
    decisions_ = m.decisions;
    later_routes_ = m.later;
    setup.run->reasons = m.reasons;
    setup.run->routes = m.routes;
    setup.run->wire = m.wire;
    setup.run->routes_follow_links = m.follow_links;
  }
  if (first)
    gather();
  else if (node_.phase_ == run_phase::gathering)
    m.needs_rate ? measure_links_of_all() : tell_view();
}

void leading::gather() {
  const auto& setup = node_.setup_;
  node_.phase_ = run_phase::gathering;
  const auto address = node_.member_.lead(*setup.listen, node_.here());
  members_ =
      poseidon::spawn<coordinator>(node_.system(), *setup.edges, thread_kind::shared, "coordinator",
                                   coordinator_setup{setup.run->workers, address});
  const handle<node> self(&node_);
  node_.tell<connect_coordinator>(members_, {self, self, self, self, self, self});
  setup.display->note("listening on " + address + "; waiting for " +
                      plural(setup.run->workers - 1, "node"));
}

std::size_t leading::room() const {
  if (node_.phase_ != run_phase::gathering) return 0;
  return node_.setup_.run->workers - 1 - node_.member_.links().size();
}

void leading::joined(const std::string& address) {
  const auto& setup = node_.setup_;
  const auto worker = node_.member_.links().size();
  setup.display->detail("membership: " + std::to_string(worker + 1) + " of " +
                        plural(setup.run->workers, "node") + " are in; worker " +
                        std::to_string(worker) + " listens on " + address);
  node_.tell<member_joined>(members_, {address});
}

void leading::on(const view_agreed& m) {
  node_.member_.enter(formed(node_.view(), m.members));
  if (node_.setup_.shares.what != share_option::kind::equal) return ask_speeds();
  routes_need_rate_ ? measure_links_of_all() : tell_view();
}

void leading::measure_links_of_all() {
  const auto& links = node_.member_.links();
  node_.setup_.display->detail("routes: timing the links to " + plural(links.size(), "node"));
  std::vector<port<send_frame>> ports;
  for (const auto& [worker, link] : links) ports.push_back(link);
  node_.tell<measure_links>(selector_, {std::move(ports)});
}

void leading::probe_heard(worker_id from, std::uint32_t round) {
  node_.tell<probe_answered>(selector_, {from, round});
}

void leading::tell_view() {
  const auto& setup = node_.setup_;
  const auto& view = node_.view();
  auto told = view_of(*setup.run);
  told.members = view.members;
  told.watched = setup.shows;
  if (told.shares.empty()) told.replicas = replicas_of(setup.node, batch_);
  for (const auto& line : view.lines()) setup.display->detail(line);
  for (const auto& [worker, link] : node_.member_.links()) {
    told.you = worker;
    node_.member_.send(worker, {told, {}, 0});
  }
  node_.build();
}

// -- shares of the batch ---------------------------------------------------------------------------------

/// All nodes at the same time: those on one machine share it now as they will in training.
void leading::ask_speeds() {
  const auto& setup = node_.setup_;
  const bool measure = setup.shares.what == share_option::kind::automatic;
  if (measure) setup.display->note("batch: each node measures how fast it trains this net");
  const auto solver = self_contained(setup.run->solver).SerializeAsString();
  node_.member_.broadcast(frames::time_net{solver, setup.run->seed, measure});
  const auto own = speed_of(*setup.run, setup.node, measure, display_of(setup));
  batch_ = own.batch;
  take_speed(node_.view().self, {own.replicas, own.samples_s});
}

void leading::on(const frames::net_timed& f, worker_id from) {
  if (!node_.view().members.empty()) take_speed(from, f);
}

void leading::take_speed(worker_id from, const frames::net_timed& speed) {
  if (split_.timed(from, speed) == node_.setup_.run->workers) split_batch();
}

void leading::split_batch() {
  auto& setup = node_.setup_;
  const bool measured = setup.shares.what == share_option::kind::automatic;
  const auto rates = measured ? split_.samples_s() : setup.shares.weights;
  try {
    setup.run->shares = shares_by_weight(setup.run->workers * batch_, rates, split_.replicas());
  } catch (const std::invalid_argument& e) {
    throw spec_error("the batch cannot be shared: " + std::string(e.what()) + ".");
  }
  for (std::uint32_t w = 0; measured && w < rates.size(); ++w)
    setup.display->note("batch: " + node_.view().name_of(worker_id{w}) + " trains " +
                        std::to_string(std::llround(rates[w])) + " samples/s alone");
  const handle<node> self(&node_);
  node_.tell<choose_routes>(selector_, {self, self, setup.run->shares});
}

void leading::check_replicas() const {
  if (!node_.setup_.run->shares.empty()) return;
  const auto own = node_.run_.compiled().replicas;
  if (const auto other = split_.other_number(own))
    throw spec_error(node_.view().name_of(other->first) + " splits its batch over " +
                     plural(other->second, "replica") + ", this node over " + std::to_string(own) +
                     ". Give every node as many with --devices, or the first "
                     "one --batch-share "
                     "auto, with which a gradient counts by its samples.");
}

// -- what coordinator and protocol_selector hear ---------------------------------------------------------

void leading::on(const frames::member_ready& f) {
  node_.setup_.display->detail("membership: " + node_.view().name_of(f.worker) + " is ready");
  split_.ready(f.worker, f.replicas);
  ready(f.worker);
}

void leading::ready(worker_id w) {
  node_.tell<member_is_ready>(members_, {w});
}

void leading::on(const frames::worker_done& f) {
  node_.setup_.display->detail("membership: " + node_.view().name_of(f.worker) +
                               " is done, at version " + std::to_string(value(f.version)));
  done(f.worker);
}

void leading::done(worker_id w) {
  node_.tell<member_is_done>(members_, {w});
}

void leading::paused(const member_paused& m) {
  node_.tell<member_paused>(members_, m);
}

void leading::rate(worker_id from, link_watch::rate r) {
  node_.tell<send_rate_measured>(selector_, {from, r.mbit_s, r.probed});
}

// -- what changes ----------------------------------------------------------------------------------------

void leading::announce_next_change() {
  if (later_routes_.empty()) return;
  const auto next = later_routes_.extract(later_routes_.begin());
  const frames::change_routes change{clock_id{next.key()}, numbers_of(next.mapped()),
                                     "as --routes " + node_.setup_.routes.file + " asks"};
  node_.tell<change_wanted>(members_, {change.routes, change.clock, change.why});
  node_.member_.broadcast(change);
  node_.take_change(change);
}

void leading::on(const routes_proposed& m) {
  node_.setup_.display->note("routes: " + m.why);
  node_.tell<change_wanted>(members_, {numbers_of(m.routes), std::nullopt, m.why});
}

void leading::changed(std::chrono::milliseconds paused) {
  node_.tell<routes_changed>(selector_, {paused});
}

void leading::end() {
  node_.tell<shut_down>(members_, {});
  node_.tell<shut_down>(selector_, {});
}

}  // namespace poseidon
