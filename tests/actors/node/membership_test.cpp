// Nodes that join and leave while others train. What they train is compared, bit by bit, with that of a run which stops at the
// iteration of the change, and is resumed with the members of the next view.
#include "tests/actors/node/resumed_run.hpp"

#include <cstdlib>

using namespace poseidon;
using test::node_rig, test::resumed_at_the_change, test::train_without_a_change;

namespace {

constexpr std::uint64_t clocks_of_a_change = 200;

/// The iteration from which the view with this number holds, as node `by` says; 0: it has not said so.
std::uint64_t first_clock_of_view(const node_rig& t, std::uint64_t epoch, std::size_t by) {
  const auto begin = "view " + std::to_string(epoch) + ": ";
  const std::string from = " from iteration ";
  for (const auto& line : t.nodes[by]->display->lines)
    if (const auto at = line.find(from); line.starts_with(begin) && at != std::string::npos)
      return std::strtoull(line.c_str() + at + from.size(), nullptr, 10);
  return 0;
}

/// Two nodes, and a third one that comes when they train.
void let_a_third_one_join(node_rig& t, const std::string& at = "a") {
  t.clocks = clocks_of_a_change;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.joiner("c", {at});
  t.sim.settle();
}

void leave(node_rig& t, std::size_t node) {
  t.sim.tell(t.nodes[node]->it, interrupted{15, false, true});
  REQUIRE(t.until_said(0, "worker " + std::to_string(node) + " (" +
                              std::string(1, static_cast<char>('a' + node)) + ":7600) leaves"));
  for (int i = 0; i < 20; ++i) t.sim.step();  // the leader has heard of it
}

void all_but_the_leaver_end_with_0(const node_rig& t, std::size_t leaver) {
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == (n == leaver ? 128 + 15 : 0));
    CHECK(t.nodes[n]->display->said("is done, at version 200") == (n != leaver));
  }
}

}  // namespace

TEST_CASE("membership: a node that joins two that train gives the same as three that go on") {
  node_rig t;
  SUBCASE("all on the server") {}
  SUBCASE("a layer on factors") {
    t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
  }
  SUBCASE("with clipped gradients") {
    t.more_solver = "clip_gradients: 0.01";
  }
  SUBCASE("two arrays of solver state for each value") {
    t.more_solver = "type: 'Adam' momentum2: 0.99";
  }
  let_a_third_one_join(t);
  REQUIRE(t.nodes.size() == 3);
  all_but_the_leaver_end_with_0(t, 3);
  const auto change = first_clock_of_view(t, 2, 0);
  REQUIRE(change >= 3);
  for (const auto& n : t.nodes) CHECK(n->display->said("joined"));
  CHECK(first_clock_of_view(t, 2, 1) == change);
  CHECK(
      t.nodes[2]->display->said("joined: worker 2 of 3, from iteration " + std::to_string(change)));
  CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 2, 3, change));
}

TEST_CASE(
    "membership: a member that leaves gives its solver state away, and the others go on as if "
    "resumed") {
  for (const std::size_t leaver : {2, 1}) {
    CAPTURE(leaver);
    node_rig t;
    t.clocks = clocks_of_a_change;
    SUBCASE("all on the server") {}
    SUBCASE("a layer on factors") {
      t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
    }
    t.cluster(3);
    REQUIRE(t.until_clock(3));
    leave(t, leaver);
    t.sim.advance(std::chrono::milliseconds{200});
    all_but_the_leaver_end_with_0(t, leaver);
    CHECK(t.nodes[leaver]->display->said("left the run before iteration "));
    const auto change = first_clock_of_view(t, 2, 0);
    REQUIRE(change >= 3);
    CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 3, 2, change));
  }
}

TEST_CASE(
    "membership: when the leader leaves, the member with the lowest seat leads and writes the "
    "snapshot") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.cluster(3);
  REQUIRE(t.until_clock(3));
  leave(t, 0);
  t.sim.advance(std::chrono::milliseconds{200});
  all_but_the_leaver_end_with_0(t, 0);
  CHECK(t.nodes[1]->display->said("this node leads from now on"));
  CHECK(!t.nodes[2]->display->said("this node leads from now on"));
  CHECK(t.nodes[0]->display->snapshots.empty());
  CHECK(t.nodes[1]->display->snapshots.size() == 1);
  const auto change = first_clock_of_view(t, 2, 1);
  REQUIRE(change >= 3);
  CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 3, 2, change));
}

TEST_CASE("membership: a node joins the one that leads after the first leader has left") {
  node_rig t;
  t.clocks = 600;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  leave(t, 0);
  t.sim.pass(std::chrono::milliseconds{200});
  REQUIRE(t.until([&] { return first_clock_of_view(t, 2, 1) > 0; }));
  t.joiner("c", {"b"});
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 143);
  for (const std::size_t stayed : {1, 2}) {
    CHECK(t.nodes[stayed]->error() == "");
    CHECK(t.nodes[stayed]->exit_code() == 0);
  }
  CHECK(t.nodes[2]->display->said("joined: worker 2 of 2, from iteration "));
  CHECK(first_clock_of_view(t, 3, 1) > first_clock_of_view(t, 2, 1));
}

TEST_CASE("membership: a run of one node that listens can be joined") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.first(1);
  REQUIRE(t.until_clock(3));
  t.joiner("b");
  t.sim.settle();
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 0);
  }
  const auto change = first_clock_of_view(t, 2, 0);
  REQUIRE(change >= 3);
  CHECK(t.weights(t.clocks) == resumed_at_the_change(t, 1, 2, change));
}

TEST_CASE(
    "membership: a node that dials another member than the leader hears where the leader is") {
  node_rig t;
  let_a_third_one_join(t, "b");
  all_but_the_leaver_end_with_0(t, 3);
  CHECK(t.nodes[2]->display->said("b:7600 is a member; the leader listens at a:7600"));
  CHECK(first_clock_of_view(t, 2, 0) >= 3);
}

namespace {

void cut_links_of_the_third(node_rig& t) {
  for (const std::uint32_t other : {0, 1}) {
    const auto& links = t.nodes[other]->network->links;
    if (links.contains(2)) t.sim.tell(links.at(2), test::cut_line{"reset"});
  }
  t.sim.tell(t.nodes[2]->network->links.at(0), test::cut_line{"reset"});
}

}  // namespace

TEST_CASE("membership: a newcomer that dies before the next view costs the others nothing") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.joiner("c");
  SUBCASE("before it is ready") {
    REQUIRE(t.until_said(0, "worker 2 joined"));
  }
  SUBCASE("when it is ready") {
    REQUIRE(t.until_said(0, "is ready to join"));
  }
  SUBCASE("while the others drain") {
    REQUIRE(t.until_said(1, "membership: another view begins with iteration "));
  }
  caf::anon_send_exit(t.nodes[2]->it.untyped(), caf::exit_reason::kill);
  cut_links_of_the_third(t);
  t.sim.settle();
  for (const std::size_t stayed : {0, 1}) {
    CHECK(t.nodes[stayed]->error() == "");
    CHECK(t.nodes[stayed]->exit_code() == 0);
  }
  CHECK(t.nodes[0]->display->said("worker 2, which was about to join, has gone: "));
  node_rig alike;
  train_without_a_change(alike, 2, t.clocks);
  CHECK(t.weights(t.clocks) == alike.weights(t.clocks));
}

TEST_CASE("membership: a newcomer whose connections break joins again") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  t.joiner("c");
  SUBCASE("before it is ready") {
    REQUIRE(t.until_said(2, "getting ready to join them"));
  }
  SUBCASE("when it is ready") {
    REQUIRE(t.until_said(0, "is ready to join"));
  }
  cut_links_of_the_third(t);
  t.sim.settle();
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 0);
  }
  CHECK(t.nodes[2]->display->said("joined: worker 3 of 3"));
}

TEST_CASE("membership: all members that want to leave at once end the run, with its snapshot") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  leave(t, 1);
  leave(t, 0);
  t.sim.advance(std::chrono::milliseconds{200});
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 143);
    CHECK(n->display->said("all nodes leave"));
    CHECK(!n->display->said("is done, at version 200"));
  }
  CHECK(t.folder.snapshot_files() == 2);
}

TEST_CASE(
    "membership: nodes that come together join in one view, and one comes as another leaves") {
  node_rig t;
  t.clocks = clocks_of_a_change;
  t.cluster(2);
  REQUIRE(t.until_clock(3));
  leave(t, 1);
  t.joiner("c");
  t.joiner("d");
  t.sim.advance(std::chrono::milliseconds{200});
  all_but_the_leaver_end_with_0(t, 1);
  CHECK(t.nodes[0]->display->said("worker 3 (d:7600) joined"));
  CHECK(t.nodes[0]->display->said("worker 1 (b:7600) left"));
}
