// A node's part in deciding which view is next: whom it answers when, and whose turn it is. Many members: view_model_test, transcripts.
#include "tests/actors/membership/change_rig.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace poseidon;
using test::change_rig;
using lines = std::vector<std::string>;
using fate = view_change::fate;

namespace {

constexpr seat_id zero{0}, two{2};

void lose(change_rig& r, seat_id seat, fate is = fate::unknown) {
  std::erase(r.linked, seat);
  r.change.loses(seat, "worker " + std::to_string(value(seat)) + " is lost", is, r.facts());
}
void ticks(change_rig& r, int n) {
  for (; n > 0; --n) {
    r.change.tick(r.facts());
    r.change.look(r.facts());
  }
}

}  // namespace

TEST_CASE("view_change: a node that trains freezes before it answers, and then answers") {
  change_rig r;
  r.asked_by(0);
  CHECK(r.actions() == lines{"freeze"});
  CHECK(!r.change.has_promised(r.view));
  r.freeze({3});
  r.change.look(r.facts());
  CHECK(r.actions().empty());
  CHECK(r.change.left(3, r.facts()));
  CHECK(r.actions() == lines{"promise to 0"});
  CHECK(r.change.has_promised(r.view));
}

TEST_CASE("view_change: where nobody can be lost a node does not freeze for a question") {
  change_rig r;
  r.survive = 0;
  r.asked_by(0);
  CHECK(r.actions().empty());
  r.drain(20);
  r.asked_by(0, 2);
  CHECK(r.actions() == lines{"promise to 0"});
}

TEST_CASE("view_change: a question of another view does not make a node freeze") {
  change_rig r;
  r.change.hears(zero, frames::view_prepare{1, {1, zero}}, r.facts());
  r.change.hears(zero, frames::view_prepare{5, {1, zero}}, r.facts());
  CHECK(r.actions().empty());
}

TEST_CASE("view_change: of members that are lost the oldest that is heard proposes first") {
  SUBCASE("the older ones have theirs before") {
    change_rig r;
    lose(r, two);
    r.freeze();
    (void)r.actions();
    ticks(r, 2);
    CHECK(r.actions().empty());
    ticks(r, 1);
    CHECK(r.actions() == lines{"prepare to 0", "prepare to 2"});
    ticks(r, 22);
    CHECK(r.actions().empty());
    ticks(r, 1);
    CHECK(r.actions().size() == 2);  // again: nothing has come of it
  }
  SUBCASE("they are lost themselves") {
    change_rig r;
    lose(r, zero);
    r.freeze();
    (void)r.actions();
    r.change.look(r.facts());
    CHECK(r.actions() == lines{"prepare to 0", "prepare to 2"});
  }
}

TEST_CASE("view_change: who has counted the votes tells all that wait, and follows") {
  change_rig r(0);
  r.leads = true;
  r.drain(20);
  r.change.plans(r.next_of({0, 1, 2}, 20), r.facts());
  CHECK(r.actions() == lines{"prepare to 1", "prepare to 2"});
  CHECK(!r.change.may_plan(r.view));
  for (const auto s : {1u, 2u})
    r.change.hears(seat_id{s},
                   frames::view_promise{
                       2, {1, zero}, {1, zero}, {}, {}, true, version_id{20}, true, r.linked, {}},
                   r.facts());
  CHECK(r.actions() == lines{"accept to 1", "accept to 2"});
  r.change.hears(two, frames::view_accepted{2, {1, zero}, {1, zero}}, r.facts());
  CHECK(r.actions() == lines{"tell view 3 to 1", "tell view 3 to 2", "tell newcomers of view 3",
                             "follow to view 3 of 0 1 2 from 20"});
  r.change.hears(seat_id{1}, frames::view_accepted{2, {1, zero}, {1, zero}}, r.facts());
  r.change.look(r.facts());
  CHECK(r.actions().empty());  // once
}

TEST_CASE("view_change: a proof of death counts at once, a lost link alone does not") {
  change_rig r;
  r.view.members.pop_back();
  lose(r, zero);
  r.freeze();
  (void)r.actions();
  r.change.proposes(r.facts());
  CHECK(r.actions() == lines{"prepare to 0"});
  r.change.dead(zero, r.facts());
  auto done = r.actions();
  REQUIRE(!done.empty());
  CHECK(done.back() == "follow to view 3 of 1 from 17, unplanned");
}

TEST_CASE("view_change: somebody who knows may say that those who are lost have ended") {
  change_rig r;
  CHECK(!r.change.go_on_without_them(r.facts()));
  lose(r, zero);
  lose(r, two);
  r.freeze();
  (void)r.actions();
  REQUIRE(r.change.go_on_without_them(r.facts()));
  r.change.look(r.facts());
  auto done = r.actions();
  REQUIRE(!done.empty());
  CHECK(done.back() == "follow to view 3 of 1 from 17, unplanned");
}

TEST_CASE(
    "view_change: a side on which too few hear each other says so once for the same members") {
  change_rig r;
  lose(r, zero);
  lose(r, two);
  r.freeze();
  (void)r.actions();
  ticks(r, 99);
  CHECK(r.change.why_paused(r.facts()).empty());
  (void)r.actions();
  ticks(r, 1);
  CHECK(r.change.why_paused(r.facts()).starts_with(
      "paused: this node hears 1 of 3 members of view 2"));
  const auto news = [&] {
    const auto all = r.actions();
    return std::count(all.begin(), all.end(), "say that it is paused");
  };
  CHECK(news() == 1);
  ticks(r, 50);
  CHECK(news() == 0);
  SUBCASE("and where its user wants the end, it does not wait on") {
    r.wants_end = true;
    r.change.look(r.facts());
    CHECK(r.actions() == lines{"is paused", "end: told to end"});
  }
  SUBCASE("a member that is found again ends it, if that is enough") {
    r.linked = test::seats({0, 1});
    r.change.found(zero, r.facts());
    r.change.look(r.facts());
    const auto all = r.actions();
    REQUIRE(all.size() >= 2);
    CHECK(all[0] == "prepare to 0");
  }
}

TEST_CASE("view_change: a node without the first values ends when nobody is left that has them") {
  change_rig r;
  r.whole.reset();
  r.view.before = test::seats({0});
  r.view.members.pop_back();
  lose(r, zero);
  r.freeze();
  r.change.look(r.facts());
  auto done = r.actions();
  CHECK(std::count(done.begin(), done.end(), "end: values never came") == 0);
  r.change.dead(zero, r.facts());
  r.change.look(r.facts());
  done = r.actions();
  REQUIRE(!done.empty());
  CHECK(done.back() == "end: values never came");
}

TEST_CASE("view_change: who has slept asks those that may have gone on before it proposes") {
  change_rig r(0);
  r.view.members.pop_back();
  lose(r, seat_id{1}, fate::may_have_gone_on);
  r.freeze();
  r.change.look(r.facts());
  CHECK(r.actions() == lines{"prepare to 1"});  // no view comes of it
  r.change.answered(seat_id{1});
  ticks(r, 50);  // for stragglers
  auto done = r.actions();
  REQUIRE(!done.empty());
  CHECK(done.back() == "follow to view 3 of 0 from 17, unplanned");
}

TEST_CASE("view_change: what was lost in a view is over with that view, unless it is lost still") {
  change_rig r;
  lose(r, two);
  CHECK(r.change.is_under_way(r.view));
  r.freeze();
  r.change.follows(r.next_of({0, 1}, 17), r.facts());
  (void)r.actions();
  CHECK(!r.change.is_under_way(r.view));
  CHECK(r.change.epoch(r.view) == 3);
  CHECK(!r.change.has_promised(r.view));
}

TEST_CASE("view_change: a witness promises at once, has no version, and proposes nothing") {
  change_rig r(7, false);
  auto next = r.next_of({0, 1}, 20);
  next.witnesses = {{seat_id{7}, "n:7"}};
  r.change.enters(next.first_clock, 0, next);
  r.change.hears(zero, frames::view_prepare{3, {1, zero}}, r.facts());
  const auto action = r.change.take_action();
  REQUIRE(action);
  const auto& said = std::get<frames::view_promise>(std::get<view_action::send>(*action).frame);
  CHECK(!said.whole);
  CHECK(said.drained);
  r.change.proposes(r.facts());
  CHECK(r.actions().empty());
}

TEST_CASE("view_change: who was lost before the next view was known, and is in it, is lost in it") {
  change_rig r(2);
  r.keepers = 0;
  lose(r, seat_id{1});
  lose(r, zero);
  r.freeze();
  r.change.look(r.facts());
  CHECK(!r.change.is_to_look(r.view));
  auto next = r.next_of({0, 2}, 17);  // decided before 0 was lost
  next.lost = {seat_id{1}};
  r.change.is_told(next, r.facts());
  r.change.follows(next, r.facts());
  (void)r.actions();
  CHECK(!r.change.is_under_way(r.view));
  CHECK(r.change.is_to_look(r.view));
  r.change.look(r.facts());
  CHECK(!r.change.is_to_look(r.view));
  CHECK(r.change.is_under_way(r.view));
}
