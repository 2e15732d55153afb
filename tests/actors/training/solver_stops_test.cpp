// How training ends, and how it pauses for a change of routes.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

TEST_CASE("solver: asked to stop it ends the clock in work, says which, and snapshots") {
  solver_rig t("max_iter: 100 test_iter: 1 test_interval: 2 test_initialization: false");
  t.clock();
  CHECK(t.started() == 2);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{2});
  CHECK(t.stop.got->front().reason == "Ctrl-C");
  t.tell(stop_soon{"once more"});
  t.clock();
  CHECK(t.started() == 2);
  CHECK(t.tests[0][0].got->empty());  // who stops does not want to wait for a test
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->front().version == version_id{2});
  t.snapshot_copied_and_written();
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{2});
}

TEST_CASE(
    "solver: told of an end before its clock, it leaves the clock that no worker will complete") {
  solver_rig t("max_iter: 100 snapshot_after_train: false");
  t.clock();
  t.clock();
  CHECK(t.last().clock == clock_id{2});
  t.tell(finish_after{version_id{2}, "worker 2 got SIGTERM"});
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{2});
}

TEST_CASE("solver: told of an end behind it, it gives up the test of a version that never comes") {
  solver_rig t("max_iter: 100 test_iter: 2 test_interval: 3 test_initialization: false");
  t.computed();
  t.computed();
  t.computed();  // two clocks ahead of its parameters, as staleness allows
  t.fresh(1);
  REQUIRE(t.tests[0][0].got->size() == 1);
  t.tell(finish_after{version_id{1}, "worker 0 got SIGTERM"});
  REQUIRE(t.checkpointer.got->size() == 1);
  t.snapshot_copied_and_written();
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{1});
  const auto pass = t.tests[0][0].got->front().pass;
  t.tell(outputs_ready{replica_id{0}, 0, pass, 0, {1, 0.5f}});
  t.tell(pass_issued{replica_id{0}, 0, pass});
  CHECK(t.tests[0][0].got->size() == 1);
  CHECK(t.started() == 3);
}

TEST_CASE("solver: the clock with which it is told to end has a last line, and one line only") {
  solver_rig t("max_iter: 100 display: 2 test_iter: 9 test_interval: 2 test_initialization: false");
  const auto shown = [&] {
    std::vector<std::uint64_t> clocks;
    for (const auto& i : t.display->trained_) clocks.push_back(i.clock);
    return clocks;
  };
  t.clock(8);
  SUBCASE("the clock has been computed, and no line of it was due") {
    t.clock(4);
    CHECK(shown() == std::vector<std::uint64_t>{0});
    t.tell(stop_soon{"Ctrl-C"});
    t.tell(stop_soon{"Ctrl-C, again"});
    CHECK(shown() == std::vector<std::uint64_t>{0, 1});
    CHECK(t.display->trained_.back().outputs == std::vector<double>{4});
    CHECK(t.display->steps_.back().done == t.display->steps_.back().total);
    CHECK(t.display->trained_.back().last_clock == 2);
  }
  SUBCASE("the clock is being computed") {
    t.tell(stop_soon{"Ctrl-C"});
    t.clock(4);
    CHECK(shown() == std::vector<std::uint64_t>{0, 1});
    CHECK(t.display->trained_.back().last_clock == 2);
  }
  SUBCASE("its line has been shown") {
    t.tell(finish_after{version_id{1}, "worker 1 got SIGINT"});
    CHECK(shown() == std::vector<std::uint64_t>{0});
  }
}

TEST_CASE("solver: asked to stop while it tests, it ends within the passes that have started") {
  solver_rig t("max_iter: 100 test_iter: 5000 test_interval: 1 test_initialization: false");
  t.clock();
  auto& source = *t.tests[0][0].got;
  REQUIRE(source.size() == 1);
  const auto first = source[0].pass;
  t.tell(pass_issued{replica_id{0}, 0, first});
  REQUIRE(source.size() == 2);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{1});
  CHECK(t.checkpointer.got->empty());  // the test net's kernels read the parameters
  t.tell(outputs_ready{replica_id{0}, 0, first, 0, {1, 0.5f}});
  t.tell(pass_issued{replica_id{0}, 0, source[1].pass});
  CHECK(t.checkpointer.got->empty());
  t.tell(outputs_ready{replica_id{0}, 0, source[1].pass, 0, {1, 0.5f}});
  CHECK(source.size() == 2);
  CHECK(t.display->tested_.empty());
  REQUIRE(t.checkpointer.got->size() == 1);
  t.snapshot_copied_and_written();
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{1});
}

TEST_CASE(
    "solver: asked to stop while it tests before the first clock, it trains and writes nothing") {
  solver_rig t("max_iter: 100 test_iter: 5000 test_interval: 1000");
  REQUIRE(t.tests[0][0].got->size() == 1);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{0});
  const auto pass = t.tests[0][0].got->front().pass;
  t.tell(pass_issued{replica_id{0}, 0, pass});
  t.tell(outputs_ready{replica_id{0}, 0, pass, 0, {1, 0.5f}});
  CHECK(t.started() == 0);
  CHECK(t.checkpointer.got->empty());
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{0});
}

TEST_CASE("solver: a worker that tests while others have gone on trains up to the end, untested") {
  solver_rig t("max_iter: 100 test_iter: 5000 test_interval: 1 test_initialization: false");
  t.clock();
  t.tell(finish_after{version_id{2}, "worker 0 got SIGINT"});
  const auto pass = t.tests[0][0].got->front().pass;
  t.tell(pass_issued{replica_id{0}, 0, pass});
  t.tell(outputs_ready{replica_id{0}, 0, pass, 0, {1, 0.5f}});
  REQUIRE(t.started() == 2);
  t.clock();
  CHECK(t.tests[0][0].got->size() == 1);
  t.snapshot_copied_and_written();
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{2});
}

TEST_CASE("solver: asked for a snapshot it writes one after the clock in work, and trains on") {
  solver_rig t("max_iter: 100 snapshot_after_train: false");
  t.clock();
  t.tell(snapshot_soon{});
  CHECK(t.checkpointer.got->empty());
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->front().version == version_id{2});
  t.snapshot_copied_and_written();
  t.clock();
  t.clock();
  CHECK(t.checkpointer.got->size() == 1);
}

TEST_CASE("solver: what it reports goes to the leader, whichever worker that is") {
  solver_rig::options o;
  o.workers = 3;
  o.leader = worker_id{2};
  solver_rig t("max_iter: 4 display: 1 snapshot_after_train: false", o);
  t.clock();
  REQUIRE(t.to_leader.got->size() == 1);
  CHECK(std::holds_alternative<frames::worker_report>(t.to_leader.got->front().header));
  CHECK(t.display->trained_.empty());
}

TEST_CASE("solver: a NaN ends training once, with clock, layer, cause and exit code") {
  solver_rig t("max_iter: 100");
  t.clock();
  t.tell(nonfinite_found{{clock_id{1}, 0, 0}, "fc7"});
  t.tell(nonfinite_found{{clock_id{1}, 0, 0}, "fc8"});
  REQUIRE(t.failed.got->size() == 1);
  CHECK(t.failed.got->front().exit_code == 4);
  CHECK(t.failed.got->front().text.find(
            "training diverged at iteration 1: layer \"fc7\" produced the first NaN or infinity. "
            "Likely cause: the learning rate (1.000000)") == 0);
  t.computed();
  CHECK(t.started() == 2);  // nothing begins after it
}

TEST_CASE("solver: a worker that holds begins no clock before it is told which to stop at") {
  solver_rig t("max_iter: 10");
  t.clock();
  REQUIRE(t.started() == 2);  // clock 1 has begun
  t.tell(hold_clocks{});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->front().clock == clock_id{2});
  t.clock();
  CHECK(t.started() == 2);
  SUBCASE("at that clock it pauses") {
    t.tell(pause_at{clock_id{2}});
    CHECK(t.started() == 2);
    REQUIRE(t.paused.got->size() == 1);
    CHECK(t.paused.got->front().version == version_id{2});
  }
  SUBCASE("another worker was ahead: it goes on to that clock") {
    t.tell(pause_at{clock_id{3}});
    CHECK(t.started() == 3);
    CHECK(t.paused.got->empty());
    t.clock();
    CHECK(t.started() == 3);
    CHECK(t.paused.got->size() == 1);
  }
  SUBCASE("the run ends before that clock: it ends") {
    t.tell(finish_after{version_id{2}, "enough"});
    CHECK(t.paused.got->empty());
    CHECK(t.checkpointer.got->size() + t.done.got->size() == 1);
  }
}

TEST_CASE(
    "solver: it has paused when parameters, outputs and snapshots of all clocks before are in") {
  solver_rig t("max_iter: 10 snapshot: 1");
  t.tell(pause_at{clock_id{1}});
  const auto pass = t.last();
  t.tell(pass_issued{replica_id{0}, -1, pass});
  t.fresh(1);
  REQUIRE(t.checkpointer.got->size() == 1);
  t.copied();
  CHECK(t.paused.got->empty());
  t.tell(snapshot_written{version_id{1}, "there", "", {}});
  CHECK(t.paused.got->empty());
  t.tell(outputs_ready{replica_id{0}, -1, pass, 0, {1}});
  CHECK(t.paused.got->size() == 1);
  CHECK(t.started() == 1);
}

TEST_CASE(
    "solver: after a change of the view the same clocks go on, and the next change may be known") {
  solver_rig t("max_iter: 4");
  t.tell(pause_at{clock_id{1}});
  t.clock();
  REQUIRE(t.paused.got->size() == 1);
  t.tell(pause_at{clock_id{2}});
  t.fresh(1);  // of the new graph
  t.tell(resume_training{});
  REQUIRE(t.started() == 2);
  CHECK(t.last().first_sample == 1100);
  t.clock();
  CHECK(t.started() == 2);
  CHECK(t.paused.got->size() == 2);
}

TEST_CASE("solver: a stop that comes while all change the view ends the clock after the change") {
  solver_rig t("max_iter: 10 snapshot_after_train: false");
  t.tell(pause_at{clock_id{1}});
  t.clock();
  REQUIRE(t.paused.got->size() == 1);
  t.tell(stop_soon{"Ctrl-C"});
  CHECK(t.stop.got->empty());
  t.fresh(1);
  t.tell(resume_training{});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{2});
  CHECK(t.done.got->empty());
  t.clock();
  CHECK(t.done.got->size() == 1);
}
