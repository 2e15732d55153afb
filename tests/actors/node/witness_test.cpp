// Two nodes that train, and a witness: which of them is lost, or cut off, one side goes on, and no bit is lost.
#include "tests/actors/node/time_passes.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace poseidon::witness_runs {

using test::ends_well, test::hosts, test::is_left_out, test::node_rig, test::until,
    test::until_ended, test::until_said;

namespace {

using seat_numbers = std::vector<std::uint32_t>;

/// Nodes a and b train, and w votes: it has seat 2.
void train_with_a_witness(node_rig& t, std::uint64_t clocks = 1500) {
  t.clocks = clocks;
  t.survive = 1;
  t.cluster(2);
  REQUIRE(t.until_clock(5));
  t.witness_at("w");
  REQUIRE(until_said(t, 0, "view 2: witness 2 (w:7600) joined; 2 nodes train from iteration "));
  REQUIRE(until_said(t, 1, "view 2: witness 2 (w:7600) joined"));
  REQUIRE(until_said(t, 2, "view 2: worker 0 (a:7600), worker 1 (b:7600) train from iteration "));
}

/// That node shows a view with these seats.
bool until_view(node_rig& t, std::size_t by, const seat_numbers& members,
                const seat_numbers& witnesses) {
  return until(t, [&] {
    const auto& all = t.nodes[by]->display->views;
    return !all.empty() && all.back().seats == members && all.back().witnesses == witnesses;
  });
}

void equals_the_chain(const node_rig& t, std::size_t by) {
  CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[by]->display->views));
}

}  // namespace

TEST_CASE("witness: it joins while all train, changes no bit, and goes when the run ends") {
  node_rig t;
  train_with_a_witness(t, 100);
  CHECK(t.nodes[0]->display->said(" on, with 1 witness, after a pause of "));
  for (const std::size_t n : {0, 1, 2}) ends_well(t, n);
  CHECK(t.nodes[2]->display->said("the run has ended"));
  for (const std::size_t n : {0, 1}) {
    const auto& views = t.nodes[n]->display->views;
    REQUIRE(views.size() == 2);
    CHECK(views[1].seats == seat_numbers{0, 1});
    CHECK(views[1].witnesses == seat_numbers{2});
  }
  node_rig alike;
  test::train_without_a_change(alike, 2, t.clocks);
  CHECK(t.weights(t.clocks) == alike.weights(t.clocks));
}

TEST_CASE(
    "witness: one that comes while nodes gather is not one of them, and is in the second view") {
  node_rig t;
  t.clocks = 100;
  t.survive = 1;
  t.first(2);
  t.sim.settle();
  t.witness_at("w");
  t.sim.settle();
  CHECK(t.nodes[0]->display->said("witness 1 joined from "));
  CHECK(!t.nodes[0]->display->said("view 1"));
  t.joiner("b");
  for (const std::size_t n : {0, 1, 2}) ends_well(t, n);
  REQUIRE(t.nodes[0]->display->views.size() == 2);
  CHECK(t.nodes[0]->display->views[0].seats == seat_numbers{0, 2});
  CHECK(t.nodes[0]->display->views[0].witnesses.empty());
  CHECK(t.nodes[0]->display->views[1].witnesses == seat_numbers{1});
  equals_the_chain(t, 0);
}

TEST_CASE(
    "witness: it joins one node, at the address of any member or of itself, and others join") {
  node_rig t;
  t.clocks = 2000;
  t.survive = 1;
  t.first(1);
  REQUIRE(t.until_clock(5));
  t.witness_at("w");
  REQUIRE(until_view(t, 0, {0}, {1}));
  t.joiner("b", {"w"});  // which says where the leader is
  REQUIRE(until_view(t, 0, {0, 2}, {1}));
  REQUIRE(until_view(t, 2, {0, 2}, {1}));
  for (const std::size_t n : {0, 1, 2}) ends_well(t, n);
  equals_the_chain(t, 0);
}

TEST_CASE("witness: where the two that train do not hear each other one of them goes on") {
  node_rig t;
  train_with_a_witness(t);
  SUBCASE("the younger one, where the older one is alone") {
    t.wiring->split(hosts("a"));
    REQUIRE(until_said(t, 1, "view 3: worker 0 (a:7600) is lost"));
    REQUIRE(until_said(t, 0,
                       "paused: this node hears 1 of 3 members of view 2 (one of them a "
                       "witness)"));
    t.wiring->heal();
    is_left_out(t, 0);
    t.come_back(0, "c");
    REQUIRE(until_view(t, 1, {1, 3}, {2}));
    for (const std::size_t n : {1, 2, 3}) ends_well(t, n);
    equals_the_chain(t, 1);
  }
  SUBCASE("the older one, where the younger one is alone") {
    t.wiring->split(hosts("b"));
    REQUIRE(until_said(t, 0, "view 3: worker 1 (b:7600) is lost"));
    REQUIRE(until_said(t, 1, "paused: this node hears 1 of 3"));
    t.wiring->heal();
    is_left_out(t, 1);
    t.come_back(1, "c");
    REQUIRE(until_view(t, 0, {0, 3}, {2}));
    for (const std::size_t n : {0, 2, 3}) ends_well(t, n);
    equals_the_chain(t, 0);
  }
  SUBCASE("the older one, where both hear the witness") {
    for (const auto& l : t.wiring->lines)
      if ((l->hosts[0] == "a:7600" && l->hosts[1] == "b:7600") ||
          (l->hosts[0] == "b:7600" && l->hosts[1] == "a:7600"))
        l->cut(true);
    REQUIRE(until(t, [&] { return t.nodes[0]->display->views.size() == 3 || t.nodes[1]->result; }));
    for (const std::size_t n : {0, 1})
      if (!until(
              t, [&] { return t.nodes[n]->result.has_value(); }, 3000))
        return;
    CHECK(t.nodes[0]->exit_code() == 0);
    equals_the_chain(t, 0);
  }
}

TEST_CASE("witness: a killed node is survived as ever, and the other one goes on") {
  for (const std::size_t victim : {0, 1}) {
    CAPTURE(victim);
    const std::size_t other = 1 - victim;
    node_rig t;
    train_with_a_witness(t, 300);
    t.kill(victim);
    REQUIRE(until_view(t, other, {static_cast<std::uint32_t>(other)}, {2}));
    for (const std::size_t n : {other, std::size_t{2}}) ends_well(t, n);
    equals_the_chain(t, other);
  }
}

TEST_CASE(
    "witness: without it the others go on, and it comes back by itself where it was cut off") {
  node_rig t;
  train_with_a_witness(t);
  SUBCASE("killed") {
    t.kill(2);
    for (const std::size_t n : {0, 1}) {
      REQUIRE(until_view(t, n, {0, 1}, {}));
      CHECK(t.nodes[n]->display->said("view 3: witness 2 (w:7600) is lost; 2 nodes train from "));
    }
    t.witness_at("v");
    REQUIRE(until_view(t, 0, {0, 1}, {3}));
    t.killed.insert(2);
    for (const std::size_t n : {0, 1, 3}) ends_well(t, n);
  }
  SUBCASE("cut off") {
    t.wiring->split(hosts("w"));
    for (const std::size_t n : {0, 1}) REQUIRE(until_view(t, n, {0, 1}, {}));
    t.wiring->heal();
    is_left_out(t, 2);
    t.come_back(2, "v");
    REQUIRE(until_view(t, 1, {0, 1}, {3}));
    for (const std::size_t n : {0, 1, 3}) ends_well(t, n);
  }
  SUBCASE("told to leave") {
    t.interrupt(2, {15, false, true});
    REQUIRE(until_view(t, 1, {0, 1}, {}));
    CHECK(t.nodes[1]->display->said("view 3: witness 2 (w:7600) left; 2 nodes train from "));
    REQUIRE(until_ended(t, 2));
    CHECK(t.nodes[2]->exit_code() == 143);
    CHECK(t.nodes[2]->error() == "");
    for (const std::size_t n : {0, 1}) ends_well(t, n);
  }
  SUBCASE("told twice to leave: it goes at once") {
    t.interrupt(2, {15, false, true});
    t.interrupt(2, {15, false, true});
    REQUIRE(until_view(t, 1, {0, 1}, {}));
    REQUIRE(until_ended(t, 2));
    for (const std::size_t n : {0, 1}) ends_well(t, n);
  }
  equals_the_chain(t, 0);
}

TEST_CASE("witness: it hears of a view from each member, because who decides it may be killed") {
  node_rig t;
  t.clocks = 300;
  t.survive = 1;
  t.cluster(2);
  REQUIRE(t.until_clock(5));
  t.wiring->on_line = [](const std::shared_ptr<test::line>& l) {
    if (l->hosts[0] != "w:7600" || l->hosts[1] != "a:7600") return;
    l->mischief = [](int to, test::frame_in f) {
      const bool is_lost = to == 0 && std::holds_alternative<frames::next_view>(f.header);
      return is_lost ? std::vector<test::frame_in>{} : std::vector{std::move(f)};
    };
  };
  t.witness_at("w");
  REQUIRE(until_view(t, 1, {0, 1}, {2}));
  t.kill(0);
  REQUIRE(until_view(t, 1, {1}, {2}));
  for (const std::size_t n : {1, 2}) ends_well(t, n);
}

TEST_CASE("witness: nobody hears anybody, and one that hears it again goes on") {
  for (const std::size_t who : {0, 1}) {
    CAPTURE(who);
    const std::size_t other = 1 - who;
    node_rig t;
    train_with_a_witness(t, 300);
    t.wiring->split(hosts("a"));
    t.wiring->split(hosts("b"));
    for (const std::size_t n : {0, 1}) REQUIRE(until_said(t, n, "paused: this node hears 1 of 3"));
    for (const auto& n : t.nodes) CHECK(!n->display->said("view 3: "));
    t.wiring->heal();
    t.wiring->split(hosts(other == 0 ? "a" : "b"));
    REQUIRE(until_said(t, who, "witness 2 (w:7600) is heard again"));
    for (const std::size_t n : {who, std::size_t{2}}) ends_well(t, n);
    CHECK(t.nodes[who]->display->views.back().seats ==
          seat_numbers{static_cast<std::uint32_t>(who)});
    equals_the_chain(t, who);
    CHECK(!t.nodes[other]->result);
  }
}

TEST_CASE("witness: members leave and others lead, and it stays") {
  node_rig t;
  train_with_a_witness(t, 3000);
  t.interrupt(0, {15, false, true});
  REQUIRE(until_view(t, 1, {1}, {2}));
  REQUIRE(until_ended(t, 0));
  CHECK(t.nodes[0]->exit_code() == 143);
  t.joiner("c", {"b"});
  REQUIRE(until_view(t, 1, {1, 3}, {2}));
  const auto first = t.nodes[1]->display->views.back().first_clock;
  REQUIRE(until(t, [&] { return t.nodes[1]->display->done >= first + 5; }));  // c has all values
  t.wiring->split(hosts("b"));
  REQUIRE(until_view(t, 3, {3}, {2}));
  t.wiring->heal();
  is_left_out(t, 1);
  for (const std::size_t n : {2, 3}) ends_well(t, n);
  auto views = t.nodes[1]->display->views;
  views.push_back(t.nodes[3]->display->views.back());
  views.insert(views.begin(), t.nodes[0]->display->views.begin(),
               t.nodes[0]->display->views.begin());
  CHECK(t.weights(t.clocks) == test::chained(t, views));
}

TEST_CASE("witness: a run that cannot have one, or has one, says so") {
  node_rig t;
  t.clocks = 1500;
  const auto refuses = [&](const std::string& host, const std::string& why) {
    const auto n = t.nodes.size();
    t.witness_at(host);
    REQUIRE(until_ended(t, n));
    CHECK(t.nodes[n]->exit_code() == 2);
    CHECK(t.nodes[n]->error().find(why) != std::string::npos);
  };
  SUBCASE("--survive 0") {
    t.cluster(2);
    REQUIRE(t.until_clock(2));
    refuses("w",
            "this run has --survive 0, with which the loss of any node ends it, so a witness would "
            "be of no use. Start the first node with --survive 1, or the run without a witness");
  }
  SUBCASE("one is there") {
    train_with_a_witness(t);
    refuses("v",
            "witness 2 (w:7600) is there already, and a run has one at most. End that one "
            "first, or try again when the others go on without it");
    ends_well(t, 2);
  }
  ends_well(t, 0);
}

}  // namespace poseidon::witness_runs
