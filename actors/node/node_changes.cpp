// What a node tells its view_change, and does as that asks (actors/membership/view_change.hpp).
#include "actors/node/node.hpp"
#include "actors/parameters/handover.hpp"
#include "models/plan/keepers.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

std::string iteration(const run_definition& run, clock_id clock) {
  return "iteration " + std::to_string(iteration_of(run, value(clock)));
}

/// Those that are left cannot begin the view that they came with.
std::string without_the_first_values(const run_definition& run, const agreed_view& view,
                                     clock_id clock) {
  if (view.is_first())
    return "the first node is lost before all others had the values that " + iteration(run, clock) +
           " begins with. Nothing has been trained: start the run again";
  return "all nodes that had trained before " + iteration(run, clock) +
         " are lost or have left, and those that joined with it cannot go on alone, because they "
         "may lack values of it";
}

/// The layers whose solver state is gone, or a part of it, in the net's order, each once: of a chunk, its owner is lost, and all that keep
/// a copy.
std::vector<std::string> layers_without_state(const node_core& core,
                                              const frames::next_view& next) {
  std::vector<std::string> out;
  const auto view = following(core.view(), next);
  const auto lost = view.former_lost();
  if (lost.empty() || state_arrays_at(*core.setup.run, value(next.first_clock)) == 0) return out;
  const auto kept = core.kept.cut_of(begins_again(core.view(), next));
  const auto& cut = kept ? *kept : core.run.store()->cut();
  const auto& net = core.run.train();
  for (const auto id : cut.chunks.ids()) {
    const auto& c = cut.chunks[id];
    if (c.owner == every_worker || !has_solver_state(net.parameters[value(c.parameter)]) ||
        giver_of(cut, id, lost) != no_worker)
      continue;
    const auto& layer = net.layers[net.parameters[value(c.parameter)].layer].name;
    if (std::find(out.begin(), out.end(), layer) == out.end()) out.push_back(layer);
  }
  return out;
}

}  // namespace

view_facts node::facts() const {
  view_facts f{.view = view()};
  for (const auto& [seat, link] : core_.members.links()) f.linked.push_back(seat);
  f.leads = leader_.here() != nullptr;
  f.leaves = end_.is_leaving();
  f.wants_end = end_.is_wanted();
  f.former = core_.kept.former();
  f.as_told = [this] { return core_.view_as_told(); };
  if (!core_.setup.run) return f;  // a joiner is told
  f.survive = core_.setup.run->survive;
  f.zeroes_lost_state = core_.setup.run->zeroes_lost_state;
  f.goes_forward = core_.setup.around != nullptr;
  if (!core_.run.built()) return f;
  f.batch = core_.run.compiled().whole_batch;
  f.versions = core_.run.store()->copies();
  f.keepers = core_.run.graph().parameters().histories().size();
  f.whole_version = [this] { return core_.run.whole_version(); };
  f.layers_without_state = [this](const frames::next_view& next) {
    return layers_without_state(core_, next);
  };
  return f;
}

void node::do_actions() {
  while (!core_.has_ended()) {
    const auto action = core_.change.take_action();
    if (!action) return;
    guarded([&] { std::visit([this](const auto& a) { act_on(a); }, *action); });
  }
}

void node::act_on(const view_action::show_pause& a) {
  if (a.is_news)
    core_.setup.display->warning(a.why +
                                 ". It goes on when enough of them are heard again, or where "
                                 "poseidon-node go-on says that they have ended");
  core_.setup.records.view->paused(a.why);
}

void node::act_on(const view_action::end_run& a) {
  using cause = view_action::end_run::cause;
  const auto& next = a.next;
  switch (a.of) {
    case cause::left_out:
      if (core_.setup.around && !core_.begun)
        return left_out(
            "one of the others was lost before this worker had all that it needs, and they go on "
            "without "
            "it: " +
            next.why + ". Join again");
      return left_out("the other nodes go on without this one from " +
                      iteration(*core_.setup.run, next.first_clock) +
                      " on: they have not heard it (" + next.why + "). It writes nothing");
    case cause::newcomers_alone:
      return fail(
          without_the_first_values(*core_.setup.run, view(), next.first_clock) + ": " + next.why,
          3);
    case cause::version_is_gone:
      return fail("this node cannot follow the others to view " + std::to_string(next.epoch) +
                      ", which begins with " + iteration(*core_.setup.run, next.first_clock) +
                      ": it has not what that view begins with",
                  3);
    case cause::state_is_gone:
      return fail("solver state is gone with the nodes that were lost, that of " +
                      comma_list(a.layers) + ": --survive " +
                      std::to_string(core_.setup.run->survive) +
                      " keeps no further copy, and with --lost-state zero the run would go on "
                      "without. " +
                      next.why,
                  3);
    case cause::values_never_came:
      return fail(without_the_first_values(*core_.setup.run, view(), view().first_clock), 3);
    case cause::told_to_end:
      return give_up_waiting(core_.change.why_paused(facts()), "It was told to end",
                             end_.is_leaving());
  }
}

}  // namespace poseidon
