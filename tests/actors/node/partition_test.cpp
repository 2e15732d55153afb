// The network between nodes is cut while all train. One side goes on at most; the others wait, and come back.
// POSEIDON_PARTITIONS: in how many orders.
#include "tests/actors/node/time_passes.hpp"
#include "tests/number_asked.hpp"

#include <map>
#include <random>
#include <set>

using namespace poseidon;
using test::ends_well, test::hosts, test::is_left_out, test::node_rig, test::say_go_on,
    test::train_in_a_cluster, test::until, test::until_ended, test::until_said;

TEST_CASE(
    "partition: fewer than half wait; when they are heard again they are out, and come back") {
  node_rig t;
  train_in_a_cluster(t, 5, 1500, 2);
  t.wiring->split(hosts("de"));
  for (const std::size_t n : {3, 4})
    REQUIRE(until_said(t, n, "paused: this node hears 2 of 5 members of view 1"));
  CHECK(until_said(t, 0, "view 2: worker 3 (d:7600), worker 4 (e:7600) are lost"));
  const auto stood = t.nodes[3]->display->done;
  t.wiring->heal();
  for (const std::size_t n : {3, 4}) is_left_out(t, n);
  CHECK(t.nodes[3]->display->done == stood);
  t.come_back(3, "f");
  t.come_back(4, "g");
  REQUIRE(until(t, [&] { return t.nodes[0]->display->views.back().seats.size() == 5; }));
  for (const std::size_t n : {0, 1, 2, 5, 6}) ends_well(t, n);
  CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[0]->display->views));
}

TEST_CASE("partition: of two nodes the older one goes on, and the other one waits and comes back") {
  node_rig t;
  train_in_a_cluster(t, 2, 1500);
  t.wiring->split(hosts("b"));
  CHECK(until_said(t, 0, "view 2: worker 1 (b:7600) is lost"));
  REQUIRE(until_said(t, 1, "paused: this node hears 1 of 2 members of view 1"));
  CHECK(t.nodes[1]->shown_stage().starts_with("paused: this node hears 1 of 2 members of view 1"));
  CHECK(t.nodes[0]->shown_stage() == "training");
  t.wiring->heal();
  is_left_out(t, 1);
  t.come_back(1, "c");
  REQUIRE(until(t, [&] { return t.nodes[0]->display->views.back().seats.size() == 2; }));
  for (const std::size_t n : {0, 2}) ends_well(t, n);
  CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[0]->display->views));
}

TEST_CASE("partition: where no side can go on all wait, and lose nothing") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  train_in_a_cluster(t, 5, 60);
  SUBCASE("because none has a majority") {
    t.wiring->split(hosts("bd"));
    t.wiring->split(hosts("e"));
    for (const std::size_t n : {0, 1, 2, 3})
      REQUIRE(until_said(t, n, "paused: this node hears 2 of 5"));
    REQUIRE(until_said(t, 4, "paused: this node hears 1 of 5"));
  }
  SUBCASE("because the others have solver state that the majority lacks") {
    t.wiring->split(hosts("cd"));
    for (const std::size_t n : {0, 1, 4})
      REQUIRE(until_said(t, n, "paused: this node hears 3 of 5"));
    for (const std::size_t n : {2, 3}) REQUIRE(until_said(t, n, "paused: this node hears 2 of 5"));
  }
  for (const auto& n : t.nodes) CHECK(n->display->views.size() == 1);
  t.wiring->heal();
  for (const std::size_t n : {0, 1, 2, 3, 4}) ends_well(t, n);
  const auto& views = t.nodes[4]->display->views;
  REQUIRE(views.size() == 2);
  CHECK(views.back().seats.size() == 5);
  node_rig alike;
  test::train_without_a_change(alike, 5, t.clocks);
  CHECK(t.weights(t.clocks) == alike.weights(t.clocks));
}

TEST_CASE("partition: a side that waits goes on when its user says that the others have ended") {
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  train_in_a_cluster(t, 3, 1500, 2);
  t.wiring->split(hosts("a"));
  t.wiring->split(hosts("b"));
  for (const std::size_t n : {0, 1, 2}) REQUIRE(until_said(t, n, "paused: this node hears 1 of 3"));
  t.wiring->heal();
  say_go_on(t, "b:7600");
  t.wiring->split(hosts("b"));
  t.wiring->split(hosts("a"));
  REQUIRE(until_said(t, 1, "view 2: worker 0 (a:7600), worker 2 (c:7600) are lost"));
  t.wiring->heal();
  for (const std::size_t n : {0, 2}) is_left_out(t, n);
  ends_well(t, 1);
  CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[1]->display->views));
}

namespace {

/// No two nodes have trained in different views of one number, nor from different iterations on.
void agree_on_all_views(const node_rig& t) {
  std::map<std::uint64_t, const progress::view*> seen;
  for (const auto& n : t.nodes)
    for (const auto& v : n->display->views) {
      const auto& first = *seen.emplace(v.epoch, &v).first->second;
      CAPTURE(v.epoch);
      CHECK(v.seats == first.seats);
      CHECK(v.first_clock == first.first_clock);
    }
}

}  // namespace

namespace {

/// The others went on without it, and have ended before they could be heard again.
void end_those_that_wait_for_ever(node_rig& t) {
  const auto all_ended = [&] {
    return std::all_of(t.nodes.begin(), t.nodes.end(),
                       [](const auto& n) { return n->result.has_value(); });
  };
  if (until(t, all_ended, 1500)) return;
  for (const auto& n : t.nodes) {
    if (n->result) continue;
    CHECK(n->display->said("paused: "));
    t.sim.tell(n->it, interrupted{2, false, false});
  }
  REQUIRE(until(t, all_ended, 1500));
}

/// One side goes on at most, bit for bit.
void cut_in_any_order(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.progress_limit = std::chrono::milliseconds{0};
  t.clocks = 30;
  t.survive = 1;
  const std::size_t members = 2 + random() % 4;
  CAPTURE(members);
  t.cluster(members);
  REQUIRE(t.until_clock(2));
  for (int cuts = 0; cuts < 3; ++cuts) {
    for (auto n = random() % 500; n > 0 && t.sim.step_any(random); --n) {
    }
    std::string side;
    for (std::size_t n = 0; n < members; ++n)
      if (random() % 2 == 0) side += static_cast<char>('a' + n);
    t.wiring->split(hosts(side));
    for (auto ticks = random() % 150; ticks > 0; --ticks) {
      for (auto n = random() % 100; n > 0 && t.sim.step_any(random); --n) {
      }
      t.sim.pass(std::chrono::milliseconds{20});
    }
    if (random() % 3 > 0) t.wiring->heal();
  }
  t.wiring->heal();
  end_those_that_wait_for_ever(t);
  agree_on_all_views(t);
  std::size_t last = members;  // one of those that have trained to the end
  for (std::size_t n = 0; n < members; ++n) {
    CAPTURE(n);
    const auto& end = *t.nodes[n]->result;
    if (end.others.empty() && !end.error.starts_with("paused: ") &&
        end.error.find("solver state is gone with") == std::string::npos) {
      CHECK(end.error == "");
      CHECK(end.exit_code == 0);
      last = n;
    }
  }
  if (last == members) return;  // more at once than --survive 1 has copies for
  CHECK(t.weights(t.clocks) == test::chained(t, t.nodes[last]->display->views));
}

}  // namespace

TEST_CASE(
    "partition: however the network is cut and healed, one side goes on at most, bit for bit") {
  const auto seeds = test::number_asked("POSEIDON_PARTITIONS", 30);
  for (std::uint32_t seed = 1; seed <= seeds; ++seed) cut_in_any_order(seed);
}

// Who is left out says so as it goes, and others that it was linked to are not ended by that.
TEST_CASE("partition: cuts in orders that have found something once") {
  for (const std::uint32_t seed : {67, 89, 122, 129, 144, 273, 289}) cut_in_any_order(seed);
}
