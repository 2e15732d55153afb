// A member is lost while all train: the others agree on a view without it, go back to the version that all of them have, and what
// they train is what a chain of runs trains that is resumed with them.
#include "tests/actors/node/resumed_run.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <set>

using namespace poseidon;
using test::node_rig, test::resumed_at_the_change;

namespace {

constexpr std::uint64_t some_clocks = 40;

/// Runs until all but these have ended, or half a minute has passed.
void go_on(node_rig& t, std::initializer_list<std::size_t> killed) {
  const auto all_ended = [&] {
    for (std::size_t n = 0; n < t.nodes.size(); ++n)
      if (std::count(killed.begin(), killed.end(), n) == 0 && !t.nodes[n]->result) return false;
    return true;
  };
  for (int ticks = 0; ticks < 1500 && !all_ended(); ++ticks) {
    t.sim.settle();
    t.sim.pass(std::chrono::milliseconds{20});
  }
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    if (std::count(killed.begin(), killed.end(), n) > 0) continue;
    CAPTURE(n);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
  }
}

}  // namespace

TEST_CASE("node: a member that is killed while all train is lost, and the others go on exactly") {
  for (const std::size_t killed : {0, 1, 2}) {
    CAPTURE(killed);
    node_rig t;
    t.clocks = some_clocks;
    t.survive = 1;
    t.cluster(3);
    REQUIRE(t.until_clock(5));
    t.kill(killed);
    go_on(t, {killed});
    const auto& views = t.nodes[killed == 2 ? 1 : 2]->display->views;
    REQUIRE(views.size() == 2);
    CHECK(views[1].seats.size() == 2);
    CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 3, 2, views[1].first_clock));
  }
}

namespace {

/// What a chain of runs trains, each with the members of one view, from the state that the one before has left.
std::string chained(const node_rig& like, const std::vector<progress::view>& views) {
  std::filesystem::path state;
  std::vector<std::unique_ptr<node_rig>> runs;
  for (std::size_t v = 0; v < views.size(); ++v) {
    const auto end = v + 1 < views.size() ? views[v + 1].first_clock : like.clocks;
    if (end == views[v].first_clock && v + 1 < views.size()) continue;  // nothing is trained in it
    auto& t = *runs.emplace_back(std::make_unique<node_rig>());
    t.more_solver = like.more_solver;
    t.routes = like.routes;
    test::train_without_a_change(t, views[v].seats.size(), end, state);
    state = t.state(end);
  }
  return runs.back()->weights(like.clocks);
}

/// Runs in random order, with the passing of time, until the nodes that live have ended.
void go_on_anyhow(node_rig& t, const std::set<std::size_t>& killed, std::mt19937& random) {
  const auto all_ended = [&] {
    for (std::size_t n = 0; n < t.nodes.size(); ++n)
      if (!killed.contains(n) && !t.nodes[n]->result) return false;
    return true;
  };
  for (int ticks = 0; ticks < 3000 && !all_ended(); ++ticks) {
    for (int i = 0; i < 2000 && t.sim.step_any(random); ++i) {
    }
    t.sim.pass(std::chrono::milliseconds{20});
  }
}

}  // namespace

TEST_CASE("node: in whatever order nodes get their turns, members are killed, and no bit is lost") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 40);
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = 30;
    t.survive = 1;
    if (random() % 2 == 0) t.more_solver = "poseidon { staleness: 1 } ";
    if (random() % 2 == 0)
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    const std::size_t members = 3 + random() % 3;
    CAPTURE(members);
    t.cluster(members);
    REQUIRE(t.until_clock(2));
    std::set<std::size_t> killed;
    for (int kills = 0; kills < 2; ++kills) {
      for (auto n = random() % 600; n > 0 && t.sim.step_any(random); --n) {
      }
      const auto victim = random() % members;
      if (killed.contains(victim) || t.nodes[victim]->result) continue;
      if (2 * (killed.size() + 1) >= members) continue;
      killed.insert(victim);
      t.kill(victim);
      if (random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
    }
    go_on_anyhow(t, killed, random);
    std::size_t survivor = members;
    for (std::size_t n = 0; n < members; ++n) {
      CAPTURE(n);
      if (killed.contains(n)) continue;
      survivor = n;
      // Two neighbours at the same time are more than it survives.
      if (t.nodes[n]->error().find("solver state is gone") != std::string::npos) continue;
      CHECK(t.nodes[n]->error() == "");
      CHECK(t.nodes[n]->exit_code() == 0);
    }
    const auto& views = t.nodes[survivor]->display->views;
    if (t.nodes[survivor]->exit_code() == 0 && t.more_solver.empty())
      CHECK(t.weights(t.clocks) == chained(t, views));
  }
}
