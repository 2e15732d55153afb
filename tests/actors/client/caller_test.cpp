// The actor that stands for a program: gradients out, fresh versions to the board, reports to the leader.
#include "actors/client/caller.hpp"

#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace poseidon;

namespace {

struct shown : progress {
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
  test::sim sim;
  std::shared_ptr<program> from = std::make_shared<program>(
      std::vector<declared_parameter>{{"w", {3}}, {"b", {}}}, std::vector<const float*>(2));
  std::shared_ptr<shown> display = std::make_shared<shown>();
  test::probe<backward_done> pushes[2] = {sim.listen<backward_done>(), sim.listen<backward_done>()};
  test::probe<send_frame> leader = sim.listen<send_frame>();
  test::probe<training_done> node = sim.listen<training_done>();
  handle<caller> it;

  explicit program_of_two(worker_id self) {
    caller_setup s;
    s.self = self;
    s.workers = 2;
    s.from = from;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.display = display;
    it = sim.spawn<caller>("caller", std::move(s));
    connect_caller c;
    c.pushes = {pushes[0].in, pushes[1].in};
    if (self != worker_id{0}) c.to_leader = leader.in;
    c.node = node.in;
    sim.tell(it, c);
    sim.settle();
  }
};

}  // namespace

TEST_CASE("caller: a gradient that is lent goes to the push of its parameter") {
  program_of_two t(worker_id{1});
  t.from->caller.tell(gradient_lent{parameter_id{1}, clock_id{4}});
  t.sim.settle();
  CHECK(t.pushes[0].got->empty());
  REQUIRE(t.pushes[1].got->size() == 1);
  CHECK(t.pushes[1].got->front().pass.clock == clock_id{4});
}

TEST_CASE("caller: fresh parameters, and those that nobody has a gradient of, reach the board") {
  program_of_two t(worker_id{1});
  t.sim.tell(t.it, layer_fresh{layer_id{0}, version_id{1}});
  t.sim.tell(t.it, layer_fresh{layer_id{1}, version_id{1}, true});
  t.sim.settle();
  CHECK(t.from->fresh.wait(parameter_id{0}, 1, std::chrono::seconds{0}) ==
        fresh_board::answer::here);
  CHECK(t.from->fresh.wait(parameter_id{1}, 1, std::chrono::seconds{0}) ==
        fresh_board::answer::no_gradient);
}

TEST_CASE("caller: the leader shows the mean loss of a clock when all workers have reported it") {
  program_of_two t(worker_id{0});
  t.sim.tell(t.it, clock_reported{clock_id{2}, 1.0, 8});
  t.sim.settle();
  CHECK(t.display->iterations.empty());
  t.sim.tell(t.it,
             control_arrived{worker_id{1}, frames::worker_report{clock_id{2}, -1, 1, {3.0}, 16}});
  t.sim.settle();
  REQUIRE(t.display->iterations.size() == 1);
  CHECK(t.display->iterations[0].loss == 2.0);
  CHECK(t.display->iterations[0].images == 24);
}

TEST_CASE("caller: reports that never become complete do not pile up") {
  program_of_two t(worker_id{0});
  for (std::uint64_t clock = 0; clock < 1000; ++clock)
    t.sim.tell(t.it, clock_reported{clock_id{clock}, 1.0, 1});
  t.sim.tell(t.it, control_arrived{worker_id{1}, frames::worker_report{clock_id{0}, -1, 1, {3.0}}});
  t.sim.settle();
  CHECK(t.display->iterations.empty());  // clock 0 has been given up
  t.sim.tell(t.it,
             control_arrived{worker_id{1}, frames::worker_report{clock_id{999}, -1, 1, {3.0}}});
  t.sim.settle();
  CHECK(t.display->iterations.size() == 1);
}

TEST_CASE("caller: another worker says where to, its program's end goes to the node") {
  program_of_two t(worker_id{1});
  t.sim.tell(t.it, clock_reported{clock_id{0}, 1.5, 8});
  t.sim.tell(t.it, control_arrived{worker_id{0}, frames::worker_left{worker_id{0}, version_id{5}}});
  t.from->caller.tell(program_done{7});
  t.sim.settle();
  REQUIRE(t.leader.got->size() == 1);
  CHECK(std::get<frames::worker_report>(t.leader.got->front().header).sums == std::vector{1.5});
  REQUIRE(t.node.got->size() == 1);
  CHECK(t.node.got->front().version == version_id{7});
  CHECK(t.from->fresh.first_to_leave()->version == 5);
  t.sim.tell(t.it, shut_down{});
  t.sim.settle();
  t.from->caller.tell(program_done{8});  // nobody is there any more
}

TEST_CASE("program: the first difference of two lists is named with both sides") {
  const std::vector<declared_parameter> here{{"w", {3, 4}}, {"b", {3}}};
  CHECK(difference(here, here).empty());
  CHECK(difference(here, {{"w", {3, 5}}, {"b", {3}}}).find("parameter 0 is \"w\"") == 0);
  CHECK(difference(here, {{"w", {3, 4}}, {"c", {3}}}).find("\"c\"") != std::string::npos);
  CHECK(difference(here, {{"w", {3, 4}}}).find("worker 0 has 1 parameter and this worker 2") == 0);
}
