#include "actors/membership/view.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

frames::member of_seat(std::uint32_t seat) {
  return {seat_id{seat}, std::string(1, static_cast<char>('a' + seat)) + ":1"};
}

agreed_view of_four(std::uint32_t self) {
  frames::view told;
  told.epoch = 4;
  told.you = seat_id{self};
  told.members = {of_seat(0), of_seat(2), of_seat(3), of_seat(5)};
  told.before.seats = {seat_id{0}, seat_id{2}};
  told.first_clock = clock_id{7};
  return view_told(told);
}

}  // namespace

TEST_CASE("view: a worker id is the place of a seat among the members") {
  const auto v = of_four(3);
  CHECK(v.self() == worker_id{2});
  CHECK(v.worker_of(seat_id{5}) == worker_id{3});
  CHECK(v.worker_of(seat_id{1}) == no_worker);
  CHECK(v.seat_of(worker_id{1}) == seat_id{2});
  CHECK(v.has(seat_id{5}));
  CHECK(!v.has(seat_id{4}));
  CHECK(v.others() == std::vector{seat_id{0}, seat_id{2}, seat_id{5}});
  CHECK(v.first_clock == clock_id{7});
  CHECK(v.before == std::vector{seat_id{0}, seat_id{2}});
  CHECK(of_four(4).self() == no_worker);
}

TEST_CASE("view: the leader's forms when all nodes are in") {
  const auto alone = view_of_leader();
  CHECK(alone.leads());
  CHECK(alone.self() == worker_id{0});
  CHECK(alone.epoch == 0);
  CHECK(alone.name_of(seat_id{0}) == "worker 0");
  const auto v = formed(alone, {of_seat(0), of_seat(1)}, clock_id{7}, false);
  CHECK(v.epoch == 1);
  CHECK(v.is_first());
  CHECK(v.first_clock == clock_id{7});
  CHECK(v.leads());
  CHECK(v.before.empty());
  CHECK(v.name_of(seat_id{1}) == "worker 1 (b:1)");
  CHECK(v.name_of(seat_id{2}) == "worker 2");
  CHECK(v.lines() ==
        std::vector<std::string>{"view 1: worker 0 (a:1), this node", "view 1: worker 1 (b:1)"});
}

TEST_CASE("view: a joiner that has no view yet is led by the first leader, and is no worker") {
  agreed_view joiner;
  CHECK(!joiner.leads());
  CHECK(joiner.leader() == seat_id{0});
  CHECK(joiner.self() == no_worker);
  joiner.first_leader = seat_id{2};
  CHECK(joiner.leader() == seat_id{2});
}

TEST_CASE("view: in the view that follows seats stay and worker ids move up") {
  const auto now = of_four(3);
  frames::next_view next;
  next.epoch = 5;
  next.first_clock = clock_id{20};
  next.members = {of_seat(0), of_seat(3), of_seat(5), of_seat(6)};
  const auto v = following(now, next);
  CHECK(v.epoch == 5);
  CHECK(v.seat == seat_id{3});
  CHECK(v.self() == worker_id{1});
  CHECK(v.worker_of(seat_id{6}) == worker_id{3});
  CHECK(v.worker_of(seat_id{2}) == no_worker);
  CHECK(v.first_clock == clock_id{20});
  CHECK(v.before == std::vector{seat_id{0}, seat_id{2}, seat_id{3}, seat_id{5}});
  CHECK(v.brought(seat_id{6}));
  CHECK(!v.brought(seat_id{3}));
  CHECK(!v.brought(seat_id{2}));  // it has left
}

TEST_CASE(
    "view: a view begins again while those are left that give its values, and some need them") {
  const auto now = formed(view_of_leader(), {of_seat(0), of_seat(1), of_seat(2)}, clock_id{}, true);
  frames::next_view next;
  next.members = {of_seat(0), of_seat(1)};
  CHECK(begins_again(now, next));
  CHECK(following(now, next).before == std::vector{seat_id{0}});
  next.all_have_values = true;
  CHECK(!begins_again(now, next));
  CHECK(following(now, next).before == std::vector{seat_id{0}, seat_id{1}, seat_id{2}});
  next.all_have_values = false;
  next.members = {of_seat(1), of_seat(2)};
  CHECK(!begins_again(now, next));
  next.members = {of_seat(0)};
  next.first_clock = clock_id{1};
  CHECK(!begins_again(now, next));
}

TEST_CASE(
    "view: where members may be lost, all come to the first node, as if that had been alone "
    "before") {
  const auto v = formed(view_of_leader(), {of_seat(0), of_seat(1)}, clock_id{}, true);
  CHECK(v.before == std::vector{seat_id{0}});
  CHECK(v.had(seat_id{0}));
  CHECK(v.brought(seat_id{1}));
  CHECK(
      !formed(view_of_leader(), {of_seat(0), of_seat(1)}, clock_id{7}, false).brought(seat_id{1}));
  CHECK(formed(view_of_leader(), {of_seat(0)}, clock_id{}, true).before.empty());  // it is alone
}

TEST_CASE("view: when the leader leaves, the lowest seat that stays leads") {
  frames::next_view next;
  next.epoch = 5;
  next.first_clock = clock_id{20};
  next.members = {of_seat(2), of_seat(3), of_seat(5)};
  CHECK(!of_four(2).leads());
  CHECK(following(of_four(2), next).leads());
  CHECK(following(of_four(3), next).leader() == seat_id{2});
  const auto gone = following(of_four(0), next);
  CHECK(!gone.leads());
  CHECK(gone.self() == no_worker);
}

TEST_CASE("view: who has joined and who has left is what one view has and the other has not") {
  const std::vector old{of_seat(0), of_seat(1), of_seat(2)},
      now{of_seat(0), of_seat(2), of_seat(4)};
  CHECK(without(now, old) == std::vector{of_seat(4)});
  CHECK(without(old, now) == std::vector{of_seat(1)});
  CHECK(without(old, old).empty());
}
