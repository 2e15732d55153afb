// What tests find decides which model is kept, and when training ends.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

namespace {

const std::string tested = "max_iter: 6 test_iter: 1 test_interval: 2 test_initialization: false ";

/// What another worker has found in a test of net 0.
frames::worker_report found(std::uint64_t clock, double accuracy) {
  return {clock_id{clock}, 0, 1, {accuracy, 0.5}, 10};
}

}  // namespace

TEST_CASE("goals: the best model is written after its test, together with what is due there") {
  solver_rig t(tested + "snapshot: 4 poseidon { keep_best: 'accuracy' }");
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->back().version == version_id{2});
  CHECK(t.checkpointer.got->back().best);
  CHECK_FALSE(t.checkpointer.got->back().regular);
  CHECK(t.checkpointer.got->back().test_phases == 0);  // a resumed run tests here again
  CHECK(t.started() == 2);
  t.snapshot_copied_and_written();
  CHECK(t.started() == 3);

  t.clock();
  t.clock();
  CHECK(t.checkpointer.got->size() == 1);  // the snapshot of version 4 waits for the test
  t.test(0, 0.75f);
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(t.checkpointer.got->back().best);
  CHECK(t.checkpointer.got->back().regular);
  CHECK(t.checkpointer.got->back().test_phases == 1);
  t.snapshot_copied_and_written();

  t.clock();
  t.clock();
  t.test(0, 0.75f);  // as good is not better
  REQUIRE(t.checkpointer.got->size() == 3);
  CHECK_FALSE(t.checkpointer.got->back().best);
  CHECK(t.checkpointer.got->back().regular);
  t.snapshot_copied_and_written();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("goals: less of a loss is better, and a NaN never is") {
  solver_rig t(tested + "snapshot_after_train: false poseidon { keep_best: 'accuracy=min' }");
  t.clock();
  t.clock();
  t.test(0, std::nanf(""));
  CHECK(t.checkpointer.got->empty());
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  REQUIRE(t.checkpointer.got->size() == 1);
  t.snapshot_copied_and_written();
  t.clock();
  t.clock();
  t.test(0, 0.25f);
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(t.checkpointer.got->back().version == version_id{6});
  CHECK_FALSE(t.checkpointer.got->back().regular);
  CHECK(t.done.got->empty());
  t.snapshot_copied_and_written();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("goals: training ends with the model that was good enough") {
  solver_rig t(tested + "poseidon { stop_at: 'accuracy=0.75' keep_best: 'loss' }");
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  t.snapshot_copied_and_written();  // the first loss is the best
  CHECK(t.stop.got->empty());
  t.clock();
  t.clock();
  t.test(0, 0.75f);
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().version == version_id{4});
  CHECK(t.stop.got->front().reason.find(
            "accuracy is 0.75, which is at least 0.75; training took ") == 0);
  CHECK(t.started() == 4);
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(t.checkpointer.got->back().regular);  // the last one
  CHECK_FALSE(t.checkpointer.got->back().best);
  t.snapshot_copied_and_written();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("goals: of several nodes the leader waits until all have tested") {
  solver_rig t(tested + "poseidon { stop_at: 'accuracy>=0.6' }", {1, 1, 2});
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  CHECK(t.started() == 2);
  t.tell(control_passed{worker_id{1}, found(2, 0.5)});
  CHECK(t.started() == 3);
  CHECK(t.stop.got->empty());
  t.clock();
  t.clock();
  t.tell(control_passed{worker_id{1}, found(4, 0.8)});
  CHECK(t.stop.got->empty());
  t.test(0, 0.5f);
  CHECK(t.stop.got->size() == 1);
}

TEST_CASE("goals: Ctrl-C while the others test does not wait for their verdict") {
  solver_rig t(tested + "poseidon { keep_best: 'accuracy' }", {1, 1, 2});
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK_FALSE(t.checkpointer.got->back().best);
  t.snapshot_copied_and_written();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE(
    "goals: a leader that waits for the others' tests pauses after the clock that follows, with "
    "all of them") {
  solver_rig t(tested + "poseidon { keep_best: 'accuracy' }", {1, 1, 2});
  t.clock();
  t.clock();
  t.test(0, 0.5f);
  t.tell(hold_clocks{});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->front().clock == clock_id{3});
  t.tell(pause_at{clock_id{3}});
  CHECK(t.paused.got->empty());
  CHECK(t.started() == 2);  // the other node tests still
  t.tell(control_passed{worker_id{1}, found(2, 0.5)});
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->back().best);
  t.snapshot_copied_and_written();
  REQUIRE(t.started() == 3);
  t.clock();
  CHECK(t.started() == 3);
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().version == version_id{3});
}
