#include "tests/actors/membership/plan_rig.hpp"

using namespace poseidon;
using test::plan_rig, test::members_of_seats, test::member_of_seat;

TEST_CASE("view_plan: the view is agreed when as many have joined as were asked for") {
  plan_rig t(false);
  t.joined(1);
  CHECK(t.count<plan::agree_on_first_view>() == 0);
  t.joined(2);
  REQUIRE(t.count<plan::agree_on_first_view>() == 1);
  CHECK(t.all<plan::agree_on_first_view>().front().members == members_of_seats({0, 1, 2}));
  t.all_are_ready({0, 2});
  CHECK(t.count<plan::begin_view>() == 0);
  t.all_are_ready({1});
  CHECK(t.count<plan::begin_view>() == 1);
}

TEST_CASE("view_plan: a node that is alone is ready without a view to agree on") {
  plan_rig t(false, {1, members_of_seats({0})});
  t.all_are_ready({0});
  CHECK(t.count<plan::begin_view>() == 1);
  CHECK(t.count<plan::agree_on_first_view>() == 0);
}

TEST_CASE("view_plan: routes change at the latest clock that anybody has not begun") {
  plan_rig t;
  REQUIRE(t.count<plan::begin_view>() == 1);
  t.it.wants({{0, 1}, std::nullopt, "links are fast"});
  REQUIRE(t.count<plan::hold_all>() == 1);
  t.all_hold({0}, 41);
  t.all_hold({2}, 43);
  CHECK(t.count<plan::drain_all>() == 0);
  t.all_hold({1}, 42);
  REQUIRE(t.count<plan::drain_all>() == 1);
  CHECK(t.all<plan::drain_all>().front().clock == clock_id{43});

  SUBCASE("nobody builds anew before all have drained, nor begins before all have built") {
    t.all_drain({0, 1}, 43);
    CHECK(t.proposed().empty());
    t.all_drain({2}, 43);
    REQUIRE(t.proposed().size() == 1);
    CHECK(t.proposed().front().members == members_of_seats({0, 1, 2}));
    CHECK(t.proposed().front().routes == std::vector<std::uint8_t>{0, 1});
    CHECK(t.proposed().front().why == "links are fast");
    CHECK(t.count<plan::begin_view>() == 1);
    t.all_are_ready({0, 1, 2});
    CHECK(t.count<plan::begin_view>() == 2);
    t.it.began();
    t.it.wants({{0, 0}, std::nullopt, ""});
    CHECK(t.count<plan::hold_all>() == 2);
  }
  SUBCASE("other routes that are wanted meanwhile are forgotten: their time has passed") {
    t.it.wants({{1, 1}, std::nullopt, ""});
    t.all_drain({0, 1, 2}, 43);
    CHECK(t.proposed().front().routes == std::vector<std::uint8_t>{0, 1});
    t.all_are_ready({0, 1, 2});
    t.it.began();
    CHECK(t.count<plan::hold_all>() == 1);
  }
  SUBCASE("a pause of another clock than the agreed one is none") {
    t.all_drain({0, 1}, 43);
    t.all_drain({2}, 42);
    CHECK(t.proposed().empty());
  }
}

TEST_CASE("view_plan: of a change whose clock all know only the end is waited for") {
  plan_rig t(false);
  t.joined(1);
  t.joined(2);
  t.all_are_ready({0, 1, 2});
  t.it.wants({{0, 1}, clock_id{20}, ""});
  t.it.began();
  t.newcomer(3);
  CHECK(t.count<plan::hold_all>() == 0);
  t.all_drain({0, 1, 2}, 20);
  CHECK(t.count<plan::drain_all>() == 0);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().routes == std::vector<std::uint8_t>{0, 1});
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2, 3}));
}

// -- nodes that join ------------------------------------------------------------------------------------

TEST_CASE("view_plan: a newcomer that is ready causes one hold and one drain") {
  plan_rig t;
  t.newcomer(3);
  CHECK(t.count<plan::hold_all>() == 1);
  t.all_hold({0, 1, 2}, 7);
  REQUIRE(t.count<plan::drain_all>() == 1);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2, 3}));
  CHECK(!t.proposed().front().routes);
  t.all_are_ready({0, 1, 2});
  CHECK(t.count<plan::begin_view>() == 1);  // the newcomer has to be ready, too
  t.all_are_ready({3});
  CHECK(t.count<plan::begin_view>() == 2);
  t.it.began();
  CHECK(t.count<plan::hold_all>() == 1);
  CHECK(t.count<plan::drain_all>() == 1);
}

TEST_CASE("view_plan: a newcomer that goes before all have drained is not in the next view") {
  plan_rig t;
  t.newcomer(3);
  t.newcomer(4);
  SUBCASE("while the others hold") {
    t.it.newcomer_gone(seat_id{3});
  }
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1}, 7);
  SUBCASE("while the others drain") {
    t.it.newcomer_gone(seat_id{3});
  }
  t.all_drain({2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2, 4}));
}

TEST_CASE(
    "view_plan: where the only newcomer goes, all train on as they did, in a view of its own") {
  plan_rig t;
  t.newcomer(3);
  t.it.newcomer_gone(seat_id{3});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2}));
}

TEST_CASE(
    "view_plan: what is wanted while a change is under way is part of the next view, or of the "
    "one after it") {
  plan_rig t;
  t.newcomer(3);
  t.all_hold({0, 1, 2}, 7);
  t.newcomer(4);
  t.leave({1});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 2, 3, 4}));
  CHECK(t.count<plan::hold_all>() == 1);

  // Members build: it is too late for this view.
  t.newcomer(5);
  t.leave({0});
  CHECK(t.count<plan::hold_all>() == 1);
  t.all_are_ready({0, 2, 3, 4, 1});
  t.it.began();
  CHECK(t.count<plan::hold_all>() == 2);
  t.all_hold({0, 2, 3, 4}, 9);
  t.all_drain({0, 2, 3, 4}, 9);
  REQUIRE(t.proposed().size() == 2);
  CHECK(t.proposed().back().members == members_of_seats({2, 3, 4, 5}));
}

TEST_CASE(
    "view_plan: a newcomer that goes before the view with it begins is left out of another one") {
  plan_rig t;
  t.it.wants({{0, 1}, std::nullopt, "links are fast"});
  t.newcomer(3);
  t.newcomer(4);
  t.leave({1});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  SUBCASE("while they build") {
    t.all_are_ready({0, 1, 2, 4});
  }
  SUBCASE("when all are ready") {
    t.all_are_ready({0, 1, 2, 3, 4});
    CHECK(t.count<plan::begin_view>() == 2);
  }
  const auto said = t.count<plan::begin_view>();
  t.it.newcomer_gone(seat_id{3});
  REQUIRE(t.proposed().size() == 2);
  const auto first = t.proposed().front();
  const auto second = t.proposed().back();
  CHECK(second.epoch == first.epoch + 1);
  CHECK(second.members == members_of_seats({0, 2, 4}));
  CHECK(second.routes == first.routes);
  CHECK(second.why == "links are fast");
  // What is ready for the view that was replaced is not for this one.
  for (const std::uint32_t s : {0, 1, 2, 4}) t.it.ready(seat_id{s}, first.epoch);
  CHECK(t.count<plan::begin_view>() == said);
  t.all_are_ready({0, 2, 4});
  CHECK(t.count<plan::begin_view>() == said);  // who leaves has solver state
  t.all_are_ready({1});
  CHECK(t.count<plan::begin_view>() == said + 1);
  t.it.began();
  t.it.newcomer_gone(seat_id{4});  // it is a member now
  CHECK(t.proposed().size() == 2);
}

TEST_CASE("view_plan: where all want to leave as others join, they leave one view later") {
  plan_rig t;
  t.leave({0, 2});
  t.all_hold({0, 1, 2}, 7);
  t.newcomer(3);
  t.leave({1});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2, 3}));
  t.all_are_ready({0, 1, 2, 3});
  t.it.began();
  CHECK(t.count<plan::end_run>() == 0);
  t.all_hold({0, 1, 2, 3}, 9);
  t.all_drain({0, 1, 2, 3}, 9);
  REQUIRE(t.proposed().size() == 2);
  CHECK(t.proposed().back().members == members_of_seats({3}));
}

// -- nodes that leave -----------------------------------------------------------------------------------

TEST_CASE("view_plan: members that leave are collected for a moment, and leave in one change") {
  plan_rig t;
  t.it.leaves(seat_id{2});
  const auto moment = t.last<plan::collect_leavers>();
  t.it.leaves(seat_id{0});
  CHECK(t.count<plan::collect_leavers>() == 1);
  CHECK(t.count<plan::hold_all>() == 0);
  t.it.leavers_collected(moment.epoch + 1);  // that of another leader's plan
  CHECK(t.count<plan::hold_all>() == 0);
  t.it.leavers_collected(moment.epoch);
  CHECK(t.count<plan::hold_all>() == 1);
  t.it.leavers_collected(moment.epoch);
  CHECK(t.count<plan::hold_all>() == 1);
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({1}));
  CHECK(t.count<plan::end_run>() == 0);
}

TEST_CASE("view_plan: all members that want to leave within the window end the run") {
  plan_rig t;
  t.leave({1, 2, 0});
  CHECK(t.count<plan::end_run>() == 1);
  CHECK(t.count<plan::hold_all>() == 0);
  CHECK(t.proposed().empty());
}

TEST_CASE(
    "view_plan: where the last members want to leave while others do, all of them go on until "
    "the "
    "view has begun, and end the run together") {
  plan_rig t;
  t.leave({1});
  t.all_hold({0, 1, 2}, 7);
  t.leave({0, 2});
  t.all_drain({0, 1, 2}, 7);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2}));
  CHECK(t.count<plan::end_run>() == 0);
  t.all_are_ready({0, 1, 2});
  t.it.began();
  CHECK(t.count<plan::end_run>() == 1);
}

TEST_CASE("view_plan: the leader hears when all others wait for it, in a change and at the end") {
  plan_rig t;
  t.newcomer(3);
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({1}, 7);
  CHECK(t.count<plan::others_wait>() == 0);
  t.all_drain({2}, 7);
  REQUIRE(t.count<plan::others_wait>() == 1);
  CHECK(t.last<plan::others_wait>().clock == clock_id{7});
  t.all_drain({0}, 7);
  CHECK(t.count<plan::others_wait>() == 1);
  t.all_are_ready({0, 1, 2, 3});
  t.it.began();
  for (const std::uint32_t seat : {1, 2}) t.it.done(seat_id{seat}, version_id{9});
  CHECK(t.count<plan::others_wait>() == 1);
  t.it.done(seat_id{3}, version_id{9});
  REQUIRE(t.count<plan::others_wait>() == 2);
  CHECK(t.last<plan::others_wait>().clock == clock_id{9});
  CHECK(t.count<plan::all_are_done>() == 0);
}

TEST_CASE("view_plan: whoever is no member cannot leave") {
  plan_rig t;
  t.leave({7});
  CHECK(t.count<plan::hold_all>() == 0);
}

TEST_CASE(
    "view_plan: a view begins when those who leave can give their state away, and ends without "
    "them") {
  plan_rig t;
  t.leave({0});
  t.all_hold({0, 1, 2}, 7);
  t.all_drain({0, 1, 2}, 7);
  t.all_are_ready({1, 2});
  CHECK(t.count<plan::begin_view>() == 1);
  t.all_are_ready({0});
  CHECK(t.count<plan::begin_view>() == 2);
  t.it.began();
  t.it.done(seat_id{1}, version_id{9});
  CHECK(t.count<plan::all_are_done>() == 0);
  t.it.done(seat_id{2}, version_id{9});
  CHECK(t.count<plan::all_are_done>() == 1);
}

TEST_CASE(
    "view_plan: one that begins with a view says go when all of its members are ready, and "
    "changes nothing before") {
  plan_rig t(false, {2, members_of_seats({1, 2}), true});
  t.newcomer(3);
  t.all_are_ready({1});
  CHECK(t.count<plan::begin_view>() == 0);
  t.all_are_ready({2});
  CHECK(t.count<plan::begin_view>() == 1);
  CHECK(t.count<plan::hold_all>() == 0);
  t.it.began();
  CHECK(t.count<plan::hold_all>() == 1);
}
