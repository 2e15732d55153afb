// Clocks, test phases and snapshots in their order.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

TEST_CASE("solver: a micro-batch starts on every replica when the one before is issued on all") {
  solver_rig t("max_iter: 2", {2, 3, 1, 0, 0});
  REQUIRE(t.started(0) == 1);
  REQUIRE(t.started(1) == 1);
  CHECK(t.last(1).first_sample == 1001);
  t.computed(0);
  CHECK(t.started(0) == 1);
  t.computed(1);
  REQUIRE(t.started(0) == 2);
  CHECK(t.last(0) == pass_id{clock_id{0}, 1, 1010});
  for (int micro = 1; micro < 3; ++micro) t.computed(0), t.computed(1);
  // The next clock does not wait for parameters: layers do.
  CHECK(t.last(0) == pass_id{clock_id{1}, 0, 1100});
}

TEST_CASE("solver: it is done when the last clock's parameters have arrived, and no earlier") {
  solver_rig t("max_iter: 2 snapshot_after_train: false");
  t.clock();
  t.computed();
  CHECK(t.started() == 2);
  CHECK(t.done.got->empty());
  t.fresh(2);
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().version == version_id{2});
  CHECK(t.done.got->front().images == 20);
  CHECK(t.checkpointer.got->empty());
}

TEST_CASE("solver: a snapshot waits for fresh parameters, and the next clock for the copy only") {
  solver_rig t("max_iter: 4 snapshot: 2");
  t.clock();
  t.computed();
  CHECK(t.checkpointer.got->empty());
  CHECK(t.started() == 2);
  t.fresh(2);
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->front().version == version_id{2});
  CHECK(t.checkpointer.got->front().with_state);
  CHECK(t.checkpointer.got->front().samples == 1200);  // where the third clock begins
  CHECK(t.started() == 2);
  t.copied();
  CHECK(t.started() == 3);
  t.tell(snapshot_written{version_id{2}, "s", "", {}});
  CHECK(t.display->snapshots_ == std::vector<std::uint64_t>{2});

  // The last clock's snapshot was due anyway: there is no second one after training.
  t.clock();
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 2);
  t.copied();
  CHECK(t.done.got->empty());
  t.tell(snapshot_written{version_id{4}, "s", "", {}});
  CHECK(t.done.got->size() == 1);
}

TEST_CASE(
    "solver: a run that is quicker than its disk ends when all of its snapshots are written") {
  solver_rig t("max_iter: 4 snapshot: 2");
  t.clock();
  t.clock();
  t.copied();
  t.clock();
  t.clock();
  t.copied();
  t.tell(snapshot_written{version_id{2}, "s", "", {}});
  CHECK(t.done.got->empty());
  t.tell(snapshot_written{version_id{4}, "s", "the disk is full", {}});
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().snapshot_error == "the disk is full");
  CHECK(t.display->snapshots_ == std::vector<std::uint64_t>{2, 4});
}

TEST_CASE("solver: after training there is one more snapshot, unless the solver says no") {
  solver_rig t("max_iter: 3 snapshot: 2");
  t.clock();
  t.clock();
  t.snapshot_copied_and_written();
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(t.checkpointer.got->back().version == version_id{3});
  CHECK(t.done.got->empty());
  t.snapshot_copied_and_written();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("solver: tests before the first clock, every interval, and after the last") {
  solver_rig t("max_iter: 4 test_iter: 3 test_interval: 2 snapshot_after_train: false");
  CHECK(t.started() == 0);
  REQUIRE(t.tests[0][0].got->size() == 1);
  CHECK(t.tests[0][0].got->front().pass.first_sample == 0);
  t.test(0, 0.25f);
  CHECK(t.display->tested_ == std::vector<std::string>{"0 at 0: accuracy 25 loss 50"});
  t.clock();
  CHECK(t.started() == 2);
  t.clock();
  CHECK(t.started() == 2);
  REQUIRE_FALSE(t.tests[0][0].got->empty());
  // The test net reads on from where its last phase stopped: 3 batches of 5.
  CHECK(t.tests[0][0].got->front().pass.first_sample == 15);
  t.test(0, 0.5f);
  t.clock();
  t.clock();
  t.test(0, 0.75f);
  CHECK(t.display->tested_.back() == "0 at 4: accuracy 75 loss 50");
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("solver: test_initialization: false begins with training") {
  solver_rig t(
      "max_iter: 3 test_iter: 1 test_interval: 2 test_initialization: false "
      "snapshot_after_train: false");
  CHECK(t.started() == 1);
  t.clock();
  t.clock();
  t.test(0, 1);
  t.clock();  // 3 is no multiple of 2: no test at the end
  CHECK(t.display->tested_.size() == 1);
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("solver: several test nets are tested one after the other, each for its own test_iter") {
  solver_rig t("max_iter: 1 test_iter: 1 test_iter: 2 test_interval: 10 test_compute_loss: true");
  CHECK(t.tests[1][0].got->empty());
  t.test(0, 0.1f);
  t.test(1, 0.2f);
  // Twice the loss of 0.5, which is its weight.
  CHECK(t.display->tested_ ==
        std::vector<std::string>{"0 at 0: accuracy 10 loss 50 test_loss 100",
                                 "1 at 0: accuracy 20 loss 50 test_loss 100"});
  CHECK(t.started() == 1);
}

TEST_CASE("solver: a resumed run goes on with its clock, its data and its test phases") {
  solver_rig t("max_iter: 5 test_iter: 2 test_interval: 2 snapshot_after_train: false",
               {1, 1, 1, 4, 3});
  REQUIRE(t.tests[0][0].got->size() == 1);
  CHECK(t.tests[0][0].got->front().pass.first_sample == 3 * 2 * 5);
  t.test(0, 1);
  CHECK(t.last() == pass_id{clock_id{4}, 0, 1000});
  t.clock();
  CHECK(t.done.got->size() == 1);
}

TEST_CASE("solver: a run resumed at or behind its end trains nothing and writes nothing") {
  solver_rig t("max_iter: 4 snapshot: 3", {1, 1, 1, 7, 0});
  CHECK(t.started() == 0);
  t.fresh(7);
  CHECK(t.done.got->size() == 1);
  CHECK(t.checkpointer.got->empty());
}
