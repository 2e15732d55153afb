// A newcomer dies after the view with it was told and before that view has begun: another one takes its place, and what is trained
// is what the others train in it.
#include "tests/actors/node/resumed_run.hpp"

#include <algorithm>

using namespace poseidon;
using test::node_rig, test::resumed_at_the_change, test::train_without_a_change;

namespace {

constexpr std::uint64_t enough_clocks = 60;

void all_but(const node_rig& t, std::initializer_list<std::size_t> others) {
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    if (std::count(others.begin(), others.end(), n) > 0) continue;
    CAPTURE(n);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
  }
}

/// Node 3 dies at this point of the view that was to begin with it.
void kill_the_last(node_rig& t, const std::string& when) {
  if (when == "it is told") REQUIRE(t.until_said(3, "joined: worker 3 of "));
  if (when == "it waits") REQUIRE(t.until_said(3, "all actors stand; waiting for the others"));
  t.kill(3);
}

}  // namespace

TEST_CASE(
    "node: a newcomer that dies before its view begins is left out, and the other one joins") {
  for (const char* when : {"it is told", "it waits"}) {
    CAPTURE(when);
    node_rig t;
    t.clocks = enough_clocks;
    SUBCASE("all on the server") {}
    SUBCASE("with copies of solver state") {
      t.survive = 1;
    }
    SUBCASE("a layer on factors") {
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    }
    t.cluster(2);
    REQUIRE(t.until_clock(2));
    t.joiner("c");
    t.joiner("d");
    kill_the_last(t, when);
    t.sim.settle();
    all_but(t, {3});
    CHECK(t.nodes[0]->display->said("worker 3, which was about to join, has gone: "));
    const auto& views = t.nodes[0]->display->views;
    REQUIRE(views.size() == 2);
    CHECK(views[1].epoch == 3);  // the second one never began
    CHECK(views[1].seats == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(t.nodes[2]->display->views.back().epoch == 3);
    CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 2, 3, views[1].first_clock));
  }
}

TEST_CASE("node: where the only newcomer dies, the members go on as if nobody had come") {
  node_rig t, alike;
  t.clocks = enough_clocks;
  t.cluster(2);
  REQUIRE(t.until_clock(2));
  t.joiner("c");
  REQUIRE(t.until_said(2, "joined: worker 2 of 3"));
  t.kill(2);
  t.sim.settle();
  all_but(t, {2});
  CHECK(t.nodes[1]->display->said("view 3: nobody has joined; 2 nodes train from iteration "));
  train_without_a_change(alike, 2, enough_clocks);
  CHECK(t.weights(t.clocks) == alike.weights(enough_clocks));
}

TEST_CASE("node: the next leader, too, takes a newcomer out that dies as the view changes") {
  for (const char* when : {"it is told", "it waits"}) {
    CAPTURE(when);
    node_rig t;
    t.clocks = enough_clocks;
    t.cluster(2);
    REQUIRE(t.until_clock(2));
    t.sim.tell(t.nodes[0]->it, interrupted{15, false, true});
    t.joiner("c");
    t.joiner("d");
    REQUIRE(t.until_said(0, "worker 3 joined from d:7600"));
    t.sim.pass(std::chrono::milliseconds{200});
    kill_the_last(t, when);
    t.sim.settle();
    all_but(t, {0, 3});
    CHECK(t.nodes[0]->exit_code() == 143);
    CHECK(t.nodes[0]->display->said("left the run before iteration "));
    const auto& last = t.nodes[1]->display->views.back();
    CHECK(last.seats == std::vector<std::uint32_t>{1, 2});
  }
}
