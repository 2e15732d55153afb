#include "actors/node/leading.hpp"

#include "actors/node/node.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace poseidon {

namespace {

/// A list that ends early has the server's route from there on.
bool same_routes(const parameter_routes& a, const parameter_routes& b) {
  for (std::size_t p = 0; p < std::max(a.size(), b.size()); ++p)
    if (on_factors(a, as_id<parameter_id>(p)) != on_factors(b, as_id<parameter_id>(p)))
      return false;
  return true;
}

}  // namespace

// -- until there is a view -------------------------------------------------------------------------------

void leading::choose() {
  const auto& setup = core_.setup;
  if (is_alone()) return;
  spawn_selector();
  if (!setup.around && setup.choices.shares.what != share_option::kind::equal)
    require_shares(*setup.run, setup.node);
  const auto self = core_.as_node.self();
  core_.as_node.tell<choose_routes>(selector_, {self, self, {}});
}

void leading::spawn_selector() {
  const auto& setup = core_.setup;
  selector_ = poseidon::spawn<protocol_selector>(
      core_.as_node.system(), *setup.edges, thread_kind::own, "protocol_selector",
      route_request{*setup.run, setup.node, setup.choices.routes, setup.choices.wire,
                    setup.choices.node_mbit_s, false});
  core_.as_node.monitor(selector_.untyped());
}

/// Another number of nodes may want other routes, where they are not the user's words for each layer. Whoever leads after
/// another node does not know these words; it knows whether routes follow the links.
void leading::choose_again() {
  const auto& setup = core_.setup;
  if (selector_) core_.as_node.tell<shut_down>(selector_, {});
  selector_ = {};
  const bool may_choose = took_over_ ? setup.run->routes_follow_links
                                     : setup.choices.routes.what != route_option::kind::listed;
  if (is_alone() || setup.around || !may_choose) return;
  spawn_selector();
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
  const bool first = core_.phase == run_phase::starting;
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
  if (first || core_.phase != run_phase::gathering || core_.view().members.empty()) return false;
  return tell_view_if_known();
}

/// A run that begins with one node has no links to choose routes for.
bool leading::is_alone() const {
  return core_.setup.run->workers == 1;
}

void leading::take_over(const frames::next_view& next) {
  const auto view = following(core_.view(), next);
  std::set<seat_id> leave, come;
  for (const auto seat : view.before)
    if (!view.has(seat) && !has_seat(view.lost, seat)) leave.insert(seat);
  for (const auto& m : view.members)
    if (view.brought(m.seat)) come.insert(m.seat);
  if (!plan_) {
    core_.setup.display->note("this node leads from now on");
    took_over_ = true;
    newcomers_.take_over();
    witnesses_.tell_all();
  }
  newcomers_.come_with(view, next);
  planned_.overtaken_by(next);
  plan_.emplace(view_plan_setup{.workers = next.members.size(),
                                .members = next.members,
                                .forming = true,
                                .parting = std::move(leave),
                                .by_schedule = core_.setup.choices.by_schedule && !took_over_,
                                .epoch = next.epoch,
                                .newcomers = std::move(come)});
}

// -- nodes that join and leave while training ------------------------------------------------------------

void leading::on(const frames::join_ready& f, seat_id from) {
  if (witnesses_.ready(from)) return change_witnesses();
  if (const auto newcomer = newcomers_.ready(f, from)) plan_->newcomer_ready(*newcomer);
}

/// A view that begins, or one that is being agreed on already, is asked for nothing: began() asks again.
void leading::change_witnesses() {
  if (witnesses_.want_a_view())
    plan_->wants({numbers_of(core_.setup.run->routes), std::nullopt, ""});
}

bool leading::gone(seat_id seat, const std::string& why) {
  if (witnesses_.gone(seat, why)) return false;
  if (newcomers_.gone(seat, why)) plan_->newcomer_gone(seat);
  // Programs have been given their numbers.
  const bool may_be_replaced =
      core_.phase == run_phase::gathering && !is_alone() && !core_.setup.around;
  const auto left = std::erase_if(in_, [&](const auto& m) { return m.seat == seat; });
  if (!may_be_replaced || left == 0) return false;
  core_.setup.display->note("worker " + std::to_string(value(seat)) +
                            " has gone before the run began: " + why + "; waiting for " +
                            plural(core_.setup.run->workers - in_.size(), "more node"));
  gather_again();
  return true;
}

/// Who does not know whether the leader has heard it says it again.
void leading::leaves(seat_id seat, const std::string& why) {
  if (leaving_.insert(seat).second)
    core_.setup.display->note(core_.view().name_of(seat) + " leaves" +
                              (why.empty() ? "" : ": " + why));
  if (core_.view().has_witness(seat)) {
    witnesses_.leaves(seat);
    return change_witnesses();
  }
  plan_->leaves(seat);
}

void leading::began() {
  newcomers_.began();
  plan_->began();
  for (const auto& ready : newcomers_.that_are_ready()) plan_->newcomer_ready(ready);
  witnesses_.began();
  change_witnesses();
}

frames::next_view leading::next_view(const plan::propose_view& m) const {
  const auto& run = *core_.setup.run;
  frames::next_view next;
  if (core_.change.knows_next()) {  // it is replaced, with the same routes
    next = core_.change.next();
  } else {
    next.routes = m.routes ? *m.routes : numbers_of(run.routes);
    next.factor_rows = m.routes ? factor_rows_ : run.factor_rows;
    next.why = m.why;
    next.witnesses = witnesses_.of_next_view();
  }
  next.epoch = m.epoch;
  next.first_clock = core_.change.clock();
  next.members = m.members;
  next.shares = newcomers_.shares_for(next.members);
  return next;
}

// -- the first view --------------------------------------------------------------------------------------

/// Routes may need the rate of the links, which are timed first. Returns  whether the view has been told.
bool leading::tell_view_if_known() {
  routes_need_rate_ ? measure_links_of_all() : tell_view();
  return !routes_need_rate_;
}

void leading::measure_links_of_all() {
  const auto& links = core_.members.links();
  measures_ = core_.phase == run_phase::gathering;
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

void leading::tell_view() {
  const auto& setup = core_.setup;
  const auto& view = core_.view();
  auto told = newcomers_.run_for_joiners();
  if (told.shares.empty()) told.replicas = replicas_of(setup.node, batch_);
  if (!view.before.empty()) {
    told.before.seats = view.before;
    core_.run.begin_after(told.before);
    core_.change.enter(told.first_clock, told.test_phases, next_view_of(told));
  }
  for (const auto& line : view.lines()) setup.display->detail(line);
  for (const auto seat : view.others()) {
    told.you = seat;
    core_.members.send(seat, {told, {}, 0});
  }
  newcomers_.tell_all(view.before);
  witnesses_.tell_all();
  if (!view.before.empty()) newcomers_.come_to_first_node();
}

// -- what the plan and protocol_selector hear -------------------------------------------------------------

void leading::on(const frames::member_ready& f, seat_id from) {
  core_.setup.display->detail("membership: " + core_.view().name_of(from) + " is ready");
  split_.ready(from, f.replicas);
  core_.ready[from] = f;
  ready(from, f.epoch);
}

void leading::ready(seat_id seat, std::uint64_t epoch) {
  plan_->ready(seat, epoch);
}

void leading::on(const frames::worker_done& f, seat_id from) {
  core_.setup.display->detail("membership: " + core_.view().name_of(from) +
                              " is done, at version " + std::to_string(value(f.version)));
  done(from, f.version);
}

void leading::done(seat_id seat, version_id version) {
  if (core_.setup.around) {
    const frames::worker_left left{seat, version};
    core_.members.broadcast(left);
    core_.as_node.tell<control_arrived>(core_.run.the_trainer().control,
                                        {core_.view().self(), left, core_.view().seat});
  }
  plan_->done(seat, version);
}

void leading::rate(worker_id from, link_watch::rate r) {
  const auto& run = *core_.setup.run;
  // A program trains for as long as it likes.
  const auto end = core_.setup.around
                       ? std::numeric_limits<std::uint64_t>::max()
                       : static_cast<std::uint64_t>(std::max(0, run.solver.spec.max_iter()));
  const auto now = core_.run.trained_version().value_or(version_id{run.first_clock});
  if (!selector_) return;
  core_.as_node.tell<send_rate_measured>(
      selector_, {from, r.mbit_s, r.probed, end - std::min(end, value(now))});
}

// -- what changes ----------------------------------------------------------------------------------------

std::optional<clock_id> leading::announce_next_change() {
  auto next = planned_.take_next(core_.setup.run->routes);
  if (!next) return std::nullopt;
  const auto at = *next->clock;
  plan_->wants(*next);
  core_.members.broadcast(frames::drain{at});
  return at;
}

void leading::ends() {
  if (plan_) plan_->schedule_ends();
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

void leading::changed(std::chrono::milliseconds paused, bool other_members) {
  if (other_members) return choose_again();
  if (!selector_) return;
  core_.as_node.tell<routes_changed>(selector_, {paused});
}

void leading::end() {
  if (selector_) core_.as_node.tell<shut_down>(selector_, {});
}

}  // namespace poseidon
