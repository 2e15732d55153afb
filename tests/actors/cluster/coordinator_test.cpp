#include "tests/actors/cluster/coordinator_rig.hpp"

using namespace poseidon;
using namespace std::chrono_literals;
using test::coordinator_rig, test::members_of_seats, test::member_of_seat;

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

TEST_CASE(
    "coordinator: a newcomer that goes before the view with it begins is left out of another one") {
  coordinator_rig t;
  t.tell(change_wanted{{0, 1}, std::nullopt, "links are fast"});
  t.newcomer(3);
  t.newcomer(4);
  t.leave({1});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  SUBCASE("while they build") {
    t.all_are_ready({0, 1, 2, 4});
  }
  SUBCASE("when all are ready") {
    t.all_are_ready({0, 1, 2, 3, 4});
    CHECK(t.ready.got->size() == 2);
  }
  const auto said = t.ready.got->size();
  t.tell(newcomer_gone{seat_id{3}});
  REQUIRE(t.drained.got->size() == 2);
  const auto& first = t.drained.got->front();
  const auto& second = t.drained.got->back();
  CHECK(second.epoch == first.epoch + 1);
  CHECK(second.members == members_of_seats({0, 2, 4}));
  CHECK(second.routes == first.routes);
  CHECK(second.why == "links are fast");
  // What is ready for the view that was replaced is not for this one.
  for (const std::uint32_t s : {0, 1, 2, 4}) t.tell(member_is_ready{seat_id{s}, first.epoch});
  CHECK(t.ready.got->size() == said);
  t.all_are_ready({0, 2, 4});
  CHECK(t.ready.got->size() == said);  // who leaves has solver state
  t.all_are_ready({1});
  CHECK(t.ready.got->size() == said + 1);
  t.tell(everyone_began{});
  t.tell(newcomer_gone{seat_id{4}});  // it is a member now
  CHECK(t.drained.got->size() == 2);
}

TEST_CASE("coordinator: where all want to leave as others join, they leave one view later") {
  coordinator_rig t;
  t.leave({0, 2});
  t.all_hold({0, 1, 2}, 7);
  t.newcomer(3);
  t.leave({1});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.drained.got->size() == 1);
  CHECK(t.drained.got->front().members == members_of_seats({0, 1, 2, 3}));
  t.all_are_ready({0, 1, 2, 3});
  t.tell(everyone_began{});
  CHECK(t.leaves.got->empty());
  t.all_hold({0, 1, 2, 3}, 9);
  t.all_drain({0, 1, 2, 3}, 9);
  REQUIRE(t.drained.got->size() == 2);
  CHECK(t.drained.got->back().members == members_of_seats({3}));
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

TEST_CASE("coordinator: the leader hears when all others wait for it, in a change and at the end") {
  coordinator_rig t;
  t.newcomer(3);
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({1}, 7);
  CHECK(t.others.got->empty());
  t.all_drain({2}, 7);
  REQUIRE(t.others.got->size() == 1);
  CHECK(t.others.got->back().clock == clock_id{7});
  CHECK(t.others.got->back().epoch == 1);
  t.all_drain({0}, 7);
  CHECK(t.others.got->size() == 1);
  t.all_are_ready({0, 1, 2, 3});
  t.tell(everyone_began{});
  for (const std::uint32_t seat : {1, 2}) t.tell(member_is_done{seat_id{seat}, version_id{9}});
  CHECK(t.others.got->size() == 1);
  t.tell(member_is_done{seat_id{3}, version_id{9}});
  REQUIRE(t.others.got->size() == 2);
  CHECK(t.others.got->back().clock == clock_id{9});
  CHECK(t.done.got->empty());
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
