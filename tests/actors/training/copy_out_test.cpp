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
  std::vector<completion> waiting;
  std::string log;
  std::shared_ptr<int> replica = std::make_shared<int>();
  std::shared_ptr<copies_in_flight> copies = std::make_shared<copies_in_flight>();
  trace_log trace{true};
  trace_lane* lane = trace.lane("copy_out [0]");
  test::probe<work_done> layer = sim.listen<work_done>();
  test::probe<nonfinite_found> solver = sim.listen<nonfinite_found>();
  handle<copy_out> it;

  waiting_room() {
    copy_out_setup s;
    s.enter_thread = [] {};
    s.first_nonfinite = [r = replica]() -> std::optional<std::string> { return std::nullopt; };
    s.solver = solver.in;
    s.copies = copies;
    s.trace = lane;
    it = sim.spawn<copy_out>("copy_out [0]", std::move(s));
  }
  void copy(std::uint64_t clock, std::vector<float> outputs = {}, issue_work work = {}) {
    work.to_host.begin = [this](completion done) { waiting.push_back(std::move(done)); };
    work.to_host.settle = [this, clock] { log += "s" + std::to_string(clock); };
    if (!outputs.empty()) work.results.read_outputs = [outputs] { return outputs; };
    work.results.reply = layer.in;
    work.label.pass = {clock_id{clock}, 0, 0};
    work.label.backward = outputs.empty();
    work.label.layer = "fc7";
    copies->begun();  // as the stream does
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
  t.copy(0);
  t.copy(1);
  CHECK(t.log.empty());
  CHECK(t.layer.got->empty());
  CHECK_FALSE(t.copies->idle_since(1));
  t.arrive(0);
  CHECK_FALSE(t.copies->idle_since(1));
  CHECK(t.log == "s0");
  REQUIRE(t.layer.got->size() == 1);
  CHECK(value(t.layer.got->front().pass.clock) == 0);
  CHECK(t.layer.got->front().backward);
  t.arrive(1);
  CHECK(t.log == "s0s1");
  CHECK(t.layer.got->size() == 2);
  CHECK(t.copies->idle_since(1).value_or(0) > 1);
}

TEST_CASE("copy_out: the trace tells gradients that are copied from those that the device adds") {
  waiting_room t;
  issue_work added;
  added.to_host.phase = span_phase::sum;
  t.copy(0);
  t.copy(1, {}, added);
  t.arrive(0);
  t.arrive(1);
  std::string phases;
  t.lane->for_each([&](const trace_span& s) { phases += std::string(to_string(s.phase)) + "; "; });
  CHECK(phases == "copy to host; sum; ");
}

TEST_CASE("copy_out: outputs go to their layer, and the first NaN to the solver as well") {
  waiting_room t;
  t.copy(3, {0.5f});
  t.arrive(0);
  REQUIRE(t.layer.got->size() == 1);
  CHECK(t.layer.got->front().outputs == std::vector<float>{0.5f});
  CHECK(t.solver.got->empty());
  for (std::uint64_t clock = 4; clock < 6; ++clock) {
    t.copy(clock, {std::numeric_limits<float>::quiet_NaN()});
    t.arrive(clock - 3);
  }
  REQUIRE(t.solver.got->size() == 1);
  CHECK(value(t.solver.got->front().pass.clock) == 4);
  CHECK(t.solver.got->front().layer == "fc7");
}

TEST_CASE("copy_out: an error of the device ends the actor, and the layer hears nothing") {
  waiting_room t;
  t.copy(0);
  t.arrive(0, std::make_exception_ptr(std::runtime_error("GPU 0 is lost")));
  CHECK(t.log.empty());
  CHECK(t.layer.got->empty());
  t.copy(1);
  CHECK(t.waiting.size() == 1);  // the actor has ended
}

TEST_CASE("copy_out: one that has ended holds no replica, though the device still tells it") {
  waiting_room t;
  t.copy(0);
  t.arrive(0);
  t.sim.tell(t.it, shut_down{});
  t.sim.settle();
  CHECK(t.replica.use_count() == 1);
}
