// Long because all that a solver decides is told through one rig.
#include "actors/solver.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <memory>
#include <optional>

using namespace poseidon;

namespace {

struct recorder : progress {
  std::vector<iteration> trained_;
  std::vector<std::string> tested_;
  std::vector<std::uint64_t> snapshots_;
  void trained(const iteration& i, const std::vector<output_value>&) override {
    trained_.push_back(i);
  }
  void tested(std::size_t net, std::uint64_t clock, const std::vector<double>& means,
              const std::vector<output_value>& outputs) override {
    auto line = std::to_string(net) + " at " + std::to_string(clock) + ":";
    for (std::size_t o = 0; o < outputs.size(); ++o)
      line += " " + outputs[o].name + " " + std::to_string(std::lround(means[o] * 100));
    tested_.push_back(line);
  }
  void snapshot(std::uint64_t version, const std::string&, const std::string&) override {
    snapshots_.push_back(version);
  }
  void note(const std::string&) override {}
  void stepped(const step& s) override { steps_.push_back(s); }
  std::shared_ptr<void> working(long_task task) override {
    task_ = std::move(task);
    const auto shown = std::make_shared<int>();
    shown_ = shown;
    return shown;
  }
  [[nodiscard]] bool task_is_over() const { return shown_.expired(); }
  std::vector<step> steps_;
  std::optional<long_task> task_;
  std::weak_ptr<int> shown_;
};

/// Worker 0's solver with a data layer per replica, one layer that learns, and the test nets of `spec`. The
/// test plays the layers: what was started is answered when the test says so.
struct solver_rig {
  test::sim sim;
  std::shared_ptr<recorder> display = std::make_shared<recorder>();
  std::vector<test::probe<start_pass>> train;               // by replica
  std::vector<std::vector<test::probe<start_pass>>> tests;  // by net, by replica
  test::probe<write_snapshot> checkpointer = sim.listen<write_snapshot>();
  test::probe<stop_decided> stop = sim.listen<stop_decided>();
  test::probe<training_done> done = sim.listen<training_done>();
  test::probe<training_failed> failed = sim.listen<training_failed>();
  test::probe<clocks_held> held = sim.listen<clocks_held>();
  test::probe<training_paused> paused = sim.listen<training_paused>();
  std::vector<std::size_t> answered;
  handle<solver> it;

  struct options {
    std::uint32_t replicas = 1;
    std::uint32_t micro_batches = 1;
    std::size_t workers = 1;
    std::uint64_t first_clock = 0;
    std::uint64_t test_phases = 0;
  };

  solver_rig(const std::string& text, options o) : answered(o.replicas) {
    solver_setup s;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.workers = o.workers;
    s.replicas = o.replicas;
    s.micro_batches = o.micro_batches;
    s.layers_that_learn = 1;
    s.images_per_clock = 10;
    s.images_of_all = 10 * o.workers;
    s.test_phases = o.test_phases;
    REQUIRE(google::protobuf::TextFormat::ParseFromString("lr_policy: 'fixed' base_lr: 1 " + text,
                                                          &s.spec));
    s.first_sample = [](std::uint64_t clock, std::uint32_t micro, std::uint32_t replica) {
      return 1000 + clock * 100 + micro * 10 + replica;
    };
    s.display = display;
    connect_solver m;
    for (std::uint32_t r = 0; r < o.replicas; ++r) {
      train.push_back(sim.listen<start_pass>());
      m.train.sources.push_back({train.back().in});
    }
    m.train.outputs = {{"loss", 1}};
    for (int t = 0; t < s.spec.test_iter_size(); ++t) {
      auto& net = m.tests.emplace_back();
      auto& probes = tests.emplace_back();
      for (std::uint32_t r = 0; r < o.replicas; ++r) {
        probes.push_back(sim.listen<start_pass>());
        net.sources.push_back({probes.back().in});
      }
      net.outputs = {{"accuracy", 0}, {"loss", 2}};
      net.share = {static_cast<std::uint64_t>(s.spec.test_iter(t)), o.workers, 0, o.replicas, 5};
    }
    m.checkpointer = checkpointer.in;
    m.node_stop = stop.in;
    m.node_done = done.in;
    m.node_failed = failed.in;
    m.node_held = held.in;
    m.node_paused = paused.in;
    it = sim.spawn<solver>("solver", std::move(s));
    sim.tell(it, m);
    sim.tell(it, begin_training{clock_id{o.first_clock}});
    sim.settle();
  }
  explicit solver_rig(const std::string& text) : solver_rig(text, options()) {}

  template <class M>
  void tell(M m) {
    sim.tell(it, std::move(m));
    sim.settle();
  }
  [[nodiscard]] std::size_t started(std::size_t replica = 0) const {
    return train[replica].got->size();
  }
  [[nodiscard]] const pass_id& last(std::size_t replica = 0) const {
    return train[replica].got->back().pass;
  }
  /// The oldest pass of a replica that was started has been issued and computed.
  void computed(std::uint32_t replica = 0, float loss = 1) {
    REQUIRE(answered[replica] < started(replica));
    const auto pass = (*train[replica].got)[answered[replica]++].pass;
    tell(pass_issued{replica_id{replica}, -1, pass});  // kernels are issued long before they end
    tell(outputs_ready{replica_id{replica}, -1, pass, 0, {loss}});
  }
  void fresh(std::uint64_t version) { tell(layer_fresh{layer_id{0}, version_id{version}}); }
  /// A whole clock of one replica and micro-batch.
  void clock(float loss = 1) {
    computed(0, loss);
    fresh(value((*train[0].got)[answered[0] - 1].pass.clock) + 1);
  }
  /// All passes of the test phase that has begun on net `t`.
  void test(std::size_t t, float accuracy) {
    auto& source = tests.at(t).at(0);
    REQUIRE_FALSE(source.got->empty());
    while (!source.got->empty()) {
      const auto pass = source.got->front().pass;
      source.got->erase(source.got->begin());
      tell(outputs_ready{replica_id{0}, static_cast<std::int32_t>(t), pass, 0, {accuracy, 0.5f}});
      tell(pass_issued{replica_id{0}, static_cast<std::int32_t>(t), pass});
    }
  }
  void snapshot_copied_and_written() {
    REQUIRE_FALSE(checkpointer.got->empty());
    const auto version = checkpointer.got->back().version;
    tell(snapshot_copied{version});
    tell(snapshot_written{version, "s.caffemodel", ""});
  }
};

}  // namespace

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

TEST_CASE("solver: it is done when the last clock's parameters are there, and no earlier") {
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
  t.tell(snapshot_copied{version_id{2}});
  CHECK(t.started() == 3);
  t.tell(snapshot_written{version_id{2}, "s", ""});
  CHECK(t.display->snapshots_ == std::vector<std::uint64_t>{2});

  // The last clock's snapshot was due anyway: there is no second one after training.
  t.clock();
  t.clock();
  REQUIRE(t.checkpointer.got->size() == 2);
  t.tell(snapshot_copied{version_id{4}});
  CHECK(t.done.got->empty());
  t.tell(snapshot_written{version_id{4}, "s", ""});
  CHECK(t.done.got->size() == 1);
}

TEST_CASE(
    "solver: a run that is quicker than its disk ends when all of its snapshots are written") {
  solver_rig t("max_iter: 4 snapshot: 2");
  t.clock();
  t.clock();
  t.tell(snapshot_copied{version_id{2}});
  t.clock();
  t.clock();
  t.tell(snapshot_copied{version_id{4}});
  t.tell(snapshot_written{version_id{2}, "s", ""});
  CHECK(t.done.got->empty());
  t.tell(snapshot_written{version_id{4}, "s", "the disk is full"});
  REQUIRE(t.done.got->size() == 1);
  CHECK(t.done.got->front().snapshot_error == "the disk is full");
  CHECK(t.display->snapshots_ == std::vector<std::uint64_t>{2, 4});
}

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
  CHECK(t.display->task_->training_stands);
  CHECK_FALSE(t.display->task_is_over());
  t.test(0, 0.25f);
  CHECK(t.display->task_->done() == 3);
  CHECK(t.display->task_is_over());
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

TEST_CASE("solver: asked to stop it ends the clock in work, says which, and snapshots") {
  solver_rig t("max_iter: 100 test_iter: 1 test_interval: 2 test_initialization: false");
  t.clock();
  CHECK(t.started() == 2);
  t.tell(stop_soon{"Ctrl-C"});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().clock == clock_id{1});
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

TEST_CASE("solver: told of an end behind it, it leaves the clock that nobody will complete") {
  solver_rig t("max_iter: 100 snapshot_after_train: false");
  t.clock();
  t.clock();
  CHECK(t.last().clock == clock_id{2});
  t.tell(finish_after{clock_id{1}, "worker 2 got SIGTERM"});
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
  t.tell(finish_after{clock_id{0}, "worker 0 got SIGTERM"});
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

TEST_CASE("solver: a NaN ends training once, with clock, layer, cause and exit code") {
  solver_rig t("max_iter: 100");
  t.clock();
  t.tell(nonfinite_found{{clock_id{1}, 0, 0}, "fc7"});
  t.tell(nonfinite_found{{clock_id{1}, 0, 0}, "fc8"});
  REQUIRE(t.failed.got->size() == 1);
  CHECK(t.failed.got->front().exit_code == 4);
  CHECK(t.failed.got->front().text.find(
            "training diverged at clock 1: layer \"fc7\" produced the first NaN or infinity. "
            "Likely cause: the learning rate (1.000000)") == 0);
  t.computed();
  CHECK(t.started() == 2);  // nothing begins after it
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
  t.tell(control_arrived{worker_id{1}, frames::worker_report{clock_id{0}, -1, 1, {3, 3}, 10}});
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

// -- changes of routes ----------------------------------------------------------------------------------

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
  SUBCASE("another one was ahead: it goes on to that one's clock") {
    t.tell(pause_at{clock_id{3}});
    CHECK(t.started() == 3);
    CHECK(t.paused.got->empty());
    t.clock();
    CHECK(t.started() == 3);
    CHECK(t.paused.got->size() == 1);
  }
  SUBCASE("the run ends before that clock: it ends") {
    t.tell(finish_after{clock_id{1}, "enough"});
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
  t.tell(snapshot_copied{version_id{1}});
  CHECK(t.paused.got->empty());
  t.tell(snapshot_written{version_id{1}, "there", ""});
  CHECK(t.paused.got->empty());
  t.tell(outputs_ready{replica_id{0}, -1, pass, 0, {1}});
  CHECK(t.paused.got->size() == 1);
  CHECK(t.started() == 1);
}

TEST_CASE(
    "solver: after a change of routes the same clocks go on, and the next change may be known") {
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

TEST_CASE(
    "solver: a stop that comes while all change their routes ends the clock after the change") {
  solver_rig t("max_iter: 10 snapshot_after_train: false");
  t.tell(pause_at{clock_id{1}});
  t.clock();
  REQUIRE(t.paused.got->size() == 1);
  t.tell(stop_soon{"Ctrl-C"});
  CHECK(t.stop.got->empty());
  t.fresh(1);
  t.tell(resume_training{});
  REQUIRE(t.stop.got->size() == 1);
  CHECK(t.stop.got->front().clock == clock_id{1});
  CHECK(t.done.got->empty());
  t.clock();
  CHECK(t.done.got->size() == 1);
}
