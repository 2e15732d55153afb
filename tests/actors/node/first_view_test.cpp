// A node is lost before the run's first iteration has ended: while nodes gather, as the first view forms, or in that iteration. The
// others begin without it, and train what they would have trained had it never been there.
#include "tests/actors/node/resumed_run.hpp"
#include "tests/number_asked.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace poseidon;
using test::chained, test::node_rig, test::train_without_a_change;

namespace {

constexpr std::uint64_t some_clocks = 20;

/// Runs until the nodes that live have ended, or half a minute has passed.
void go_on(node_rig& t) {
  for (int ticks = 0; ticks < 1500 && !t.all_ended(); ++ticks) {
    t.wiring->close_unaccepted();
    t.sim.settle();
    t.sim.pass(std::chrono::milliseconds{20});
  }
}

void all_end_well(const node_rig& t) {
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    if (t.killed.contains(n)) continue;
    CAPTURE(n);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
  }
}

/// What so many nodes train that are never disturbed.
std::string undisturbed(const node_rig& like, std::size_t workers) {
  node_rig t;
  t.more_solver = like.more_solver;
  t.routes = like.routes;
  train_without_a_change(t, workers, like.clocks, like.resume);
  return t.weights(like.clocks);
}

}  // namespace

TEST_CASE(
    "node: one that is alone goes on with the solver state of its file, whether it listens or "
    "not") {
  node_rig whole, half;
  train_without_a_change(whole, 1, some_clocks);
  train_without_a_change(half, 1, 5);
  for (const bool listens : {false, true}) {
    CAPTURE(listens);
    node_rig t;
    t.listens = listens;
    train_without_a_change(t, 1, some_clocks, half.state(5));
    CHECK(t.weights(some_clocks) == whole.weights(some_clocks));
  }
}

TEST_CASE("node: one that dies while nodes gather is replaced by another one") {
  for (const std::uint32_t survive : {0, 1}) {
    CAPTURE(survive);
    node_rig t;
    t.clocks = some_clocks;
    t.survive = survive;
    t.first(3);
    t.sim.settle();
    t.joiner("b");
    REQUIRE(t.until_said(0, "worker 1 joined"));
    t.sim.settle();
    t.kill(1);
    t.sim.settle();
    CHECK(t.nodes[0]->display->said("worker 1 has gone before the run began: "));
    CHECK(t.nodes[0]->display->said("; waiting for 2 more nodes"));
    CHECK(!t.nodes[0]->result);
    t.joiner("c");
    t.joiner("d");
    go_on(t);
    all_end_well(t);
    CHECK(t.nodes[0]->display->views.front().seats.size() == 3);
    CHECK(t.weights(t.clocks) == undisturbed(t, 3));
  }
}

TEST_CASE(
    "node: one that dies as the first view forms is left out, and the others begin without it") {
  for (const char* when : {"joined: worker 2 of ", "all actors stand; waiting for the others"}) {
    for (const std::size_t killed : {1, 2}) {
      CAPTURE(when);
      CAPTURE(killed);
      node_rig t;
      t.clocks = some_clocks;
      t.survive = 1;
      t.cluster(3);
      REQUIRE(t.until_said(2, when));
      t.kill(killed);
      go_on(t);
      all_end_well(t);
      CHECK(t.nodes[0]->display->said("worker " + std::to_string(killed) +
                                      ", which was about to join, has gone: "));
      const auto& views = t.nodes[0]->display->views;
      REQUIRE(views.size() == 1);
      CHECK(views[0].epoch == 2);  // the first one never began
      CHECK(views[0].seats.size() == 2);
      CHECK(t.weights(t.clocks) == undisturbed(t, 2));
    }
  }
}

TEST_CASE("node: of two nodes one dies as the first view forms, and the first node trains alone") {
  node_rig t;
  t.clocks = some_clocks;
  t.survive = 1;
  t.cluster(2);
  REQUIRE(t.until_said(1, "joined: worker 1 of "));
  t.kill(1);
  go_on(t);
  all_end_well(t);
  CHECK(t.weights(t.clocks) == undisturbed(t, 1));
}

TEST_CASE("node: with --survive 0 the first view needs all its members") {
  node_rig t;
  t.clocks = some_clocks;
  t.cluster(3);
  REQUIRE(t.until_said(2, "joined: worker 2 of "));
  t.kill(2);
  go_on(t);
  for (const std::size_t n : {0, 1}) CHECK(t.nodes[n]->exit_code() == 3);
}

TEST_CASE("node: who fails by itself before the run begins ends it, and says why") {
  node_rig t;
  t.clocks = some_clocks;
  t.survive = 1;
  t.cluster(3);
  t.nodes[2]->display->on_line = [](const std::string& line) {
    if (line.starts_with("joined: worker 2 of ")) throw std::runtime_error("no data here");
  };
  go_on(t);
  for (const std::size_t n : {0, 1}) {
    CAPTURE(n);
    CHECK(t.nodes[n]->exit_code() == 3);
    CHECK(t.nodes[n]->error().find("no data here") != std::string::npos);
  }
}

TEST_CASE("node: the first node is lost before the others have its values: they say so, and end") {
  node_rig t;
  t.clocks = some_clocks;
  t.survive = 1;
  t.cluster(3);
  REQUIRE(t.until_said(2, "all actors stand; waiting for the others"));
  t.kill(0);
  go_on(t);
  for (const std::size_t n : {1, 2}) {
    CAPTURE(n);
    CHECK(t.nodes[n]->exit_code() == 3);
    CHECK(t.nodes[n]->error().find("the first node is lost before all others had the values that "
                                   "iteration 0 begins with. Nothing has been trained: start the "
                                   "run again") != std::string::npos);
  }
}

TEST_CASE(
    "node: the first node is lost in iteration 0: who has all its values goes on, and no bit is "
    "lost") {
  std::size_t went_on = 0, ended = 0;
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = some_clocks;
    t.survive = 1;
    if (seed % 2 == 0)
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    const std::size_t members = 2 + random() % 3;
    CAPTURE(members);
    t.cluster(members);
    REQUIRE(t.until_said(members - 1, "all actors stand; waiting for the others"));
    t.some_turns(random, 340);
    if (t.nodes[0]->display->done > 0) continue;
    t.kill(0);
    for (int ticks = 0; ticks < 100; ++ticks) {
      t.some_turns(random, 300);
      t.sim.pass(std::chrono::milliseconds{20});
    }
    go_on(t);
    for (std::size_t n = 1; n < members; ++n) {
      CAPTURE(n);
      const auto& it = *t.nodes[n];
      if (it.exit_code() == 0) {
        CHECK(t.weights(t.clocks) == chained(t, it.display->views));
        ++went_on;
      } else {
        CHECK(it.exit_code() == 3);
        const bool lacks =
            it.error().find("the first node is lost before all others had the values") !=
            std::string::npos;
        const bool is_out = it.error().find("the other nodes go on without this one") == 0;
        CHECK_MESSAGE((lacks || is_out), it.error());
        ++ended;
      }
    }
  }
  CHECK(went_on > 20);
  CHECK(ended > 20);
}

TEST_CASE(
    "node: the solver state of a resumed run outlives a node that is lost in its first iteration") {
  node_rig before;
  train_without_a_change(before, 2, 5);
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = some_clocks;
    t.survive = 1;
    t.resume = before.state(5);
    t.cluster(3);
    REQUIRE(t.until_said(2, "all actors stand; waiting for the others"));
    t.some_turns(random, 300);
    const std::size_t killed = 1 + random() % 2;
    t.kill(killed);
    go_on(t);
    all_end_well(t);
    CHECK(t.weights(t.clocks) == chained(t, t.nodes[0]->display->views));
  }
}

namespace {

/// Nodes but the first one are killed at any moment from the first message on; for each, another one is started.
void lose_before_it_begins(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.clocks = some_clocks;
  t.survive = 1 + random() % 2;
  if (random() % 2 == 0) t.more_solver = "poseidon { staleness: 1 } ";
  if (random() % 2 == 0)
    t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
  const std::size_t members = 2 + random() % 3;
  CAPTURE(members);
  t.first(members);
  t.sim.settle();
  for (std::size_t w = 1; w < members; ++w) t.joiner(std::string(1, static_cast<char>('a' + w)));
  for (auto left = 1 + random() % 3; left > 0; --left) {
    t.some_turns(random, random() % 2 == 0 ? 600 : 120);
    const auto who = 1 + random() % (t.nodes.size() - 1);
    if (t.killed.contains(who) || t.nodes[who]->result) continue;
    t.kill(who);
    if (random() % 2 == 0) t.sim.pass(std::chrono::milliseconds{20});
    if (random() % 2 == 0) t.some_turns(random, 100);
    t.joiner(std::string(1, static_cast<char>('k' + t.killed.size())));
  }
  t.go_on_anyhow(random);
  const auto ends = t.ends();
  CAPTURE(ends);
  const auto& first = *t.nodes[0];
  REQUIRE(first.result);
  if (first.error().find("solver state is gone with") != std::string::npos) return;
  CHECK(first.error() == "");
  CHECK(first.exit_code() == 0);
  if (!t.more_solver.empty())
    return;  // what a stale run trains depends on the order of its messages
  CHECK(t.weights(t.clocks) == chained(t, first.display->views));
}

}  // namespace

TEST_CASE(
    "node: in the first iteration the first node is lost while the others leave another one out: "
    "all that have its values go on, whatever each of them has heard by then") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 400);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    node_rig t;
    t.clocks = some_clocks;
    t.survive = 1;
    t.cluster(5);
    for (std::size_t n = 0; n < 5; ++n) REQUIRE(t.until_clock(1, n));
    t.kill(2);
    t.some_turns(random, 600);
    t.kill(0);
    t.go_on_anyhow(random);
    const auto ends = t.ends();
    CAPTURE(ends);
    all_end_well(t);
  }
}

TEST_CASE("node: nodes are killed before the run begins, in whatever order, and no bit is lost") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 200);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_before_it_begins(static_cast<std::uint32_t>(seed));
}
