// What a program's threads wait on.
#include "actors/client/fresh_board.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

using namespace poseidon;
using answer = fresh_board::answer;

namespace {

constexpr parameter_id a{0}, b{1};
constexpr std::chrono::duration<double> now{0}, long_enough{600};

}  // namespace

TEST_CASE(
    "fresh_board: a version is here once it has been published, and those before it stay here") {
  fresh_board board(2);
  CHECK(board.wait(a, 0, now) == answer::not_yet);
  board.publish(a, 0, false);
  CHECK(board.wait(a, 0, now) == answer::here);
  CHECK(board.wait(a, 1, now) == answer::not_yet);
  CHECK(board.wait(b, 0, now) == answer::not_yet);
  board.publish(a, 1, true);
  CHECK(board.wait(a, 1, now) == answer::no_gradient);
  CHECK(board.wait(a, 0, now) == answer::here);
  CHECK(board.wait(b, 0, std::chrono::duration<double>(0.001)) == answer::not_yet);
}

TEST_CASE(
    "fresh_board: of several, those are told that come before the first one that is missing") {
  fresh_board board(3);
  constexpr parameter_id c{2};
  const std::vector<parameter_id> all{c, a, b};
  using answers = std::vector<answer>;
  CHECK(board.look(all, 1).empty());
  board.publish(c, 1, true);
  board.publish(b, 1, false);
  CHECK(board.look(all, 1) == answers{answer::no_gradient});
  board.publish(a, 2, false);
  CHECK(board.look(all, 1) == answers{answer::no_gradient, answer::here, answer::here});
  CHECK(board.look(all, 0) == answers(3, answer::here));
  board.fail("over");
  CHECK(board.look(all, 2).empty());
  CHECK(board.look({}, 0).empty());
}

TEST_CASE("fresh_board: a thread that waits is woken by its parameter") {
  fresh_board board(2);
  answer got = answer::failed;
  std::thread waiter([&] { got = board.wait(b, 1, long_enough); });
  board.publish(a, 5, false);
  board.publish(b, 0, false);
  board.publish(b, 1, false);
  waiter.join();
  CHECK(got == answer::here);
}

TEST_CASE("fresh_board: a run that has failed wakes all; what has come can still be read") {
  fresh_board board(2);
  board.publish(a, 3, false);
  answer got = answer::here;
  std::thread waiter([&] { got = board.wait(b, 0, long_enough); });
  board.fail("worker 1 is lost");
  board.fail("and then this");
  waiter.join();
  CHECK(got == answer::failed);
  CHECK(board.error() == "worker 1 is lost");
  CHECK(board.wait(a, 3, now) == answer::here);
  CHECK(board.wait(a, 4, now) == answer::failed);
}

TEST_CASE(
    "fresh_board: a worker that has left is waited for up to its last version, and no further") {
  fresh_board board(1);
  board.publish(a, 3, false);
  board.left("worker 2", 4);
  CHECK(board.wait(a, 4, now) == answer::not_yet);
  CHECK(board.wait(a, 5, now) == answer::failed);
  CHECK(board.error().find("worker 2 left after 4 clocks, and this worker trains clock 4") == 0);
  board.left("worker 1", 6);  // the first to leave counts
  CHECK(board.first_to_leave()->worker == "worker 2");
}

TEST_CASE("fresh_board: of several, those are told that have come, whichever they are") {
  fresh_board board(3);
  constexpr parameter_id c{2};
  const std::vector<parameter_id> all{a, b, c};
  using arrival = fresh_board::arrival;
  const auto same = [](const std::vector<arrival>& x, const std::vector<arrival>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& i, const auto& j) {
      return i.place == j.place && i.is == j.is;
    });
  };
  CHECK(board.wait_for_some(all, 1, now).empty());
  std::thread later([&] { board.publish(c, 1, true); });
  CHECK(same(board.wait_for_some(all, 1, long_enough), {{2, answer::no_gradient}}));
  later.join();
  board.publish(a, 1, false);
  CHECK(same(board.wait_for_some(all, 1, now), {{0, answer::here}, {2, answer::no_gradient}}));
  board.fail("over");
  CHECK(same(board.wait_for_some(all, 1, now), {{0, answer::here}, {2, answer::no_gradient}}));
  CHECK(same(board.wait_for_some(std::vector{b}, 1, long_enough), {{0, answer::failed}}));
}
