#include "actors/node/changing.hpp"

#include "actors/node/node.hpp"

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
    if (on_factors(from, as_id<parameter_id>(p)) == (now == route::factor_broadcast)) continue;
    out += (out.empty() ? "" : ", ") + layer.name + " to " + std::string(to_string(now));
  }
  return out.empty() ? "every layer stays where it is" : out;
}

}  // namespace

// -- agreeing on a clock --------------------------------------------------------------------------------

void changing::hold() {
  if (core_.phase == run_phase::training)
    core_.as_node.tell<hold_clocks>(core_.run.the_trainer().hold, {});
}

void changing::take_next() {
  if (const auto next = core_.change.take_next()) take(*next);
}

void changing::take(const frames::change_routes& m) {
  if (!core_.change.agree(m, core_.phase == run_phase::training)) return;
  const auto what = describe_change(core_.run.train(), core_.setup.run->routes, m.routes);
  core_.setup.display->note("routes: from iteration " + std::to_string(value(m.clock)) +
                            " on: " + what);
  core_.as_node.tell<pause_at>(core_.run.the_trainer().pause, {m.clock});
}

std::optional<member_paused> changing::on(const training_paused& m) {
  if (core_.phase != run_phase::training ||
      !core_.change.paused(m.test_phases, std::chrono::steady_clock::now()))
    return std::nullopt;
  return member_paused{core_.view().self, clock_id{value(m.version)}, true};
}

// -- the old graph ends ---------------------------------------------------------------------------------

void changing::leave() {
  if (core_.phase != run_phase::training) return;
  const auto keepers = core_.run.graph().parameters().histories();
  if (!core_.change.release(keepers.size())) return;
  core_.phase = run_phase::changing;
  for (const auto& keeper : keepers)
    core_.as_node.tell<release_history>(keeper, {core_.as_node.self()});
}

void changing::on(const history_released& m) {
  if (core_.phase != run_phase::changing || !core_.change.released(m.history)) return;
  std::vector<caf::actor_addr> leaving;
  const auto ending = core_.run.graph().passing();
  for (const auto& a : ending) leaving.push_back(caf::actor_cast<caf::actor_addr>(a.target()));
  core_.change.leave(std::move(leaving));
  for (const auto& a : ending) core_.as_node.tell<shut_down>(a, {});
}

bool changing::left(const caf::actor_addr& actor) {
  return core_.phase == run_phase::changing && core_.change.left(actor);
}

// -- the new one begins ---------------------------------------------------------------------------------

void changing::rebuild() {
  core_.change.rebuild(std::make_shared<partition>(core_.run.store()->cut()));
  core_.run.rebuild(core_.change);
  core_.members.enter(with_routes(core_.view(), core_.change.agreed()));
  assembly_.rebuild();
}

std::chrono::milliseconds changing::resume() {
  values_.hand_over();
  const auto stopped = core_.change.resume(std::chrono::steady_clock::now());
  core_.setup.display->note("routes: changed; this node did not train for " +
                            std::to_string(stopped.count()) + " ms");
  core_.phase = run_phase::training;
  take_next();
  core_.as_node.tell<resume_training>(core_.run.the_trainer().resume, {});
  return stopped;
}

}  // namespace poseidon
