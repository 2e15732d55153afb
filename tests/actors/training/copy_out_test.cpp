#include "actors/training/copy_out.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

using namespace poseidon;

namespace {

/// A device whose completions the test calls.
struct waiting_room {
  test::sim sim;
  std::vector<told_when_over> waiting;
  std::string log;
  std::shared_ptr<copies_in_flight> home = std::make_shared<copies_in_flight>();
  trace_log trace{true};
  trace_lane* lane = trace.lane("copy_out [0]");
  test::probe<work_done> layer = sim.listen<work_done>();
  test::probe<nonfinite_found> solver = sim.listen<nonfinite_found>();
  handle<copy_out> it;

  waiting_room() {
    copy_out_setup s;
    s.enter_thread = [] {};
    s.first_nonfinite = []() -> std::optional<std::string> { return std::nullopt; };
    s.solver = solver.in;
    s.home = home;
    s.trace = lane;
    it = sim.spawn<copy_out>("copy_out [0]", std::move(s));
  }
  void bring(std::uint64_t clock, std::vector<float> outputs = {}, issue_work work = {}) {
    work.copy_to_host = [this](told_when_over over) { waiting.push_back(std::move(over)); };
    work.settle = [this, clock] { log += "s" + std::to_string(clock); };
    if (!outputs.empty()) work.read_outputs = [outputs] { return outputs; };
    work.reply = layer.in;
    work.pass = {clock_id{clock}, 0, 0};
    work.backward = outputs.empty();
    work.layer = "fc7";
    home->sent();  // as the stream does
    sim.tell(it, copy_to_host{work});
    sim.settle();
  }
  void arrive(std::size_t i, std::exception_ptr failed = nullptr) {
    waiting.at(i)(std::move(failed));
    sim.settle();
  }
};

}  // namespace

TEST_CASE(
    "copy_out: a gradient is settled and its layer told when the device says so, not before") {
  waiting_room t;
  t.bring(0);
  t.bring(1);
  CHECK(t.log.empty());
  CHECK(t.layer.got->empty());
  CHECK_FALSE(t.home->idle_since(1));
  t.arrive(0);
  CHECK_FALSE(t.home->idle_since(1));
  CHECK(t.log == "s0");
  REQUIRE(t.layer.got->size() == 1);
  CHECK(value(t.layer.got->front().pass.clock) == 0);
  CHECK(t.layer.got->front().backward);
  t.arrive(1);
  CHECK(t.log == "s0s1");
  CHECK(t.layer.got->size() == 2);
  CHECK(t.home->idle_since(1).value_or(0) > 1);
}

TEST_CASE(
    "copy_out: the trace tells gradients that come home from those that are added elsewhere") {
  waiting_room t;
  issue_work added;
  added.home_phase = "sum";
  t.bring(0);
  t.bring(1, {}, added);
  t.arrive(0);
  t.arrive(1);
  std::string phases;
  t.lane->for_each([&](const trace_span& s) { phases += std::string(s.phase) + "; "; });
  CHECK(phases == "bring home; sum; ");
}

TEST_CASE(
    "copy_out: outputs go to their layer; the first that is no number to the solver as well") {
  waiting_room t;
  t.bring(3, {0.5f});
  t.arrive(0);
  REQUIRE(t.layer.got->size() == 1);
  CHECK(t.layer.got->front().outputs == std::vector<float>{0.5f});
  CHECK(t.solver.got->empty());
  for (std::uint64_t clock = 4; clock < 6; ++clock) {
    t.bring(clock, {std::numeric_limits<float>::quiet_NaN()});
    t.arrive(clock - 3);
  }
  REQUIRE(t.solver.got->size() == 1);
  CHECK(value(t.solver.got->front().pass.clock) == 4);
  CHECK(t.solver.got->front().layer == "fc7");
}

TEST_CASE(
    "copy_out: what the device says has gone wrong ends the actor, and the layer hears nothing") {
  waiting_room t;
  t.bring(0);
  t.arrive(0, std::make_exception_ptr(std::runtime_error("GPU 0 is lost")));
  CHECK(t.log.empty());
  CHECK(t.layer.got->empty());
  t.bring(1);
  CHECK(t.waiting.size() == 1);  // nobody is there any more
}
