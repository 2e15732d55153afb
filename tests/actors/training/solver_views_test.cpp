// What a solver does when the view changes around it.
#include "tests/actors/training/solver_rig.hpp"

using namespace poseidon;
using poseidon::test::solver_rig;

TEST_CASE(
    "solver: a hold during a test phase answers the next clock, so that a test is never split "
    "between two views") {
  solver_rig t("max_iter: 10 test_iter: 3 test_interval: 2 test_initialization: false");
  t.clock();
  t.clock();
  REQUIRE(!t.tests[0][0].got->empty());  // the test before clock 2
  SUBCASE("the test has begun") {
    t.tell(hold_clocks{});
    t.test(0, 0.5f);
  }
  SUBCASE("the test is over") {
    t.test(0, 0.5f);
    t.tell(hold_clocks{});
  }
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->front().clock == clock_id{3});
  REQUIRE(t.started() == 3);
  t.clock();
  CHECK(t.started() == 3);
  t.tell(pause_at{clock_id{3}});
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().test_phases == 1);
}

TEST_CASE("solver: who is asked to pause says for which view it answers") {
  solver_rig t("max_iter: 10");
  t.tell(hold_clocks{7});
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->front().epoch == 7);
  t.tell(pause_at{clock_id{1}, 8});
  t.clock();
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().epoch == 8);
}

TEST_CASE("solver: a test that is due at the clock of a change belongs to the next view") {
  solver_rig t("max_iter: 10 test_iter: 6 test_interval: 2 test_initialization: false");
  t.tell(pause_at{clock_id{2}});
  t.clock();
  t.clock();
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().test_phases == 0);
  CHECK(t.tests[0][0].got->empty());
  auto part = t.nets.part;
  part.first_clock = 2;
  t.go_on_with(part);
  CHECK(!t.tests[0][0].got->empty());
  CHECK(t.started() == 2);
  t.test(0, 0.5f);
  CHECK(t.started() == 3);
}

TEST_CASE("solver: in another view it asks for the samples of its new place") {
  solver_rig t("max_iter: 10", {1, 1, 2});
  t.tell(pause_at{clock_id{2}});
  t.clock();
  t.clock();
  auto part = t.nets.part;
  part.workers = 3;
  part.first_clock = 2;
  part.micro_batches = 2;
  part.first_sample = [](std::uint64_t clock, std::uint32_t micro, std::uint32_t) {
    return 5000 + clock * 100 + micro;
  };
  t.go_on_with(part);
  REQUIRE(t.started() == 3);
  CHECK(t.last().first_sample == 5000);
  t.computed();
  REQUIRE(t.started() == 4);
  CHECK(t.last().clock == clock_id{2});
  CHECK(t.last().first_sample == 5001);
  t.clock();
  CHECK(t.last().first_sample == 5100);
}

TEST_CASE("training_reports: images add up over a change of the number of workers") {
  solver_rig t("max_iter: 10 display: 1", {1, 1, 2});
  const auto reports = [&](std::uint32_t worker, std::uint64_t clock, std::uint64_t images) {
    t.tell(control_passed{worker_id{worker},
                          frames::worker_report{clock_id{clock}, -1, 1, {3, 3}, images}});
  };
  t.tell(pause_at{clock_id{2}});
  t.clock();
  reports(1, 0, 10);
  t.clock();
  reports(1, 1, 20);
  REQUIRE(t.display->trained_.size() == 2);
  CHECK(t.display->trained_.back().images == 40);
  CHECK(t.display->steps_.back().images == 40);

  auto part = t.nets.part;
  part.workers = 3;
  part.first_clock = 2;
  part.images_per_clock = 6;
  part.images_of_all = 18;
  t.go_on_with(part);
  t.clock();
  CHECK(t.display->steps_.back().images == 40 + 18);
  reports(1, 2, 6);
  CHECK(t.display->trained_.size() == 2);  // of three workers, two have reported
  reports(2, 2, 6);
  REQUIRE(t.display->trained_.size() == 3);
  CHECK(t.display->trained_.back().images == 40 + 18);

  t.tell(pause_at{clock_id{3}});
  part.workers = 1;
  part.first_clock = 3;
  part.images_of_all = part.images_per_clock = 9;
  t.go_on_with(part);
  t.clock();
  REQUIRE(t.display->trained_.size() == 4);
  CHECK(t.display->trained_.back().images == 40 + 18 + 9);
}

TEST_CASE("training_reports: what members have communicated that leave is still in the sum") {
  solver_rig t("max_iter: 10 display: 1", {1, 1, 2});
  const auto clock = [&](std::uint64_t n, std::uint64_t communication, std::uint64_t exposed) {
    t.clock();
    t.tell(control_passed{
        worker_id{1},
        frames::worker_report{clock_id{n}, -1, 1, {3, 3}, 10, communication, exposed}});
  };
  t.tell(pause_at{clock_id{2}});
  clock(0, 1000, 100);
  clock(1, 5000, 700);
  REQUIRE(t.display->trained_.size() == 2);
  CHECK(t.display->trained_.back().communication_ns == 5000);
  auto part = t.nets.part;
  part.workers = 1;
  part.first_clock = 2;
  t.go_on_with(part);
  t.clock();
  REQUIRE(t.display->trained_.size() == 3);
  CHECK(t.display->trained_.back().communication_ns == 5000);
  CHECK(t.display->trained_.back().exposed_ns == 700);
}

TEST_CASE(
    "solver: one that comes to lead shows what all report from then on, and decides when training "
    "ends") {
  solver_rig::options o;
  o.workers = 2;
  o.leader = worker_id{1};
  solver_rig t("max_iter: 10 display: 1 snapshot_after_train: false", o);
  t.tell(pause_at{clock_id{1}});
  t.clock();
  REQUIRE(t.to_leader.got->size() == 1);
  CHECK(t.display->trained_.empty());
  auto part = t.nets.part;
  part.leader = worker_id{0};
  part.workers = 1;
  part.first_clock = 1;
  t.go_on_with(part);
  t.clock();
  CHECK(t.to_leader.got->size() == 1);
  REQUIRE(t.display->trained_.size() == 1);
  CHECK(t.display->trained_.back().clock == 1);
  t.tell(stop_soon{"Ctrl-C"});
  CHECK(t.stop.got->size() == 1);
}

namespace {

solver_rig of_two(const char* snapshots, worker_id leader = {}) {
  return solver_rig("max_iter: 10 " + std::string(snapshots),
                    {1, 1, 2, 0, 0, leader, std::uint64_t{1}});
}

}  // namespace

TEST_CASE("solver: a snapshot waits until all members have its version, which the next one shows") {
  auto t = of_two("snapshot: 2");
  t.clock();
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->front().at_floor);
  t.copied();
  CHECK(t.floor.got->empty());
  t.clock();
  REQUIRE(t.floor.got->size() == 1);
  CHECK(t.floor.got->front().version == version_id{2});
  t.tell(snapshot_written{version_id{2}, "s.caffemodel", "", {}});
  t.clock();
  CHECK(t.floor.got->size() == 1);  // nothing waits
}

TEST_CASE("solver: who has given its clocks up says so, and nothing more of them") {
  auto t = of_two("snapshot: 2");
  t.clock();
  t.clock();
  t.copied();
  t.tell(give_up_clocks{});
  REQUIRE(t.gave_up.got->size() == 1);
  t.fresh(3);  // that version is made anew by other members
  CHECK(t.floor.got->empty());
}

TEST_CASE("solver: who goes back to a version whose snapshot is copied does not write it again") {
  auto t = of_two("snapshot: 2");
  t.clock();
  t.clock();
  bool again = false;
  SUBCASE("it is copied") {
    t.copied();
  }
  SUBCASE("it was given up") {
    again = true;
  }
  t.tell(give_up_clocks{});
  t.tell(go_back{version_id{2}});
  auto part = t.nets.part;
  part.first_clock = 2;
  t.go_on_with(part);
  CHECK(t.checkpointer.got->size() == (again ? 2 : 1));
  CHECK(t.checkpointer.got->back().version == version_id{2});
  if (again) {
    t.tell(snapshot_copied{version_id{2}, 1});  // what was given up was on its way
    CHECK(t.started() == 2);
    t.copied();
  }
  CHECK(t.last().clock == clock_id{2});
}

TEST_CASE("solver: a snapshot of a version that is made anew is written when it is due again") {
  auto t = of_two("snapshot: 2");
  t.clock();
  t.clock();
  t.copied();
  t.tell(give_up_clocks{});
  t.tell(go_back{version_id{1}});
  auto part = t.nets.part;
  part.first_clock = 1;
  t.go_on_with(part);
  CHECK(t.checkpointer.got->size() == 1);
  t.answered[0] = t.started() - 1;  // the pass that had begun before never ends
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(t.checkpointer.got->back().version == version_id{2});
}

TEST_CASE("solver: who leads in place of a lost node writes a snapshot at once, if any are due") {
  bool due = false;
  const char* snapshots = "snapshot_after_train: true";
  SUBCASE("one is due now and then") {
    snapshots = "snapshot: 100";
    due = true;
  }
  SUBCASE("only the last one") {}
  auto t = of_two(snapshots, worker_id{1});
  t.nets.checkpointer = {};
  t.tell(t.nets);
  t.clock();
  t.tell(give_up_clocks{});
  t.tell(go_back{version_id{1}});
  t.nets.checkpointer = t.checkpointer.in;
  auto part = t.nets.part;
  part.first_clock = 1;
  part.leader = part.self;
  t.go_on_with(part);
  CHECK(t.checkpointer.got->size() == (due ? 1 : 0));
  if (due) {
    CHECK(t.checkpointer.got->back().version == version_id{1});
    t.tell(hold_clocks{});  // no other view begins with the clock of this one
    REQUIRE(t.held.got->size() == 1);
    CHECK(t.held.got->back().clock == clock_id{2});
    t.copied();
  }
  CHECK(t.last().clock == clock_id{1});
}
