// Views as --views asks for them.
#include "tests/actors/membership/plan_rig.hpp"

using namespace poseidon;
using test::plan_rig, test::members_of_seats, test::member_of_seat;

namespace {

/// Three members by a schedule, told of the next view before they begin.
struct scheduled_rig : plan_rig {
  explicit scheduled_rig(std::size_t members)
      : plan_rig(false, {3, members_of_seats({0}), false, {}, true}) {
    joined(1);
    joined(2);
    all_are_ready({0, 1, 2});
    it.wants({{0}, clock_id{9}, "as --views asks", members});
    it.began();
  }
};

}  // namespace

TEST_CASE("view_plan: by a schedule the highest seats leave, those first that want to") {
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
  CHECK(t.count<plan::hold_all>() == 0);
  t.all_drain({0, 1, 2}, 9);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == stay);
}

TEST_CASE("view_plan: by a schedule other routes bring nobody, and nobody leaves with them") {
  scheduled_rig t(0);
  t.newcomer(4);
  t.leave({1});
  t.all_drain({0, 1, 2}, 9);
  REQUIRE(t.proposed().size() == 1);
  CHECK(t.proposed().front().members == members_of_seats({0, 1, 2}));
}

TEST_CASE("view_plan: a schedule's view waits for newcomers, and takes no more than it wants") {
  scheduled_rig t(4);
  t.all_drain({0, 1, 2}, 9);
  CHECK(t.proposed().empty());
  SUBCASE("two come") {
    t.newcomer(5);
    t.newcomer(4);
    REQUIRE(t.proposed().size() == 1);
    CHECK(t.proposed().front().members == members_of_seats({0, 1, 2, 5}));
  }
  SUBCASE("the run is to end") {
    t.it.schedule_ends();
    REQUIRE(t.proposed().size() == 1);
    CHECK(t.proposed().front().members == members_of_seats({0, 1, 2}));
  }
}

TEST_CASE(
    "view_plan: a schedule's view waits again where one of its newcomers goes before it begins") {
  scheduled_rig t(4);
  t.all_drain({0, 1, 2}, 9);
  t.newcomer(3);
  REQUIRE(t.proposed().size() == 1);
  t.it.newcomer_gone(seat_id{3});
  CHECK(t.proposed().size() == 1);
  SUBCASE("another one comes") {
    t.newcomer(4);
    REQUIRE(t.proposed().size() == 2);
    CHECK(t.proposed().back().members == members_of_seats({0, 1, 2, 4}));
    t.it.newcomer_gone(seat_id{4});
    t.newcomer(5);
    REQUIRE(t.proposed().size() == 3);
    CHECK(t.proposed().back().members == members_of_seats({0, 1, 2, 5}));
    CHECK(t.proposed().back().epoch == 4);
  }
  SUBCASE("the run is to end") {
    t.it.schedule_ends();
    REQUIRE(t.proposed().size() == 2);
    CHECK(t.proposed().back().members == members_of_seats({0, 1, 2}));
  }
}

TEST_CASE("view_plan: by a schedule nothing else changes a view, but all may leave") {
  scheduled_rig t(3);
  t.newcomer(7);
  t.leave({2});
  t.it.wants({{1}, std::nullopt, "links are fast"});
  CHECK(t.count<plan::hold_all>() == 0);
  t.leave({0, 1});
  CHECK(t.count<plan::end_run>() == 1);
}
