// actors/node/node_routes.cpp - the third part of node: other routes, while the run goes on.
//
// All nodes change before the same clock C. Each trains what comes before C with the old routes and waits until all of
// it is in: then nothing is under way anywhere, and every node has all parameters of version C. The graph is ended and
// built anew for C, as at the start, but with the values that are there; solver and checkpointer last. Solver state goes
// from who kept it to who keeps it now, ahead of the first gradients or factors on the same link.
#include "actors/core/logic_bug.hpp"
#include "actors/node/node.hpp"
#include "actors/run/run_description.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poseidon {

namespace {

// A line that training leaves idle is timed for some 50 ms of each interval; one that it fills for most of a window is
// read off what it sends.
constexpr auto timing_interval = std::chrono::milliseconds{1200};
constexpr double full_line = 0.5;
constexpr double same_rate = 1.25;

std::vector<std::uint8_t> numbers_of(const parameter_routes& routes) {
  std::vector<std::uint8_t> out;
  for (const auto r : routes) out.push_back(static_cast<std::uint8_t>(r));
  return out;
}

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

/// Worker 0: the next change that a file given to --routes asks for. Said to all before they are let go, so that nobody
/// has begun that clock when he hears of it.
void node::announce_next_change() {
  if (!coordinator_ || later_routes_.empty()) return;
  const auto next = later_routes_.extract(later_routes_.begin());
  const frames::change_routes change{clock_id{next.key()}, numbers_of(next.mapped()),
                                     "as --routes " + setup_.routes.file + " asks"};
  tell<change_wanted>(coordinator_, {change.routes, change.clock, change.why});
  broadcast(change);
  next_change_ = change;
}

void node::take_next_change() {
  if (const auto next = std::exchange(next_change_, std::nullopt)) take_change(*next);
}

// -- how fast the links are ------------------------------------------------------------------------------

void node::on(const link_flow& m) {
  if (phase_ != run_phase::training || change_) return send_rate_.forget();
  const auto now = std::chrono::steady_clock::now();
  const auto read = send_rate_.heard(m.peer, {m.acked_bytes, m.busy_us, m.hindered_us}, now);
  if (read && read->busy >= full_line) {
    tell_rate(read->mbit_s, false);
    time_links_at_ = now + timing_interval;
  } else if (now >= time_links_at_ && waits_for_a_rise()) {
    time_links(now);
  }
}

/// Factors are broadcast because a line is slow, and then leave it idle: only a question tells when it is not slow any
/// more. Without them nothing depends on a rise, and a line that has become slow fills.
bool node::waits_for_a_rise() const {
  const auto& run = *setup_.run;
  return run.routes_follow_links && setup_.link_mbit_s <= 0 && setup_.budget_mbit_s <= 0 &&
         std::find(run.routes.begin(), run.routes.end(), route::factor_broadcast) !=
             run.routes.end();
}

/// Everything else goes first.
void node::time_links(std::chrono::steady_clock::time_point now) {
  if (timing_ && timing_->mbit_s() <= 0) return;  // under way
  timing_ = timing_ ? bandwidth_probe(links_.size(), timing_->mbit_s(), timing_->next_number())
                    : bandwidth_probe(links_.size());
  take_round(timing_->begin(now));
}

void node::take_round(const bandwidth_probe::round& r) {
  for (const auto& f : frames_of(r, std::numeric_limits<std::uint64_t>::max()))
    for (const auto& [worker, link] : links_) tell<send_frame>(link, f, f.data.bytes.size());
}

void node::take_timing(worker_id from, std::uint32_t round) {
  const auto before = timing_->expected_mbit_s();
  const auto now = std::chrono::steady_clock::now();
  if (const auto next = timing_->heard(from, round, now)) return take_round(*next);
  const auto rate = timing_->mbit_s();
  if (rate <= 0) return;
  send_rate_.forget();  // that was not training
  const bool same = std::max(before, rate) <= same_rate * std::min(before, rate);
  time_links_at_ = now + (same ? timing_interval : timing_interval / 8);
  if (phase_ == run_phase::training && !change_) tell_rate(rate, true);
}

/// What a limit of ours keeps back, the line is not asked for.
void node::tell_rate(double mbit_s, bool probed) {
  for (const auto limit : {setup_.link_mbit_s, setup_.budget_mbit_s})
    if (limit > 0) mbit_s = std::min(mbit_s, limit * static_cast<double>(links_.size()));
  if (selector_)
    tell<send_rate_measured>(selector_, {self_, mbit_s, probed});
  else
    to_leader(frames::send_rate{mbit_s, probed});
}

// -- what changes ----------------------------------------------------------------------------------------

/// Worker 0.
void node::on(const routes_proposed& m) {
  if (phase_ != run_phase::training || change_) return;
  setup_.display->note("routes: " + m.why);
  tell<change_wanted>(coordinator_, {numbers_of(m.routes), std::nullopt, m.why});
}

// -- agreeing on a clock --------------------------------------------------------------------------------

void node::on(const hold_everyone&) {
  broadcast(frames::hold_training{});
  hold();
}

void node::on(const frames::hold_training&, worker_id) {
  hold();
}

void node::on(const frames::change_routes& f, worker_id) {
  take_change(f);
}

void node::on(const frames::rebuild_graph&, worker_id) {
  leave_graph();
}

void node::hold() {
  if (phase_ == run_phase::training) tell<hold_clocks>(lasting_.the_solver, {});
}

void node::on(const clocks_held& m) {
  take_stand({self_, m.clock, false});
}

void node::take_stand(const member_paused& m) {
  if (self_ == leader_)
    tell<member_paused>(coordinator_, m);
  else
    to_leader(frames::worker_paused{m.worker, m.clock, m.drained});
}

void node::on(const change_agreed& m) {
  const frames::change_routes change{m.clock, m.routes, m.why};
  broadcast(change);
  take_change(change);
}

/// One that is told while the one before is not over waits for the first clock.
void node::take_change(const frames::change_routes& m) {
  if (phase_ != run_phase::training || change_) {
    next_change_ = m;
    return;
  }
  const auto what = describe_change(compiled_->train.graph, setup_.run->routes, m.routes);
  setup_.display->note("routes: from clock " + std::to_string(value(m.clock)) + " on: " + what);
  change_.emplace();
  change_->clock = m.clock;
  change_->routes = m.routes;
  change_->why = m.why;
  tell<pause_at>(lasting_.the_solver, {m.clock});
}

void node::on(const training_paused& m) {
  if (phase_ != run_phase::training || !change_) return;
  change_->drained = m;
  change_->stood_since = std::chrono::steady_clock::now();
  take_stand({self_, clock_id{value(m.version)}, true});
}

// -- the old graph ends ---------------------------------------------------------------------------------

void node::on(const everyone_drained&) {
  broadcast(frames::rebuild_graph{});
  leave_graph();
}

void node::leave_graph() {
  if (phase_ != run_phase::training || !change_ || !change_->drained) return;
  phase_ = run_phase::changing;
  const auto keepers = graph_->histories();
  change_->histories_missing = keepers.size();
  const handle<node> self(this);
  for (const auto& keeper : keepers) tell<release_history>(keeper, {self});
}

void node::on(const history_released& m) {
  if (phase_ != run_phase::changing) return;
  change_->histories.push_back(m.history);
  if (--change_->histories_missing > 0) return;
  const auto ending = graph_->passing();
  for (const auto& a : ending)
    change_->leaving.push_back(caf::actor_cast<caf::actor_addr>(a.target()));
  for (const auto& a : ending) tell<shut_down>(a, {});
}

void node::one_has_left(const caf::actor_addr& who) {
  if (phase_ != run_phase::changing || std::erase(change_->leaving, who) == 0) return;
  if (change_->leaving.empty()) guarded([this] { rebuild(); });
}

// -- the new one begins ---------------------------------------------------------------------------------

void node::rebuild() {
  const auto old = compiled_->store;
  old->come_home();
  const auto clock = value(change_->clock);
  auto& run = *setup_.run;
  run.data.samples += (clock - run.first_clock) * schedule_of(run, *compiled_).samples_per_clock();
  run.data.test_phases = change_->drained->test_phases;
  run.first_clock = clock;
  run.routes.clear();
  for (const auto r : change_->routes) run.routes.push_back(static_cast<route>(r));
  change_->before = std::make_shared<partition>(old->cut());

  graph_.reset();
  compiled_.reset();  // before there is another one: a node need not have room for two
  compiled_ = compile_run(run, setup_.node, shown());
  auto& store = *compiled_->store;
  for (std::size_t p = 0; p < store.parameters(); ++p) {
    const auto from = old->current(p);
    if (is_updated(compiled_->train.graph, p) && old->version(p) != clock)
      throw logic_bug("a change of routes finds another version", old->version(p), clock);
    std::copy(from.begin(), from.end(), store.values(p, clock).begin());
    store.publish(p, clock);
  }
  for (const auto& line : describe_partition(*compiled_, run.workers)) setup_.display->detail(line);
  decisions_.clear();  // they were for other routes
  run.reasons.clear();
  spawn_graph();
  show_facts();
  links_bound_ = 0;
  phase_ = run_phase::rebuilding;
  bind_if_complete();
}

/// Everybody has built: what a peer sends now finds its place.
void node::go_on() {
  hand_over_history();
  if (self_ == leader_) broadcast(frames::start_training{});
  const auto& cut = compiled_->store->cut();
  for (std::size_t id = 0; id < cut.chunks.size(); ++id)
    tell<chunk_landed>(
        graph_->receiver_of(cut.chunks[id].parameter),
        {chunk_id{static_cast<std::uint32_t>(id)}, version_id{setup_.run->first_clock}});
  const auto stood = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - change_->stood_since);
  setup_.display->note("routes: changed; this node stood still for " +
                       std::to_string(stood.count()) + " ms");
  if (selector_) tell<routes_changed>(selector_, {stood});
  change_.reset();
  phase_ = run_phase::training;
  take_next_change();
  tell<resume_training>(lasting_.the_solver, {});
}

}  // namespace poseidon
