// actors/node/node_shares.cpp - the fifth part of node: what is decided before there is a view, which part of the batch each node
// takes and by which routes its gradients go.
//
//   worker 0:  all are in -time_net-> everybody (itself too) times its own net -net_timed-> shares -> routes -> view
#include "actors/node/node.hpp"
#include "actors/run/run_codec.hpp"
#include "models/words.hpp"

#include <cmath>
#include <utility>

namespace poseidon {

/// Before anybody can join: what the net cannot do is said while there is nobody to wait.
void node::choose() {
  selector_ = poseidon::spawn<protocol_selector>(
      system(), *setup_.edges, thread_kind::own, "protocol_selector",
      protocol_selector_setup{*setup_.run, setup_.node, setup_.routes, setup_.wire,
                              setup_.node_mbit_s, false});
  monitor(selector_.untyped());
  if (setup_.shares.what != share_option::kind::equal) require_shares(*setup_.run, setup_.node);
  const handle<node> self(this);
  tell<choose_routes>(selector_, {self, self, {}});
}

void node::on(const routes_chosen& m) {
  guarded([&] {
    if (!m.error.empty()) throw spec_error(m.error);
    const bool again =
        phase_ == run_phase::starting && setup_.shares.what != share_option::kind::equal;
    routes_need_rate_ = m.needs_rate;
    batch_ = m.batch;
    if (!m.needs_rate && !again) {
      for (const auto& note : m.notes) setup_.display->note(note);
      decisions_ = m.decisions;
      setup_.run->reasons = m.reasons;
      setup_.run->routes = m.routes;
      setup_.run->wire = m.wire;
      setup_.run->routes_follow_links = m.follow_links;
      later_routes_ = m.later;
    }
    if (phase_ == run_phase::starting)
      listen_for_nodes();
    else if (phase_ == run_phase::gathering)
      routes_need_rate_ ? measure_links_of_all() : tell_view();
  });
}

/// All at once: nodes on one machine share it now as they will in training.
void node::ask_speeds() {
  const bool measure = setup_.shares.what == share_option::kind::automatic;
  if (measure) setup_.display->note("batch: each node measures how fast it trains this net");
  const auto solver = self_contained(setup_.run->solver).SerializeAsString();
  broadcast(frames::time_net{solver, setup_.run->seed, measure});
  take_speed(self_, speed_of(*setup_.run, setup_.node, measure, shown()));
}

/// A joiner, which has no view yet.
void node::on(const frames::time_net& m, worker_id) {
  guarded([&] {
    frames::view only_net;
    only_net.solver = m.solver;
    only_net.seed = m.seed;
    only_net.members.resize(2);
    const auto run = run_of(only_net);
    if (m.measure) setup_.display->note("batch: this node measures how fast it trains this net");
    const auto speed = speed_of(run, setup_.node, m.measure, shown());
    to_leader(frames::net_timed{speed.replicas, speed.samples_s});
  });
}

void node::on(const frames::net_timed& f, worker_id from) {
  guarded([&] { take_speed(from, {f.replicas, f.samples_s, 0}); });
}

void node::take_speed(worker_id from, const node_speed& speed) {
  if (members_.empty()) return;
  speeds_[from] = speed;
  if (speeds_.size() < setup_.run->workers) return;
  std::vector<std::uint32_t> replicas;
  std::vector<double> rates;
  for (const auto& [worker, s] : speeds_) {
    replicas.push_back(s.replicas);
    rates.push_back(s.samples_s);
  }
  const bool measured = setup_.shares.what == share_option::kind::automatic;
  const auto total = setup_.run->workers * speeds_.at(self_).batch;
  try {
    setup_.run->shares =
        shares_by_weight(total, measured ? rates : setup_.shares.weights, replicas);
  } catch (const std::invalid_argument& e) {
    throw spec_error("the batch cannot be shared: " + std::string(e.what()) + ".");
  }
  if (measured)
    for (const auto& [worker, s] : speeds_)
      setup_.display->note("batch: " + name_of(worker) + " trains " +
                           std::to_string(std::llround(s.samples_s)) + " samples/s alone");
  const handle<node> self(this);
  tell<choose_routes>(selector_, {self, self, setup_.run->shares});
}

void node::measure_links_of_all() {
  setup_.display->detail("routes: timing the links to " + plural(links_.size(), "node"));
  std::vector<port<send_frame>> links;
  for (const auto& [worker, link] : links_) links.push_back(link);
  tell<measure_links>(selector_, {std::move(links)});
}

/// Worker 0 says all of them, the others their own.
void node::note_shares() {
  const auto& shares = setup_.run->shares;
  const auto all = samples_of_all(shares) * compiled_->micro_batches;
  for (std::uint32_t w = 0; w < shares.size(); ++w)
    if (self_ == leader_ || w == value(self_))
      setup_.display->note(
          "batch: " + (w == value(self_) ? "this node" : name_of(worker_id{w})) + "\'s share " +
          describe_share(shares[w].samples * compiled_->micro_batches, all) +
          (shares[w].replicas > 1 ? ", on " + plural(shares[w].replicas, "replica") : ""));
}

/// With equal shares a gradient is the mean over all replicas only if every node has as many. A machine that was not told
/// how many to have does as the first node, however many cores either has.
void node::take_number_of_replicas(const frames::view& v) {
  auto& node = setup_.node;
  if (!v.shares.empty() || v.replicas == 0 || node.replicas != 0 || node.compute->replicas() != 0)
    return;
  node.replicas = v.replicas;
  setup_.display->detail("batch: split over " + plural(v.replicas, "replica") +
                         ", as on the first node");
}

/// Worker 0, when all are ready. With equal shares nobody has told the others how many replicas there are to be, and a
/// sum over other numbers of them would not be the mean.
bool node::replicas_fit() const {
  if (!setup_.run->shares.empty()) return true;
  for (const auto& [worker, replicas] : replicas_)
    if (replicas != compiled_->replicas)
      throw spec_error(name_of(worker) + " splits its batch over " + plural(replicas, "replica") +
                       ", this node over " + std::to_string(compiled_->replicas) +
                       ". Give every node as many with --devices, or the first one --batch-share "
                       "auto, with which a gradient counts by its samples.");
  return true;
}

}  // namespace poseidon
