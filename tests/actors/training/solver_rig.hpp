// tests/actors/training/solver_rig.hpp - worker 0's solver; the test plays its neighbours.
#pragma once
#include "actors/training/solver.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::test {

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
  std::vector<probe<start_pass>> train;               // by replica
  std::vector<std::vector<probe<start_pass>>> tests;  // by net, by replica
  probe<write_snapshot> checkpointer = sim.listen<write_snapshot>();
  probe<floor_reached> floor = sim.listen<floor_reached>();
  probe<send_frame> to_leader = sim.listen<send_frame>();
  probe<stop_decided> stop = sim.listen<stop_decided>();
  probe<training_done> done = sim.listen<training_done>();
  probe<training_failed> failed = sim.listen<training_failed>();
  probe<clocks_held> held = sim.listen<clocks_held>();
  probe<training_paused> paused = sim.listen<training_paused>();
  probe<clocks_given_up> gave_up = sim.listen<clocks_given_up>();
  probe<hold_passes> turns = sim.listen<hold_passes>();  // of the one layer where passes turn back
  std::vector<std::size_t> answered;
  connect_solver nets;  // of the first view
  handle<solver> it;

  struct options {
    std::uint32_t replicas = 1;
    std::uint32_t micro_batches = 1;
    std::size_t workers = 1;
    std::uint64_t first_clock = 0;
    std::uint64_t test_phases = 0;
    worker_id leader{};
    std::optional<std::uint64_t> floor_lag = {};
    std::size_t turning_layers = 0;
  };

  solver_rig(const std::string& text, options o) : answered(o.replicas) {
    solver_setup s;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.part.workers = o.workers;
    s.part.leader = o.leader;
    s.part.replicas = o.replicas;
    s.part.micro_batches = o.micro_batches;
    s.part.images_per_clock = 10;
    s.part.images_of_all = 10 * o.workers;
    s.part.first_clock = o.first_clock;
    s.part.floor_lag = o.floor_lag;
    s.layers_that_learn = 1;
    s.test_phases = o.test_phases;
    REQUIRE(google::protobuf::TextFormat::ParseFromString("lr_policy: 'fixed' base_lr: 1 " + text,
                                                          &s.spec));
    s.part.first_sample = [](std::uint64_t clock, std::uint32_t micro, std::uint32_t replica) {
      return 1000 + clock * 100 + micro * 10 + replica;
    };
    s.display = display;
    auto& m = nets;
    m.part = s.part;
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
    m.floor = floor.in;
    m.to_leader = to_leader.in;
    m.node_stop = stop.in;
    m.node_done = done.in;
    m.node_failed = failed.in;
    m.node_held = held.in;
    m.node_paused = paused.in;
    m.node_gave_up = gave_up.in;
    m.turns.assign(o.turning_layers, turns.in);
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
  /// The solver has paused, and goes on with another part.
  void go_on_with(solver_part part) {
    auto next = nets;
    const auto first = part.first_clock;
    next.part = std::move(part);
    tell(next);
    fresh(first);  // of the new graph
    tell(resume_training{});
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
  /// What the last order has asked for.
  void copied() {
    REQUIRE_FALSE(checkpointer.got->empty());
    const auto& order = checkpointer.got->back();
    tell(snapshot_copied{order.version, order.number});
  }
  void snapshot_copied_and_written() {
    copied();
    const auto version = checkpointer.got->back().version;
    tell(snapshot_written{version, "s.caffemodel", "", {}});
  }
};

}  // namespace poseidon::test
