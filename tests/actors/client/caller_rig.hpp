// tests/actors/client/caller_rig.hpp - a caller, and probes where its neighbours stand.
#pragma once
#include "actors/client/caller.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <memory>
#include <string>
#include <vector>

namespace poseidon::test {

struct shown_iterations : progress {
  std::vector<iteration> iterations;
  void trained(const iteration& i, const std::vector<output_value>&) override {
    iterations.push_back(i);
  }
  void tested(std::size_t, std::uint64_t, const std::vector<double>&,
              const std::vector<output_value>&) override {}
  void snapshot(std::uint64_t, const std::string&, const std::string&) override {}
  void note(const std::string&) override {}
};

/// A worker of two whose program has two parameters.
struct program_of_two {
  poseidon::test::sim sim;
  std::shared_ptr<program> from = std::make_shared<program>(
      std::vector<declared_parameter>{{"w", {3}}, {"b", {}}}, std::vector<const float*>(2));
  std::shared_ptr<shown_iterations> display = std::make_shared<shown_iterations>();
  probe<backward_done> pushes[2] = {sim.listen<backward_done>(), sim.listen<backward_done>()};
  probe<send_frame> leader = sim.listen<send_frame>();
  probe<training_done> node = sim.listen<training_done>();
  probe<goes_on_without> goes_on = sim.listen<goes_on_without>();
  probe<clocks_held> held = sim.listen<clocks_held>();
  probe<training_paused> paused = sim.listen<training_paused>();
  probe<factors_offered> offered = sim.listen<factors_offered>();
  probe<write_snapshot> checkpointer = sim.listen<write_snapshot>();
  handle<caller> it;

  explicit program_of_two(worker_id self, trace_lane* trace = nullptr) {
    caller_setup s;
    s.from = from;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.display = display;
    s.trace = trace;
    it = sim.spawn<caller>("caller", std::move(s));
    connect_caller c;
    c.view = {1, 0, {seat_id{0}, seat_id{1}}, self};
    c.pushes = {pushes[0].in, pushes[1].in};
    if (self != worker_id{0}) c.to_leader = leader.in;
    c.node = node.in;
    c.node_goes_on = goes_on.in;
    c.node_held = held.in;
    c.node_paused = paused.in;
    c.node_offered = offered.in;
    c.checkpointer = checkpointer.in;
    sim.tell(it, c);
    sim.settle();
  }
};

inline bool may_begin(const program_of_two& t, std::uint64_t clock) {
  return t.from->clocks.begin(clock, std::chrono::seconds{0}) == clock_gate::answer::begun;
}

}  // namespace poseidon::test
