#include "actors/training/output_reports.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {
frames::worker_report report_of(std::uint64_t clock, double sum, std::int32_t test_net = -1) {
  frames::worker_report r;
  r.clock = clock_id{clock};
  r.test_net = test_net;
  r.passes = 1;
  r.sums = {sum};
  return r;
}
}  // namespace

TEST_CASE("report_board: a clock is merged when every worker has reported it, each net by itself") {
  report_board board(2);
  CHECK_FALSE(board.add(worker_id{0}, report_of(4, 1)));
  CHECK_FALSE(board.add(worker_id{0}, report_of(4, 5, 0)));
  CHECK(board.incomplete() == 2);
  const auto trained = board.add(worker_id{1}, report_of(4, 3));
  REQUIRE(trained);
  CHECK(trained->means == std::vector<double>{2});
  const auto tested = board.add(worker_id{1}, report_of(4, 7, 0));
  REQUIRE(tested);
  CHECK(tested->means == std::vector<double>{6});
  CHECK(board.incomplete() == 0);
}

TEST_CASE(
    "report_board: a clock that one worker has not reported is forgotten with the next that all "
    "have") {
  report_board board(2);
  CHECK_FALSE(board.add(worker_id{1}, report_of(3, 1)));
  CHECK_FALSE(board.add(worker_id{1}, report_of(4, 1)));
  CHECK_FALSE(board.add(worker_id{1}, report_of(6, 1)));  // this worker is ahead
  CHECK(board.add(worker_id{0}, report_of(4, 1)));
  CHECK(board.incomplete() == 1);
  CHECK(board.add(worker_id{0}, report_of(6, 1)));
  CHECK(board.incomplete() == 0);
}

TEST_CASE("report_board: a report of a clock that is complete, or older, is dropped") {
  report_board board(2);
  CHECK_FALSE(board.add(worker_id{0}, report_of(4, 1)));
  CHECK(board.add(worker_id{1}, report_of(4, 1)));
  CHECK_FALSE(board.add(worker_id{1}, report_of(4, 2)));
  CHECK_FALSE(board.add(worker_id{1}, report_of(2, 2)));
  CHECK_FALSE(board.add(worker_id{1}, report_of(2, 2, 0)));  // a test net has clocks of its own
  CHECK(board.incomplete() == 1);
}
