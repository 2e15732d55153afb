// Nodes that wait because too few are heard, or because those that are heard answer late: when they ask, go on, and give up.
#include "tests/actors/node/time_passes.hpp"

using namespace poseidon;
using test::ends_well, test::has_slept, test::hosts, test::is_left_out, test::node_rig,
    test::say_go_on, test::train_in_a_cluster, test::until, test::until_ended, test::until_said;

TEST_CASE(
    "paused: the older one of two asks first whether the other one has gone on, if it has "
    "slept") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  train_in_a_cluster(t, 2, 1500);
  has_slept(t, 0);
  // The other one has ended the connection.
  for (const auto& l : t.wiring->lines) l->cut();
  t.wiring->split(hosts("b"));
  for (const std::size_t n : {0, 1})
    REQUIRE(until_said(t, n, "paused: this node hears 1 of 2 members of view 1"));
  SUBCASE("it has: it comes back to it") {
    say_go_on(t, "b:7600");
    REQUIRE(until_said(t, 1, "view 2: worker 0 (a:7600) is lost"));
    CHECK(t.nodes[0]->display->views.size() == 1);
    t.wiring->heal();
    is_left_out(t, 0);
    ends_well(t, 1);
    CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[1]->display->views));
  }
  SUBCASE("it has, while a link to this node was under way, which it turns away") {
    bool said = false;
    t.wiring->on_line = [&](const std::shared_ptr<test::line>& l) {
      if (said || l->hosts[0] == l->hosts[1]) return;
      if (l->hosts[0] == "a:7600") throw socket_error("b:7600 does not answer", ETIMEDOUT);
      said = true;
      say_go_on(t, "b:7600");
    };
    t.wiring->heal();
    REQUIRE(until_said(t, 0, "worker 1 (b:7600) is heard again"));
    is_left_out(t, 0);
    CHECK(t.nodes[0]->display->views.size() == 1);
    ends_well(t, 1);
  }
  SUBCASE("nobody listens there any more: it goes on") {
    t.wiring->heal();
    t.kill(1);
    REQUIRE(until_said(t, 0, "view 2: worker 1 (b:7600) is lost"));
    ends_well(t, 0);
  }
  SUBCASE("its machine gives no answer for ten seconds: it goes on") {
    REQUIRE(until_said(t, 0, "view 2: worker 1 (b:7600) is lost"));
    t.wiring->heal();
    is_left_out(t, 1);
    ends_well(t, 0);
    CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[0]->display->views));
  }
  SUBCASE("its user says so: it goes on at once") {
    say_go_on(t, "a:7600");
    REQUIRE(until(
        t, [&] { return t.nodes[0]->display->views.size() == 2; }, 20));
    t.wiring->heal();
    is_left_out(t, 1);
    ends_well(t, 0);
  }
}

TEST_CASE("paused: a node that waits ends when its user wants it, and keeps what it has") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  train_in_a_cluster(t, 2, 1500);
  t.wiring->split(hosts("b"));
  REQUIRE(until_said(t, 1, "paused: this node hears 1 of 2"));
  SUBCASE("with Ctrl-C") {
    t.sim.tell(t.nodes[1]->it, interrupted{2, false, false});
  }
  SUBCASE("with SIGTERM") {
    t.sim.tell(t.nodes[1]->it, interrupted{15, false, true});
  }
  REQUIRE(until_ended(t, 1));
  CHECK(t.nodes[1]->exit_code() == 3);
  CHECK(t.nodes[1]->error().find("paused: this node hears 1 of 2") == 0);
  CHECK(t.nodes[1]->error().find("Kept: weights of iteration ") != std::string::npos);
  CHECK(t.nodes[1]->error().find("_paused_node1.caffemodel") != std::string::npos);
  CHECK(t.nodes[1]->result->others.empty());
}

TEST_CASE("paused: a node that is done, and does not hear the others any more, keeps the limit") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{1};
  train_in_a_cluster(t, 4, 40);
  REQUIRE(until_said(t, 3, "this node is done, at version 40"));
  REQUIRE(!t.nodes[3]->result);
  t.wiring->split(hosts("d"));
  REQUIRE(until_ended(t, 3));
  CHECK(t.nodes[3]->exit_code() == 3);
  CHECK(t.nodes[3]->error().find("paused: this node hears 1 of 4") == 0);
  CHECK(t.nodes[3]->error().find("It has waited for --progress-limit") != std::string::npos);
}

TEST_CASE(
    "paused: who leaves waits for those that can decide and are slow, and takes nobody with it "
    "when it gives up") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  train_in_a_cluster(t, 4, 1500);
  // What worker 0 says and hears is slow.
  const auto of_worker_0 = [&](auto&& what) {
    for (const auto& l : t.wiring->lines)
      if (l->hosts[0] == "a:7600" || l->hosts[1] == "a:7600") {
        what(*l, 0);
        what(*l, 1);
      }
  };
  of_worker_0([](test::line& l, int to) { l.stall(to); });
  t.sim.tell(t.nodes[3]->it, interrupted{15, false, true});
  t.wiring->split(hosts("c"));
  REQUIRE(until_said(t, 3, "paused: this node hears 3 of 4 members of view 1"));
  SUBCASE("they decide within ten seconds") {
    for (int i = 0; i < 100; ++i) t.sim.pass(std::chrono::milliseconds{20});
    CHECK(!t.nodes[3]->result);
    of_worker_0([](test::line& l, int to) { l.go_on(to); });
    REQUIRE(until_ended(t, 3));
    CHECK(t.nodes[3]->exit_code() == 143);
  }
  SUBCASE("they do not") {
    REQUIRE(until_ended(t, 3));
    CHECK(t.nodes[3]->exit_code() == 3);
    CHECK(t.nodes[3]->error().find("It was told to end") != std::string::npos);
    REQUIRE(until_said(t, 1, "worker 3 (d:7600) said goodbye: paused"));
    CHECK(!until(
        t, [&] { return t.nodes[0]->result || t.nodes[1]->result; }, 100));
  }
}
