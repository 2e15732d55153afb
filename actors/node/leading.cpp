#include "actors/node/leading.hpp"

#include "actors/node/node.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace poseidon {

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
  // Programs that had not got all of what they need are left out.
  for (const auto seat : next.lost) (void)newcomers_.gone(seat, next.why);
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
      core_.change.at() == node_stage::gathering && !is_alone() && !core_.setup.around;
  const auto left = std::erase_if(in_, [&](const auto& m) { return m.seat == seat; });
  if (!may_be_replaced || left == 0) return false;
  core_.setup.display->note("worker " + std::to_string(value(seat)) +
                            " has gone before the run began: " + why + "; waiting for " +
                            plural(core_.setup.run->workers - in_.size(), "more node"));
  gather_again();
  return true;
}

/// Who does not know whether the leader has heard it says it again. A witness votes in a view as soon as it hears that it is agreed on,
/// and may leave before this node has entered that view.
void leading::leaves(seat_id seat, const std::string& why) {
  if (leaving_.insert(seat).second)
    core_.setup.display->note(core_.view().name_of(seat) + " leaves" +
                              (why.empty() ? "" : ": " + why));
  if (core_.is_witness(seat)) {
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

frames::next_view leading::next_view(const plan::propose_view& m) {
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
  if (core_.setup.around && !core_.change.knows_next()) give_to_newcomers(next);
  return next;
}

/// They have not measured what factors save, as the others have. Low rank needs no measurement.
void leading::give_to_newcomers(frames::next_view& next) {
  const auto& view = core_.view();
  const bool some_come = std::any_of(next.members.begin(), next.members.end(),
                                     [&](const auto& m) { return !view.has(m.seat); });
  if (some_come) next.given = core_.setup.around->newcomers.given(value(next.first_clock));
  no_factors_ = no_factors_ || some_come;
  if (!no_factors_) return;
  std::replace(next.routes.begin(), next.routes.end(),
               static_cast<std::uint8_t>(route::factor_broadcast),
               static_cast<std::uint8_t>(route::parameter_server));
  next.factor_rows.clear();
}

// -- the first view --------------------------------------------------------------------------------------

/// Routes may need the rate of the links, which are timed first. Returns  whether the view has been told.
bool leading::tell_view_if_known() {
  routes_need_rate_ ? measure_links_of_all() : tell_view();
  return !routes_need_rate_;
}

void leading::tell_view() {
  const auto& setup = core_.setup;
  const auto& view = core_.view();
  auto told = newcomers_.run_for_joiners();
  if (told.shares.empty()) told.replicas = replicas_of(setup.node, batch_);
  if (!view.before.empty()) {
    told.before.seats = view.before;
    core_.run.begin_after(told.before);
    core_.change.enters(told.first_clock, told.test_phases, next_view_of(told));
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
  done(from, f);
}

void leading::done(seat_id seat, const frames::worker_done& m) {
  if (core_.setup.around) {
    const frames::worker_left left{seat, m.version, m.others_go_on};
    core_.members.broadcast(left);
    core_.as_node.tell<control_passed>(core_.run.the_trainer().control,
                                       {core_.view().self(), left});
  }
  plan_->done(seat, m.version);
}

// -- what changes ----------------------------------------------------------------------------------------

std::optional<clock_id> leading::announce_next_change() {
  auto next = planned_.take_next(core_.setup.run->routes);
  if (!next) return std::nullopt;
  const auto at = *next->clock;
  plan_->wants(*next);
  core_.members.broadcast(frames::drain{at, for_newcomers()});
  return at;
}

void leading::ends() {
  if (plan_) plan_->schedule_ends();
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
