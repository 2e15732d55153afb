#include "actors/cluster/coordinator.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace std::chrono_literals;

namespace {

frames::member member_of_seat(std::uint32_t seat) {
  return {seat_id{seat}, "host" + std::to_string(seat) + ":1"};
}

std::vector<frames::member> members_of_seats(std::initializer_list<std::uint32_t> seats) {
  std::vector<frames::member> out;
  for (const auto s : seats) out.push_back(member_of_seat(s));
  return out;
}

/// Three members, of seats 0, 1 and 2, that stand: all have been told to train.
struct coordinator_rig {
  test::sim sim;
  test::probe<view_agreed> view = sim.listen<view_agreed>();
  test::probe<everyone_ready> ready = sim.listen<everyone_ready>();
  test::probe<everyone_done> done = sim.listen<everyone_done>();
  test::probe<hold_everyone> hold = sim.listen<hold_everyone>();
  test::probe<drain_agreed> agreed = sim.listen<drain_agreed>();
  test::probe<everyone_drained> drained = sim.listen<everyone_drained>();
  test::probe<everyone_leaves> leaves = sim.listen<everyone_leaves>();
  handle<coordinator> it;

  explicit coordinator_rig(bool begin = true, coordinator_setup setup = {3, members_of_seats({0})})
      : it(sim.spawn<coordinator>("coordinator", std::move(setup))) {
    tell(
        connect_coordinator{view.in, ready.in, done.in, hold.in, agreed.in, drained.in, leaves.in});
    if (!begin) return;
    tell(member_joined{member_of_seat(1)});
    tell(member_joined{member_of_seat(2)});
    all_are_ready({0, 1, 2});
    tell(everyone_began{});
  }
  template <class M>
  void tell(M m) {
    sim.tell(it, std::move(m));
    sim.settle();
  }
  void all_are_ready(std::initializer_list<std::uint32_t> seats) {
    for (const auto s : seats) tell(member_is_ready{seat_id{s}});
  }
  void stands(std::uint32_t seat, std::uint64_t clock, bool drained_ = false) {
    tell(member_paused{seat_id{seat}, clock_id{clock}, drained_});
  }
  void all_hold(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) stands(s, clock);
  }
  void all_drain(std::initializer_list<std::uint32_t> seats, std::uint64_t clock) {
    for (const auto s : seats) stands(s, clock, true);
  }
  void newcomer(std::uint32_t seat) { tell(newcomer_ready{member_of_seat(seat)}); }
  void leave(std::initializer_list<std::uint32_t> seats) {
    for (const auto s : seats) tell(member_leaves{seat_id{s}});
    sim.advance(200ms);
  }
};

}  // namespace

TEST_CASE("coordinator: the view is agreed when as many have joined as were asked for") {
  coordinator_rig t(false);
  t.tell(member_joined{member_of_seat(1)});
  CHECK(t.view.got->empty());
  t.tell(member_joined{member_of_seat(2)});
  REQUIRE(t.view.got->size() == 1);
  CHECK(t.view.got->front().members == members_of_seats({0, 1, 2}));
  t.all_are_ready({0, 2});
  CHECK(t.ready.got->empty());
  t.all_are_ready({1});
  CHECK(t.ready.got->size() == 1);
}

TEST_CASE("coordinator: a node that is alone is ready without a view to agree on") {
  coordinator_rig t(false, {1, members_of_seats({0})});
  t.all_are_ready({0});
  CHECK(t.ready.got->size() == 1);
  CHECK(t.view.got->empty());
}

TEST_CASE("coordinator: routes change at the latest clock that anybody has not begun") {
  coordinator_rig t;
  REQUIRE(t.ready.got->size() == 1);
  t.tell(change_wanted{{0, 1}, std::nullopt, "links are fast"});
  REQUIRE(t.hold.got->size() == 1);
  t.stands(0, 41);
  t.stands(2, 43);
  CHECK(t.agreed.got->empty());
  t.stands(1, 42);
  REQUIRE(t.agreed.got->size() == 1);
  CHECK(t.agreed.got->front().clock == clock_id{43});

  SUBCASE("nobody builds anew before all have drained, nor begins before all have built") {
    t.all_drain({0, 1}, 43);
    CHECK(t.drained.got->empty());
    t.stands(2, 43, true);
    REQUIRE(t.drained.got->size() == 1);
    CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2}));
    CHECK(t.drained.got->front().routes == std::vector<std::uint8_t>{0, 1});
    CHECK(t.drained.got->front().why == "links are fast");
    CHECK(t.ready.got->size() == 1);
    t.all_are_ready({0, 1, 2});
    CHECK(t.ready.got->size() == 2);
    t.tell(everyone_began{});
    t.tell(change_wanted{{0, 0}, std::nullopt, ""});
    CHECK(t.hold.got->size() == 2);
  }
  SUBCASE("other routes that are wanted meanwhile are forgotten: their time has passed") {
    t.tell(change_wanted{{1, 1}, std::nullopt, ""});
    t.all_drain({0, 1, 2}, 43);
    CHECK(t.drained.got->front().routes == std::vector<std::uint8_t>{0, 1});
    t.all_are_ready({0, 1, 2});
    t.tell(everyone_began{});
    CHECK(t.hold.got->size() == 1);
  }
  SUBCASE("a pause of another clock than the agreed one is none") {
    t.all_drain({0, 1}, 43);
    t.stands(2, 42, true);
    CHECK(t.drained.got->empty());
  }
}

TEST_CASE("coordinator: of a change whose clock all know only the end is waited for") {
  coordinator_rig t(false);
  t.tell(member_joined{member_of_seat(1)});
  t.tell(member_joined{member_of_seat(2)});
  t.all_are_ready({0, 1, 2});
  t.tell(change_wanted{{0, 1}, clock_id{20}, ""});
  t.tell(everyone_began{});
  t.newcomer(3);
  CHECK(t.hold.got->empty());
  t.all_drain({0, 1, 2}, 20);
  CHECK(t.agreed.got->empty());
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().routes == std::vector<std::uint8_t>{0, 1});
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2, 3}));
}

// -- nodes that join ------------------------------------------------------------------------------------

TEST_CASE("coordinator: a newcomer that is ready causes one hold and one drain") {
  coordinator_rig t;
  t.newcomer(3);
  CHECK(t.hold.got->size() == 1);
  t.all_hold({0, 1, 2}, 7);
  REQUIRE(t.agreed.got->size() == 1);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2, 3}));
  CHECK(!t.drained.got->front().routes);
  t.all_are_ready({0, 1, 2});
  CHECK(t.ready.got->size() == 1);  // the newcomer has to be ready, too
  t.all_are_ready({3});
  CHECK(t.ready.got->size() == 2);
  t.tell(everyone_began{});
  CHECK(t.hold.got->size() == 1);
  CHECK(t.agreed.got->size() == 1);
}

TEST_CASE("coordinator: a newcomer that goes before all have drained is not in the next view") {
  coordinator_rig t;
  t.newcomer(3);
  t.newcomer(4);
  SUBCASE("while the others hold") {
    t.tell(newcomer_gone{seat_id{3}});
  }
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1}, 7);
  SUBCASE("while the others drain") {
    t.tell(newcomer_gone{seat_id{3}});
  }
  t.stands(2, 7, true);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2, 4}));
}

TEST_CASE(
    "coordinator: where the only newcomer goes, all train on as they did, in a view of its own") {
  coordinator_rig t;
  t.newcomer(3);
  t.tell(newcomer_gone{seat_id{3}});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2}));
}

TEST_CASE(
    "coordinator: what is wanted while a change is under way is part of the next view, or of the "
    "one after it") {
  coordinator_rig t;
  t.newcomer(3);
  t.all_hold({0, 1, 2}, 7);
  t.newcomer(4);
  t.leave({1});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 2, 3, 4}));
  CHECK(t.hold.got->size() == 1);

  // Members build: it is too late for this view.
  t.newcomer(5);
  t.leave({0});
  CHECK(t.hold.got->size() == 1);
  t.all_are_ready({0, 2, 3, 4, 1});
  t.tell(everyone_began{});
  CHECK(t.hold.got->size() == 2);
  t.all_hold({0, 2, 3, 4}, 9);
  t.all_drain({0, 2, 3, 4}, 9);
  REQUIRE(t.drained.got->size() == 2);
  CHECK(t.drained.got->back().members == members_of_seats({2, 3, 4, 5}));
}

// -- nodes that leave -----------------------------------------------------------------------------------

TEST_CASE("coordinator: members that leave are collected for a moment, and leave in one change") {
  coordinator_rig t;
  t.tell(member_leaves{seat_id{2}});
  t.sim.advance(150ms);
  t.tell(member_leaves{seat_id{0}});
  CHECK(t.hold.got->empty());
  t.sim.advance(50ms);
  CHECK(t.hold.got->size() == 1);
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({1}));
  CHECK(t.leaves.got->empty());
}

TEST_CASE("coordinator: all members that want to leave within the window end the run") {
  coordinator_rig t;
  t.leave({1, 2, 0});
  CHECK(t.leaves.got->size() == 1);
  CHECK(t.hold.got->empty());
  CHECK(t.drained.got->empty());
}

TEST_CASE(
    "coordinator: where the last members want to leave while others do, all of them go on until "
    "the "
    "view has begun, and end the run together") {
  coordinator_rig t;
  t.leave({1});
  t.all_hold({0, 1, 2}, 7);
  t.leave({0, 2});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2}));
  CHECK(t.leaves.got->empty());
  t.all_are_ready({0, 1, 2});
  t.tell(everyone_began{});
  CHECK(t.leaves.got->size() == 1);
}

namespace {

/// Three members by a schedule, told of the next view before they begin.
struct scheduled_rig : coordinator_rig {
  explicit scheduled_rig(std::size_t members)
      : coordinator_rig(false, {3, members_of_seats({0}), false, {}, true}) {
    tell(member_joined{member_of_seat(1)});
    tell(member_joined{member_of_seat(2)});
    all_are_ready({0, 1, 2});
    tell(change_wanted{{0}, clock_id{9}, "as --views asks", members});
    tell(everyone_began{});
  }
};

}  // namespace

TEST_CASE("coordinator: by a schedule the highest seats leave, those first that want to") {
  scheduled_rig t(2);
  std::vector<frames::member> stay = members_of_seats({0, 1});
  SUBCASE("nobody wants to") {}
  SUBCASE("the second one does") {
    t.leave({1});
    stay = members_of_seats({0, 2});
  }
  SUBCASE("the leader does, which knows the schedule") {
    t.leave({0});
  }
  CHECK(t.hold.got->empty());
  t.all_drain({0, 1, 2}, 9);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == stay);
}

TEST_CASE("coordinator: a schedule's view waits for newcomers, and takes no more than it wants") {
  scheduled_rig t(4);
  t.all_drain({0, 1, 2}, 9);
  CHECK(t.drained.got->empty());
  SUBCASE("two come") {
    t.newcomer(5);
    t.newcomer(4);
    REQUIRE(t.drained.got->size() == 1);
    CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2, 5}));
  }
  SUBCASE("the run is to end") {
    t.tell(schedule_ends{});
    REQUIRE(t.drained.got->size() == 1);
    CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2}));
  }
}

TEST_CASE("coordinator: by a schedule nothing else changes a view, but all may leave") {
  scheduled_rig t(3);
  t.newcomer(7);
  t.leave({2});
  t.tell(change_wanted{{1}, std::nullopt, "links are fast"});
  CHECK(t.hold.got->empty());
  t.leave({0, 1});
  CHECK(t.leaves.got->size() == 1);
}

TEST_CASE("coordinator: whoever is no member cannot leave") {
  coordinator_rig t;
  t.leave({7});
  CHECK(t.hold.got->empty());
}

TEST_CASE(
    "coordinator: a view begins when those who leave can give their state away, and ends without "
    "them") {
  coordinator_rig t;
  t.leave({0});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  t.all_are_ready({1, 2});
  CHECK(t.ready.got->size() == 1);
  t.all_are_ready({0});
  CHECK(t.ready.got->size() == 2);
  t.tell(everyone_began{});
  t.tell(member_is_done{seat_id{1}});
  CHECK(t.done.got->empty());
  t.tell(member_is_done{seat_id{2}});
  CHECK(t.done.got->size() == 1);
}

TEST_CASE(
    "coordinator: one that begins with a view says go when all of its members are ready, and "
    "changes nothing before") {
  coordinator_rig t(false, {2, members_of_seats({1, 2}), true});
  t.newcomer(3);
  t.all_are_ready({1});
  CHECK(t.ready.got->empty());
  t.all_are_ready({2});
  CHECK(t.ready.got->size() == 1);
  CHECK(t.hold.got->empty());
  t.tell(everyone_began{});
  CHECK(t.hold.got->size() == 1);
}
