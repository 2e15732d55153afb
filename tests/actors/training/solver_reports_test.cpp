// What the solver tells the display.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

TEST_CASE("solver: every iteration is told, displayed or not, from where a resumed run begins") {
  solver_rig t("max_iter: 7 display: 0", {.first_clock = 5});
  REQUIRE(t.display->steps_.size() == 1);
  CHECK(t.display->steps_[0].done == 5);
  CHECK(t.display->steps_[0].images == 0);
  t.clock();
  REQUIRE(t.display->steps_.size() == 2);
  CHECK(t.display->steps_[1].done == 6);
  CHECK(t.display->steps_[1].total == 7);
  CHECK(t.display->steps_[1].images == 10);
}

TEST_CASE("solver: a test phase is a task that asks how many of its passes are computed") {
  solver_rig t("max_iter: 2 test_iter: 3 test_interval: 2 test_initialization: true");
  REQUIRE(t.display->task_);
  CHECK(t.display->task_->total == 3);
  CHECK(t.display->task_->done() == 0);
  CHECK(t.display->task_->training_pauses);
  CHECK_FALSE(t.display->task_is_over());
  t.test(0, 0.25f);
  CHECK(t.display->task_->done() == 3);
  CHECK(t.display->task_is_over());
}

TEST_CASE("solver: shows the mean over micro-batches and replicas, smoothed over average_loss") {
  solver_rig t("max_iter: 5 display: 2 average_loss: 2", {2, 2, 1, 0, 0});
  const float losses[] = {1, 3, 5};
  for (const float loss : losses)
    for (int micro = 0; micro < 2; ++micro) {
      t.computed(0, loss);
      t.computed(1, loss + 2);
    }
  REQUIRE(t.display->trained_.size() == 2);
  CHECK(t.display->trained_[0].clock == 0);
  CHECK(t.display->trained_[0].loss == 2);
  CHECK(t.display->trained_[1].clock == 2);
  CHECK(t.display->trained_[1].loss == 5);  // of clocks 1 and 2: 4 and 6
  CHECK(t.display->trained_[1].outputs == std::vector<double>{6});
  CHECK(t.display->trained_[1].last_clock == 5);
}

TEST_CASE("solver: worker 0 shows a clock when every worker has reported it") {
  solver_rig t("max_iter: 5 display: 1", {1, 1, 2, 0, 0});
  t.computed(0, 1);
  CHECK(t.display->trained_.empty());
  t.tell(control_passed{worker_id{1}, frames::worker_report{clock_id{0}, -1, 1, {3, 3}, 10}});
  REQUIRE(t.display->trained_.size() == 1);
  CHECK(t.display->trained_[0].loss == 2);
  CHECK(t.display->trained_[0].images == 20);
}

TEST_CASE("solver: outputs that overtake the word of their pass count their images") {
  solver_rig t("max_iter: 5 display: 1");
  const auto pass = t.last();
  t.tell(outputs_ready{replica_id{0}, -1, pass, 0, {1}});
  REQUIRE(t.display->trained_.size() == 1);
  CHECK(t.display->trained_[0].images == 10);
  t.tell(pass_issued{replica_id{0}, -1, pass});
  ++t.answered[0];
  t.fresh(1);
  t.computed();
  CHECK(t.display->trained_.at(1).images == 20);
}
