#include "actors/node/changing.hpp"

#include "actors/membership/view_rules.hpp"
#include "actors/node/node.hpp"
#include "actors/run/view_shares.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

namespace {

/// The error memory of a node that leaves or is lost goes with it.
std::string unsent_by_lowrank(const net& n, const parameter_routes& routes, std::size_t gone) {
  const auto layers = lowrank_layers(n, routes).size();
  if (layers == 0 || gone == 0) return {};
  return std::string(", with what ") + (gone == 1 ? "it" : "they") + " had not sent of " +
         plural(layers, "layer");
}

/// "fc6 to factor_broadcast, fc7 to parameter_server", by layers of the net; a layer's weights decide.
std::string describe_change(const net& n, const parameter_routes& from,
                            const std::vector<std::uint8_t>& to) {
  std::string out;
  for (const auto& layer : n.layers) {
    if (layer.parameters.empty()) continue;
    const auto p = layer.parameters.front();
    const auto now = p < to.size() ? static_cast<route>(to[p]) : route::parameter_server;
    if (route_of(from, as_id<parameter_id>(p)) == now) continue;
    out += (out.empty() ? "" : ", ") + layer.name + " to " + std::string(to_string(now));
  }
  return out;
}

std::string list_of(const std::vector<frames::member>& members, const agreed_view& view) {
  std::string out;
  for (const auto& m : members) out += (out.empty() ? "" : ", ") + view.name_of(m.seat);
  return out;
}

/// "worker 3 (10.0.0.9:7600) joined, worker 1 (10.0.0.7:7600) left"; empty: the members, or the witnesses, stay.
std::string describe_nodes(std::vector<frames::member> agreed_view::*nodes,
                           const agreed_view& before, const agreed_view& now, bool of_programs) {
  std::string out;
  const auto add = [&](const std::string& who, const std::string& what) {
    if (!who.empty()) out += (out.empty() ? "" : ", ") + who + what;
  };
  add(list_of(without(now.*nodes, before.*nodes), now), " joined");
  std::vector<frames::member> left, lost;
  for (const auto& m : without(before.*nodes, now.*nodes))
    (has_seat(now.lost, m.seat) ? lost : left).push_back(m);
  add(list_of(left, before), " left");
  // A program that has trained its last step is let go as one that is lost.
  const std::string how = of_programs ? "gone" : "lost";
  add(list_of(lost, before), (lost.size() == 1 ? " is " : " are ") + how);
  return out;
}

std::vector<std::uint32_t> seat_numbers(const std::vector<frames::member>& nodes) {
  std::vector<std::uint32_t> out;
  for (const auto& m : nodes) out.push_back(value(m.seat));
  return out;
}

}  // namespace

// -- agreeing on a clock --------------------------------------------------------------------------------

void changing::hold() {
  if (core_.change.is_in(stages::in_view))
    core_.as_node.tell<hold_clocks>(core_.run.the_trainer().hold, {core_.view().epoch});
}

void changing::take_early() {
  if (const auto clock = core_.change.take_early_drain()) take({*clock, for_newcomers_});
}

void changing::take(const frames::drain& f) {
  const auto clock = f.clock;
  for_newcomers_ = f.for_newcomers;
  if (!core_.change.drains(clock)) return;
  core_.setup.display->detail("membership: another view begins with iteration " +
                              std::to_string(iteration_of(*core_.setup.run, value(clock))));
  core_.as_node.tell<pause_at>(core_.run.the_trainer().pause,
                               {clock, core_.view().epoch, for_newcomers_});
}

std::optional<clock_id> changing::on(const training_paused& m) {
  if (m.epoch != core_.view().epoch ||
      !core_.change.has_drained(m.test_phases, std::chrono::steady_clock::now()))
    return std::nullopt;
  return clock_id{value(m.version)};
}

// -- the old graph ends ---------------------------------------------------------------------------------

namespace {

std::set<view_change::task> tasks_of(const std::vector<port<shut_down>>& actors) {
  std::set<view_change::task> out;
  for (const auto& a : actors) out.insert(a.target()->id());
  return out;
}

}  // namespace

/// Those of the graph that do not last: with solver state, or those that compute.
std::vector<port<shut_down>> changing::passing(bool with_state) const {
  auto out = core_.run.graph().passing();
  const auto keepers = core_.run.graph().parameters().histories();
  std::erase_if(out, [&](const auto& a) {
    return with_state != std::any_of(keepers.begin(), keepers.end(),
                                     [&](const auto& k) { return k.target() == a.target(); });
  });
  return out;
}

void changing::freeze(const view_facts& f) {
  if (core_.change.is_still() || core_.change.has_frozen()) return;
  const auto ending = passing(false);
  auto waits_for = tasks_of(ending);
  const auto& solver = core_.run.the_trainer().give_up;
  if (solver) waits_for.insert(trainer());
  core_.change.freeze(std::move(waits_for), assembly_.silence(), std::chrono::steady_clock::now(),
                      f);
  core_.as_node.tell<give_up_clocks>(solver, {});
  for (const auto& a : ending) core_.as_node.tell_urgent<shut_down>(a, {});
}

/// The trainer lasts, and what it has said of the clocks that are given up must not be taken for words of the next view.
view_change::task changing::trainer() const {
  return core_.run.the_trainer().give_up.target()->id();
}

void changing::leave(const frames::next_view& next, const view_facts& f) {
  if (core_.change.is_to_leave_its_view()) {
    from_ = core_.view();
    frozen_ = was_lost_ = core_.change.has_frozen();
    goes_back_ = core_.change.goes_back_for(next);
    core_.members.expect_leader(next.members.front());
  } else if (core_.change.knows_next()) {
    goes_back_ = goes_back_ || core_.change.goes_back_for(next);
  }
  core_.change.follows(next, f);
}

void changing::release() {
  // Between programs what is released is no state, and a node may lack the version.
  const auto version = core_.setup.run->survive > 0 && !core_.setup.around
                           ? std::optional(version_id{value(core_.change.clock())})
                           : std::nullopt;
  for (const auto& keeper : core_.run.graph().parameters().histories())
    core_.as_node.tell<release_history>(keeper, {core_.as_node.self(), version});
}

void changing::begin_with_zeros(const std::vector<std::string>& layers, clock_id clock) {
  zeroed_ = "solver state of " + comma_list(layers) + " begins with zeros";
  core_.setup.run->state_zeroed_at = value(clock);
  core_.setup.display->warning(zeroed_ + " in iteration " +
                               std::to_string(iteration_of(*core_.setup.run, value(clock))) +
                               ": it is gone with the nodes that were lost (--lost-state zero)");
}

/// No actor is left that could still tell of a later version.
void changing::go_back() {
  if (!std::exchange(goes_back_, false)) return;
  core_.done = false;
  const version_id version{value(core_.change.clock())};
  // Who lacks a part of it is given all of it.
  const bool lacks = has_seat(core_.change.next().lacking, core_.view().seat);
  const version_id has{value(version) - (lacks ? 1 : 0)};
  core_.as_node.tell<poseidon::go_back>(core_.run.the_trainer().back, {has});
  core_.as_node.tell<poseidon::go_back>(core_.run.checkpoints(), {version});
}

void changing::on(const history_released& m) {
  if (core_.change.released()) core_.kept.add(m);
}

/// What streams have queued of a pass that is left is not computed any more.
void changing::end_graph(view_action::end_graph::cause why) {
  using cause = view_action::end_graph::cause;
  if (why == cause::former_state_is_taken) core_.kept.give_again();
  const auto computing =
      std::exchange(frozen_, false) ? std::vector<port<shut_down>>() : passing(false);
  auto ending = passing(true);
  for (const auto& a : computing) core_.as_node.tell_urgent<shut_down>(a, {});
  for (const auto& a : ending) core_.as_node.tell<shut_down>(a, {});
  ending.insert(ending.end(), computing.begin(), computing.end());
  core_.change.ends(tasks_of(ending));
}

// -- the new one begins ---------------------------------------------------------------------------------

void changing::rebuild() {
  go_back();
  auto next = following(core_.view(), core_.change.next());
  const bool again = core_.change.has_entered();
  const auto routes =
      describe_change(core_.run.train(), core_.setup.run->routes, core_.change.next().routes);
  if (!routes.empty())
    core_.setup.display->note(
        "routes: from iteration " +
        std::to_string(iteration_of(*core_.setup.run, value(next.first_clock))) + " on: " + routes);
  routes_changed_ = !routes.empty() || (again && routes_changed_);
  const bool of_programs = core_.setup.around != nullptr;
  changed_ = describe_nodes(&agreed_view::members, from_, next, of_programs);
  members_changed_ = !changed_.empty();
  const auto of_witnesses = describe_nodes(&agreed_view::witnesses, from_, next, of_programs);
  changed_ += (changed_.empty() || of_witnesses.empty() ? "" : ", ") + of_witnesses;
  if (changed_.empty())
    changed_ = routes_changed_ ? "routes changed"
               : was_lost_     ? "all members are linked again"
                               : "nobody has joined";
  changed_ += unsent_by_lowrank(core_.run.train(), core_.setup.run->routes,
                                without(from_.members, next.members).size());
  if (!zeroed_.empty()) changed_ += ", " + zeroed_;
  if (!again) core_.kept.was_cut(std::make_shared<partition>(core_.run.store()->cut()));
  core_.change.enters_next();
  core_.members.enter(next);
  for (const auto& line : core_.view().lines()) core_.setup.display->detail(line);
  if (next.self() == no_worker) {
    core_.change.parts();
    (void)core_.run.bring_home(core_.change, core_.kept, next.seat);
    core_.members.dial_newcomers(core_.here());
    return assembly_.part();
  }
  core_.run.rebuild(core_.change, core_.kept, next);
  assembly_.rebuild();
}

void changing::begin() {
  core_.begun = true;
  const bool keeps = core_.setup.run->survive > 0 && !core_.view().before.empty();
  (void)core_.change.begins(std::chrono::steady_clock::now());
  core_.kept.view_begins(keeps);
  core_.run.promise(core_.view().members, false);
  if (core_.view().epoch > 0) show();
  take_early();
}

void changing::resume() {
  values_.hand_over();
  const auto why = core_.change.next().why;
  stopped_ = core_.change.begins(std::chrono::steady_clock::now());
  core_.kept.view_begins(core_.setup.run->survive > 0);
  core_.run.promise(core_.view().members, routes_changed_ || !zeroed_.empty());
  zeroed_.clear();
  show(changed_, why);
  take_early();
  core_.as_node.tell<resume_training>(core_.run.the_trainer().resume, {});
}

void changing::show(const std::string& changed, const std::string& why) const {
  const auto& view = core_.view();
  const auto& run = *core_.setup.run;
  core_.setup.display->viewed({.epoch = view.epoch,
                               .first_clock = iteration_of(run, run.first_clock),
                               .first_sample = run.data.samples,
                               .samples = global_batch_of(run),
                               .seats = seat_numbers(view.members),
                               .changed = changed,
                               .why = why,
                               .paused_ms = static_cast<std::uint64_t>(stopped_.count()),
                               .witnesses = seat_numbers(view.witnesses)});
}

/// Where nodes may be lost, the others say when this one may go: leavers.hpp.
void changing::part() {
  values_.hand_over();
  if (std::exchange(core_.done, true)) return;  // once more
  const auto others = core_.view().members.size();
  core_.setup.display->note(
      "left the run before iteration " +
      std::to_string(iteration_of(*core_.setup.run, value(core_.change.clock()))) + "; " +
      plural(others, "node") + (others == 1 ? " goes on" : " go on"));
}

}  // namespace poseidon
