// actors/node/node_changes.cpp - node from one view to the next, while the run goes on, and the rates of links that lead to it.
//
// All nodes change before the same clock C (view_change.hpp). Each trains what comes before C with the old routes and waits
// until all of it has arrived. The graph is ended and built again for C, as at the start, but with the values that this node
// has; solver and checkpointer last. Solver state goes from the actors that kept it to those that keep it now, ahead of the
// first gradients or factors on the same link.
#include "actors/node/node.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poseidon {

namespace {

/// "fc6 to factor_broadcast, fc7 to parameter_server", by layers of the net; a layer's weights decide.
std::string describe_change(const net& n, const parameter_routes& from,
                            const std::vector<std::uint8_t>& to) {
  std::string out;
  for (const auto& layer : n.layers) {
    if (layer.parameters.empty()) continue;
    const auto p = layer.parameters.front();
    const auto now = p < to.size() ? static_cast<route>(to[p]) : route::parameter_server;
    if (on_factors(from, p) == (now == route::factor_broadcast)) continue;
    out += (out.empty() ? "" : ", ") + layer.name + " to " + std::string(to_string(now));
  }
  return out.empty() ? "every layer stays where it is" : out;
}

}  // namespace

// -- how fast the links are ------------------------------------------------------------------------------

void node::on(const link_flow& m) {
  if (phase_ != run_phase::training || change_.under_way()) return watch_.forget();
  follow(watch_.heard(m.peer, {m.acked_bytes, m.busy_us, m.hindered_us}, waits_for_a_rise(),
                      std::chrono::steady_clock::now()));
}

/// Factors are broadcast because a line is slow, and then leave it idle: only a question tells when it is not slow any
/// more. Without them nothing depends on a rise, and a line that has become slow fills.
bool node::waits_for_a_rise() const {
  const auto& run = *setup_.run;
  return run.routes_follow_links && setup_.link_mbit_s <= 0 && setup_.budget_mbit_s <= 0 &&
         std::find(run.routes.begin(), run.routes.end(), route::factor_broadcast) !=
             run.routes.end();
}

void node::on(const frames::probe_heard& f, worker_id from) {
  if (watch_.probes())
    follow(watch_.answered(from, f.round, std::chrono::steady_clock::now()));
  else if (leading_)
    leading_->probe_heard(from, f.round);
}

void node::follow(const link_watch::advice& a) {
  if (a.probe)
    for (const auto& f : frames_of(*a.probe, std::numeric_limits<std::uint64_t>::max()))
      member_.broadcast(f);
  if (!a.tell || phase_ != run_phase::training || change_.under_way()) return;
  if (leading_)
    leading_->rate(view().self, *a.tell);
  else
    member_.to_leader(frames::send_rate{a.tell->mbit_s, a.tell->probed});
}

void node::on(const frames::send_rate& f, worker_id from) {
  leading_->rate(from, {f.mbit_s, f.probed});
}

// -- agreeing on a clock --------------------------------------------------------------------------------

void node::on(const routes_proposed& m) {
  if (phase_ == run_phase::training && !change_.under_way()) leading_->on(m);
}

void node::on(const hold_everyone&) {
  member_.broadcast(frames::hold_training{});
  hold();
}

void node::on(const frames::hold_training&, worker_id) {
  hold();
}

void node::hold() {
  if (phase_ == run_phase::training) tell<hold_clocks>(run_.the_solver(), {});
}

void node::on(const clocks_held& m) {
  take_pause({view().self, m.clock, false});
}

void node::take_pause(const member_paused& m) {
  if (leading_)
    leading_->paused(m);
  else
    member_.to_leader(frames::worker_paused{m.worker, m.clock, m.drained});
}

void node::on(const frames::worker_paused& f, worker_id) {
  take_pause({f.worker, f.clock, f.drained});
}

void node::on(const change_agreed& m) {
  const frames::change_routes change{m.clock, m.routes, m.why};
  member_.broadcast(change);
  take_change(change);
}

void node::on(const frames::change_routes& f, worker_id) {
  take_change(f);
}

/// What was agreed before this node could begin with it.
void node::take_next_change() {
  if (const auto next = change_.take_next()) take_change(*next);
}

void node::take_change(const frames::change_routes& m) {
  if (!change_.agree(m, phase_ == run_phase::training)) return;
  const auto what = describe_change(run_.train(), setup_.run->routes, m.routes);
  setup_.display->note("routes: from clock " + std::to_string(value(m.clock)) + " on: " + what);
  tell<pause_at>(run_.the_solver(), {m.clock});
}

void node::on(const training_paused& m) {
  if (phase_ == run_phase::training &&
      change_.paused(m.test_phases, std::chrono::steady_clock::now()))
    take_pause({view().self, clock_id{value(m.version)}, true});
}

// -- the old graph ends ---------------------------------------------------------------------------------

void node::on(const everyone_drained&) {
  member_.broadcast(frames::rebuild_graph{});
  leave_graph();
}

void node::on(const frames::rebuild_graph&, worker_id) {
  leave_graph();
}

void node::leave_graph() {
  if (phase_ != run_phase::training) return;
  const auto keepers = run_.graph().parameters().histories();
  if (!change_.release(keepers.size())) return;
  phase_ = run_phase::changing;
  const handle<node> self(this);
  for (const auto& keeper : keepers) tell<release_history>(keeper, {self});
}

void node::on(const history_released& m) {
  if (phase_ != run_phase::changing || !change_.released(m.history)) return;
  std::vector<caf::actor_addr> leaving;
  const auto ending = run_.graph().passing();
  for (const auto& a : ending) leaving.push_back(caf::actor_cast<caf::actor_addr>(a.target()));
  change_.leave(std::move(leaving));
  for (const auto& a : ending) tell<shut_down>(a, {});
}

// -- the new one begins ---------------------------------------------------------------------------------

/// The last actor of the old graph has ended.
void node::rebuild() {
  change_.rebuild(std::make_shared<partition>(run_.store()->cut()));
  run_.rebuild(change_);
  member_.enter(with_routes(view(), change_.agreed()));
  spawn_graph();
  run_.show_facts(view(), {}, change_);  // decisions were for other routes
  phase_ = run_phase::rebuilding;
  bind_if_complete();
}

/// All nodes have rebuilt: what a peer sends now finds its place.
void node::resume() {
  const auto& cut = run_.store()->cut();
  give(handover(run_.train(), *change_.before(), cut, change_.histories(), view().self,
                setup_.run->workers),
       version_id{});
  if (view().leads()) member_.broadcast(frames::start_training{});
  for (std::size_t id = 0; id < cut.chunks.size(); ++id)
    tell<chunk_landed>(
        run_.graph().parameters().receiver_of(cut.chunks[id].parameter),
        {chunk_id{static_cast<std::uint32_t>(id)}, version_id{setup_.run->first_clock}});
  const auto paused = change_.resume(std::chrono::steady_clock::now());
  setup_.display->note("routes: changed; this node stood still for " +
                       std::to_string(paused.count()) + " ms");
  if (leading_) leading_->changed(paused);
  phase_ = run_phase::training;
  take_next_change();
  tell<resume_training>(run_.the_solver(), {});
}

}  // namespace poseidon
