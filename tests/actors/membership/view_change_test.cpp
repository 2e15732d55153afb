// The way of one node from one view to the next; who decides on that one: view_change_votes_test.cpp.
#include "tests/actors/membership/change_rig.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace std::chrono_literals;
using test::change_rig;
using lines = std::vector<std::string>;
using stage = node_stage;

TEST_CASE("view_change: each stage has a name of its own") {
  std::set<std::string_view> names;
  for (auto s = 0; s <= static_cast<int>(stage::ended); ++s)
    names.insert(to_string(static_cast<stage>(s)));
  CHECK(names.size() == static_cast<std::size_t>(stage::ended) + 1);
  CHECK(names.size() == names_of_stages.size());
}

TEST_CASE(
    "view_change: a node drains, gives its state away, ends the graph and builds, in this order") {
  change_rig r;
  auto& c = r.change;
  r.keepers = 2;
  const auto next = r.next_of({1, 2}, 20);
  c.is_told(next, r.facts());
  CHECK(r.actions() == lines{"freeze"});  // unplanned: it trains still
  REQUIRE(c.drains(clock_id{20}));
  CHECK(c.at() == stage::draining);
  CHECK(c.awaits_next());
  REQUIRE(c.has_drained(3, r.now));
  CHECK(!c.has_drained(4, r.now));
  CHECK(!c.leader());
  c.is_told(next, r.facts());
  CHECK(r.actions() == lines{"follow to view 3 of 1 2 from 20"});
  c.follows(next, r.facts());
  CHECK(c.leader() == seat_id{1});
  CHECK(c.at() == stage::releasing);
  CHECK(r.actions() == lines{"release"});
  CHECK(!c.left(7, r.facts()));
  CHECK(c.released());
  CHECK(r.actions().empty());
  CHECK(c.released());
  CHECK(!c.released());
  CHECK(r.actions() == lines{"end graph: state is released"});
  c.ends({7, 8});
  CHECK(c.ends_a_graph());
  (void)c.left(7, r.facts());
  (void)c.left(7, r.facts());
  CHECK(r.actions().empty());
  (void)c.left(8, r.facts());
  CHECK(r.actions() == lines{"build"});
  CHECK(c.at() == stage::rebuilding);
  CHECK(c.clock() == clock_id{20});
  CHECK(c.next().epoch == 3);
  CHECK(c.test_phases() == 3);
  CHECK(!c.has_entered());
  c.enters_next();
  CHECK(c.has_entered());
  c.builds(false);
  c.stands();
  CHECK(c.at() == stage::resuming);
  CHECK(c.begins(r.now + 250ms) == 250ms);
  CHECK(c.at() == stage::training);
  CHECK(!c.leader());
}

TEST_CASE(
    "view_change: a newcomer discards the graph of a view that is replaced, and builds again") {
  change_rig r(2, false);
  auto& c = r.change;
  c.gathers();
  CHECK(c.at() == stage::gathering);
  CHECK(!c.is_changing());
  c.enters(clock_id{20}, 0, r.next_of({0, 1, 2}, 20));
  c.builds(true);
  CHECK(c.at() == stage::building);
  CHECK(c.knows_next());
  c.stands();
  CHECK(c.at() == stage::waiting);
  c.follows(r.next_of({0, 2}, 20, 4), r.facts());
  CHECK(r.actions() == lines{"end graph: view is replaced"});
  CHECK(c.at() == stage::waiting);  // until its owner does that
  c.ends({6});
  CHECK(c.at() == stage::discarding);
  CHECK(c.ends_a_graph());
  CHECK(!c.is_in(stages::running));
  (void)c.left(6, r.facts());
  CHECK(r.actions() == lines{"build"});
  CHECK(c.at() == stage::building);
  c.stands();
  (void)c.begins(r.now);
  CHECK(c.at() == stage::training);
  CHECK(!c.knows_next());
}

TEST_CASE(
    "view_change: a node that parts stands in no view, and one that has ended in none of the "
    "stages before") {
  change_rig r;
  auto& c = r.change;
  r.drain(20);
  c.follows(r.next_of({1, 2}, 20), r.facts());
  c.ends({});
  c.parts();
  CHECK(c.at() == stage::parting);
  CHECK(c.knows_next());
  CHECK(c.is_in(stages::taking_part));
  CHECK(!c.is_in(stages::of_member));
  c.fails();
  CHECK(c.at() == stage::failing);
  c.is_over();
  CHECK(c.at() == stage::ended);
  CHECK(!c.is_in(stages::whole_run | stages::taking_part));
}

TEST_CASE("view_change: a change that is agreed too early waits until the node trains") {
  change_rig r(1, false);
  CHECK(r.change.at() == stage::starting);
  CHECK(!r.change.drains(clock_id{20}));
  CHECK(!r.change.is_changing());
  CHECK(r.change.take_early_drain() == clock_id{20});
  CHECK(!r.change.take_early_drain());
}

TEST_CASE("view_change: a change that is agreed during another one outlives that one") {
  change_rig r;
  REQUIRE(r.change.drains(clock_id{20}));
  CHECK(!r.change.drains(clock_id{30}));
  CHECK(r.change.clock() == clock_id{20});
  (void)r.change.begins(r.now);
  CHECK(r.change.take_early_drain() == clock_id{30});
}

TEST_CASE("view_change: another next view takes the place of one that has not begun") {
  change_rig r;
  auto& c = r.change;
  r.drain(20);
  c.follows(r.next_of({0, 1, 2, 3}, 20), r.facts());
  CHECK(r.actions() == lines{"release"});
  CHECK(c.is_to_come(seat_id{3}, r.view));
  CHECK(!c.is_to_come(seat_id{2}, r.view));
  const auto second = r.next_of({0, 1, 2}, 20, 4);
  SUBCASE("while solver state is given away: the old graph ends as it would have") {
    c.follows(second, r.facts());
    CHECK(c.at() == stage::releasing);
    CHECK(c.epoch(r.view) == 4);
    CHECK(r.actions().empty());
  }
  SUBCASE("after a graph was built for it: that one ends, too") {
    CHECK(c.released());
    c.ends({5});
    (void)c.left(5, r.facts());
    c.enters_next();
    (void)r.actions();
    SUBCASE("at a member") {
      c.follows(second, r.facts());
      CHECK(r.actions() == lines{"end graph: view is replaced"});
      c.ends({6});
      CHECK(c.at() == stage::ending);
      (void)c.left(6, r.facts());
      CHECK(r.actions() == lines{"build"});
      CHECK(c.begins(r.now + 250ms) == 250ms);
      c.follows(second, r.facts());  // it stands in no change any more
      CHECK(r.actions().empty());
      CHECK(c.at() == stage::training);
    }
    SUBCASE("where this node leaves with it, there is none") {
      r.view.seat = seat_id{9};
      c.follows(second, r.facts());
      CHECK(r.actions() == lines{"build"});
    }
  }
}

TEST_CASE("view_change: a change that was agreed on in a view that is replaced never comes") {
  change_rig r;
  r.drain(20);
  r.change.follows(r.next_of({0, 1}, 20), r.facts());
  CHECK(!r.change.drains(clock_id{30}));
  r.change.follows(r.next_of({0, 1}, 20, 4), r.facts());
  (void)r.change.begins(r.now);
  CHECK(!r.change.take_early_drain());
}

TEST_CASE("view_change: a newcomer has no old graph, and its first view may be replaced, too") {
  change_rig r(1, false);
  auto& c = r.change;
  c.enters(clock_id{20}, 5, r.next_of({0, 1, 2}, 20));
  CHECK(c.is_changing());
  CHECK(c.is_still());
  CHECK(c.has_entered());
  CHECK(c.test_phases() == 5);
  CHECK(c.clock() == clock_id{20});
  c.follows(r.next_of({1}, 20, 4), r.facts());
  CHECK(c.next().epoch == 4);
  CHECK(r.actions() == lines{"end graph: view is replaced"});
}

TEST_CASE("view_change: where a member is lost a node freezes when all that computes is silent") {
  change_rig r;
  auto& c = r.change;
  SUBCASE("as it trains") {}
  SUBCASE("as it drains") {
    REQUIRE(c.drains(clock_id{20}));
  }
  r.freeze({4}, {seat_id{0}, seat_id{2}});
  r.freeze({9}, {});
  CHECK(c.at() == stage::freezing);
  CHECK(!c.is_still());
  CHECK(!c.drains(clock_id{30}));  // of the view that is given up
  c.follows(r.next_of({0, 1}, 17), r.facts());
  CHECK(c.at() == stage::freezing);  // its last kernels still run
  CHECK(!c.silent(seat_id{0}, r.facts()));
  CHECK(!c.left(4, r.facts()));
  REQUIRE(c.silent(seat_id{2}, r.facts()));
  CHECK(c.at() == stage::frozen);
  CHECK(c.is_still());
  c.follows(r.next_of({0, 1}, 17), r.facts());
  CHECK(c.clock() == clock_id{17});
  CHECK(r.actions() == lines{"release"});
}

TEST_CASE("view_change: a node that has nothing to wait for has frozen at once") {
  change_rig r;
  r.freeze();
  CHECK(r.change.at() == stage::frozen);
}

TEST_CASE("view_change: a node that has drained need not freeze") {
  change_rig r;
  r.drain(20);
  r.freeze({1}, {});
  CHECK(r.change.at() == stage::drained);
}

TEST_CASE("view_change: a view that the members decide while a node freezes it follows later") {
  change_rig r;
  r.freeze({4});
  r.change.is_told(r.next_of({0, 1}, 17), r.facts());
  CHECK(r.actions() == lines{"freeze"});  // which it does already
  r.change.is_told(r.next_of({0, 1}, 17, 5), r.facts());
  r.change.is_told(r.next_of({0, 1, 2}, 17, 4), r.facts());  // not the newest
  (void)r.actions();
  REQUIRE(r.change.left(4, r.facts()));
  CHECK(r.actions() == lines{"follow to view 5 of 0 1 from 17, unplanned"});
}

TEST_CASE("view_change: what a view began with is given again where the next begins with it, too") {
  change_rig r;
  r.freeze();
  const auto again = r.next_of({0, 1}, 10);
  SUBCASE("it is kept") {
    r.former = view_facts::former_state::here;
    r.change.follows(again, r.facts());
    CHECK(r.actions() == lines{"end graph: former state is taken"});
    CHECK(r.change.at() == stage::ending);
    CHECK(!r.change.has_entered());
  }
  SUBCASE("this node came with that view, and comes once more") {
    r.former = view_facts::former_state::arrived;
    r.change.follows(again, r.facts());
    CHECK(r.change.has_entered());
  }
  SUBCASE("it is not kept: actors give away what they have") {
    r.change.follows(again, r.facts());
    CHECK(r.actions() == lines{"release"});
  }
}

TEST_CASE("view_change: a node that cannot follow ends, and says why") {
  change_rig r;
  r.freeze();
  auto next = r.next_of({0, 1}, 17);
  std::string ends;
  SUBCASE("the others do not hear it") {
    next.lost = {seat_id{1}};
    ends = "end: left out";
  }
  SUBCASE("it has missed a view that it is not in") {
    next = r.next_of({0, 2}, 17, 4);
    ends = "end: left out";
  }
  SUBCASE("it has not got the version") {
    next.first_clock = clock_id{18};
    ends = "end: version is gone";
  }
  SUBCASE("it has it no more") {
    next.first_clock = clock_id{13};
    ends = "end: version is gone";
  }
  SUBCASE("solver state is gone") {
    r.layers_gone = {"fc6"};
    SUBCASE("") {
      ends = "end: state is gone";
    }
    SUBCASE("and its user wants zeros then") {
      r.zeroes = true;
      ends = "follow to view 3 of 0 1 from 17, unplanned, with zeros";
    }
  }
  SUBCASE("all that trained before this view are gone") {
    r.view.before = {seat_id{5}};
    r.whole = version_id{10};
    next.first_clock = clock_id{10};
    ends = "end: newcomers alone";
  }
  r.change.is_told(next, r.facts());
  CHECK(r.actions() == lines{ends});
}

TEST_CASE("view_change: a node follows each view once, and none before") {
  change_rig r;
  r.freeze();
  r.change.is_told(r.next_of({0, 1}, 17, 2), r.facts());
  r.change.is_told(r.next_of({0, 1}, 17, 1), r.facts());
  CHECK(r.actions().empty());
}

TEST_CASE("view_change: where nobody can be lost a view is followed from the clock of the plan") {
  change_rig r;
  r.survive = 0;
  r.change.is_told(r.next_of({0, 1}, 20), r.facts());
  CHECK(r.actions().empty());
  r.drain(20);
  r.change.is_told(r.next_of({0, 1}, 21), r.facts());
  CHECK(r.actions().empty());
  r.change.is_told(r.next_of({0, 1}, 20), r.facts());
  CHECK(r.actions() == lines{"follow to view 3 of 0 1 from 20"});
}
