// A member is lost while all train: the others agree on a view without it, go back to the version that all of them have, and what
// they train is what a chain of runs trains that is resumed with them.
#include "tests/actors/node/time_passes.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace poseidon;
using test::chained, test::node_rig, test::resumed_at_the_change;

namespace {

constexpr std::uint64_t clocks_before_a_loss = 40;

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

/// Takes a step after the other, and lets 20 ms pass after so many of them and where there is none. Returns  whether it is so.
bool until_in_time(node_rig& t, int steps, const std::function<bool()>& is_so) {
  for (int step = 0; step < 100'000 && !is_so(); ++step)
    if (step % steps == 0 || !t.sim.step()) t.sim.pass(std::chrono::milliseconds{20});
  return is_so();
}

}  // namespace

TEST_CASE("node: a member that is killed while all train is lost, and the others go on exactly") {
  for (const std::size_t killed : {0, 1, 2}) {
    CAPTURE(killed);
    node_rig t;
    t.clocks = clocks_before_a_loss;
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

TEST_CASE(
    "node: a member is lost when another one has just left, and the one that left gives its solver "
    "state once more") {
  for (std::size_t leaves = 0; leaves < 3; ++leaves) {
    for (std::size_t killed = 0; killed < 3; ++killed) {
      if (killed == leaves) continue;
      CAPTURE(leaves);
      CAPTURE(killed);
      const auto stays = 3 - leaves - killed;
      node_rig t;
      t.clocks = clocks_before_a_loss;
      t.survive = 1;
      t.cluster(3);
      REQUIRE(t.until_clock(5));
      t.sim.tell(t.nodes[leaves]->it, interrupted{15, false, true});
      const auto& views = t.nodes[stays]->display->views;
      REQUIRE(until_in_time(t, 50, [&] { return views.size() == 2; }));
      t.kill(killed);
      go_on(t, {leaves, killed});
      CHECK(t.nodes[leaves]->exit_code() == 143);
      REQUIRE(views.size() == 3);
      CHECK(views[2].seats.size() == 1);
      CHECK(views[2].first_clock == views[1].first_clock);
      CHECK(t.weights(t.clocks) == chained(t, views));
    }
  }
}

TEST_CASE(
    "node: who is left alone goes back exactly where the one that has just left is lost, however "
    "far it has trained meanwhile") {
  for (const std::size_t leaves : {0, 1})
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      CAPTURE(leaves);
      CAPTURE(seed);
      std::mt19937 random(seed);
      node_rig t;
      t.clocks = clocks_before_a_loss;
      t.survive = 1;
      t.cluster(2);
      REQUIRE(t.until_clock(5));
      t.sim.tell(t.nodes[leaves]->it, interrupted{15, false, true});
      const auto& views = t.nodes[1 - leaves]->display->views;
      REQUIRE(until_in_time(t, 50, [&] { return views.size() == 2; }));
      t.some_turns(random, 20);
      t.kill(leaves);
      t.some_turns(random, 200);
      go_on(t, {leaves});
      CHECK(t.weights(t.clocks) == chained(t, views));
    }
}

TEST_CASE("node: who has left, and handed its solver state over, ends also where all others die") {
  node_rig t;
  t.clocks = 2000;  // they are killed long before
  t.survive = 1;
  t.cluster(3);
  REQUIRE(t.until_clock(5));
  t.sim.tell(t.nodes[2]->it, interrupted{15, false, true});
  const auto& leaver = *t.nodes[2];
  REQUIRE(
      until_in_time(t, 50, [&] { return leaver.display->said("left the run before iteration "); }));
  t.kill(0);
  t.kill(1);
  REQUIRE(until_in_time(t, 50, [&] { return leaver.result.has_value(); }));
  CHECK(leaver.exit_code() == 143);
}

TEST_CASE(
    "node: who has just joined does not go on alone with values that it may not have, when all "
    "others are lost") {
  std::size_t ended = 0;
  for (const std::size_t members : {2, 3})
    for (int steps = 0; steps < 400; steps += 40) {
      CAPTURE(members);
      CAPTURE(steps);
      node_rig t;
      t.clocks = 2000;  // the others are killed long before
      t.survive = 2;
      t.cluster(members);
      REQUIRE(t.until_clock(5));
      t.joiner("x");
      const auto& newcomer = *t.nodes[members];
      const auto& views = newcomer.display->views;
      REQUIRE(until_in_time(t, 200, [&] { return views.size() == 1; }));
      for (int step = 0; step < steps; ++step) (void)t.sim.step();
      for (std::size_t n = 0; n < members; ++n) t.kill(n);
      for (int ticks = 0; ticks < 500 && !newcomer.result && views.size() == 1; ++ticks) {
        for (int i = 0; i < 200 && t.sim.step(); ++i) {
        }
        t.sim.pass(std::chrono::milliseconds{20});
      }
      CAPTURE(newcomer.display->last_lines());
      if (views.size() > 1) {  // it has trained
        CHECK(views[1].first_clock > views[0].first_clock);
        continue;
      }
      ++ended;
      REQUIRE(newcomer.result);
      CHECK(newcomer.exit_code() == 3);
      // It may have trained an iteration, and three are more than are survived.
      const bool says_why = newcomer.error().find("all ") == 0 ||
                            newcomer.error().find("solver state is gone with") == 0;
      CHECK(says_why);
    }
  CHECK(ended > 0);
}

TEST_CASE(
    "node: a newcomer that is lost while its view is replaced, because another member is lost, is "
    "left out") {
  for (const std::size_t lost : {0, 2})
    for (int steps = 0; steps < 60; steps += 6) {
      CAPTURE(lost);
      CAPTURE(steps);
      node_rig t;
      t.clocks = 400;
      t.survive = 1;
      t.cluster(3);
      REQUIRE(t.until_clock(5));
      t.joiner("x");
      const auto& stays = *t.nodes[1]->display;
      REQUIRE(until_in_time(t, 200, [&] { return stays.views.size() == 2; }));
      t.kill(lost);
      for (int step = 0; step < 100'000 && !stays.said("view 3: "); ++step)
        if (!t.sim.step()) t.sim.pass(std::chrono::milliseconds{20});
      for (int step = 0; step < steps; ++step) (void)t.sim.step();
      t.kill(3);
      go_on(t, {lost, 3});
      CHECK(stays.views.back().seats.size() == 2);
      CHECK(t.weights(t.clocks) == chained(t, stays.views));
    }
}

namespace {

/// The connection between two members ends; both live.
void cut_between(node_rig& t, std::size_t one, std::size_t other) {
  const auto &a = t.nodes[one]->at, &b = t.nodes[other]->at;
  for (const auto& l : t.wiring->lines)
    if ((l->hosts[0] == a && l->hosts[1] == b) || (l->hosts[0] == b && l->hosts[1] == a)) l->cut();
}

}  // namespace

TEST_CASE(
    "node: where connections between members end though all live, they are linked again and all go "
    "on, or who is left out writes nothing") {
  struct cut {
    std::size_t members;
    std::vector<std::pair<std::size_t, std::size_t>> between;
  };
  for (const auto& c :
       std::vector<cut>{{3, {{0, 1}}}, {3, {{0, 2}}}, {3, {{1, 2}}}, {5, {{0, 1}, {0, 2}}}}) {
    CAPTURE(c.members);
    CAPTURE(c.between.front().first);
    CAPTURE(c.between.front().second);
    node_rig t;
    t.clocks = clocks_before_a_loss;
    t.survive = 1;
    t.cluster(c.members);
    REQUIRE(t.until_clock(5));
    for (const auto& [one, other] : c.between) cut_between(t, one, other);
    for (int ticks = 0; ticks < 1500; ++ticks) t.sim.advance(std::chrono::milliseconds{20});
    // Either end may be the one, whoever's ballot came first.
    std::size_t go_on = 0, survivor = 0;
    for (std::size_t n = 0; n < c.members; ++n) {
      CAPTURE(n);
      const auto& it = *t.nodes[n];
      REQUIRE(it.result);
      if (it.exit_code() == 0) {
        ++go_on;
        survivor = n;
        continue;
      }
      CHECK(it.exit_code() == 3);
      CHECK(it.error().find("the other nodes ") == 0);
      CHECK(!it.result->others.empty());
      CHECK(it.display->snapshots.empty());
    }
    CHECK(2 * go_on > c.members);
    CHECK(t.folder.snapshot_files() == 2);
    const auto& views = t.nodes[survivor]->display->views;
    REQUIRE(views.size() >= 2);
    CHECK(views.back().seats.size() == go_on);
    CHECK(t.weights(t.clocks) == chained(t, views));
  }
}

TEST_CASE("node: a member that fails by itself says so, and the others go on without it") {
  for (const std::size_t fails : {0, 1}) {
    CAPTURE(fails);
    node_rig t;
    t.clocks = clocks_before_a_loss;
    t.survive = 1;
    t.cluster(2);
    t.nodes[fails]->display->on_step = [](const progress::step& s) {
      if (s.done == 6) throw std::runtime_error("its disk is broken");
    };
    go_on(t, {fails});
    CHECK(t.nodes[fails]->exit_code() == 1);
    CHECK(t.nodes[fails]->error().find("its disk is broken") != std::string::npos);
    const auto& other = *t.nodes[1 - fails];
    CHECK(other.display->said("has failed: "));
    REQUIRE(other.display->views.size() == 2);
    CHECK(t.weights(t.clocks) ==
          resumed_at_the_change(t, 2, 1, other.display->views[1].first_clock));
  }
}

TEST_CASE(
    "node: where a second member fails as the first one did, the run ends with what was trained") {
  node_rig t;
  t.clocks = clocks_before_a_loss;
  t.survive = 1;
  t.cluster(4);
  for (const std::size_t fails : {1, 2})
    t.nodes[fails]->display->on_step = [](const progress::step& s) {
      if (s.done >= 6) throw std::runtime_error("record 17 is broken");
    };
  for (int ticks = 0; ticks < 1500 && !(t.nodes[0]->result && t.nodes[3]->result); ++ticks)
    t.sim.advance(std::chrono::milliseconds{20});
  for (const std::size_t n : {0, 3}) {
    CAPTURE(n);
    CHECK(t.nodes[n]->exit_code() == 3);
    CHECK(t.nodes[n]->error().find("failed within 3 iterations") != std::string::npos);
  }
  CHECK(t.nodes[0]->display->snapshots.size() == 1);
}

TEST_CASE("node: who has slept takes nobody for dead, and does not train on alone") {
  node_rig t;
  t.clocks = clocks_before_a_loss;
  t.survive = 1;
  t.cluster(3);
  REQUIRE(t.until_clock(5));
  test::has_slept(t, 0);
  t.kill(1);
  t.kill(2);
  for (int ticks = 0; ticks < 1500; ++ticks) t.sim.advance(std::chrono::milliseconds{20});
  CHECK(t.nodes[0]->display->said("paused: this node hears 1 of 3 members of view 1"));
  CHECK(!t.nodes[0]->result);
  CHECK(t.nodes[0]->display->views.size() == 1);
  CHECK(t.folder.snapshot_files() == 0);
}
