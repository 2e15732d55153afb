// The actor that stands for a program: gradients out, fresh versions to the board, reports to the leader.
#include "tests/actors/client/caller_rig.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace poseidon;
using test::program_of_two;

TEST_CASE("caller: a gradient that is lent goes to the push of its parameter") {
  program_of_two t(worker_id{1});
  t.from->caller.tell(gradients_lent{{{parameter_id{1}, clock_id{4}}}});
  t.sim.settle();
  CHECK(t.pushes[0].got->empty());
  REQUIRE(t.pushes[1].got->size() == 1);
  CHECK(t.pushes[1].got->front().pass.clock == clock_id{4});
}

TEST_CASE("caller: a program knows whom it trains with before training begins") {
  program_of_two t(worker_id{1});
  CHECK(t.from->views.newest().seats == std::vector{seat_id{0}, seat_id{1}});
  CHECK(t.from->views.newest().self == worker_id{1});
  t.sim.tell(t.it, begin_training{});
  t.sim.settle();
  CHECK(t.from->views.all().size() == 1);
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
             control_passed{worker_id{1}, frames::worker_report{clock_id{2}, -1, 1, {3.0}, 16}});
  t.sim.settle();
  REQUIRE(t.display->iterations.size() == 1);
  CHECK(t.display->iterations[0].loss == 2.0);
  CHECK(t.display->iterations[0].images == 24);
}

TEST_CASE("caller: reports that never become complete do not pile up") {
  program_of_two t(worker_id{0});
  for (std::uint64_t clock = 0; clock < 1000; ++clock)
    t.sim.tell(t.it, clock_reported{clock_id{clock}, 1.0, 1});
  t.sim.tell(t.it, control_passed{worker_id{1}, frames::worker_report{clock_id{0}, -1, 1, {3.0}}});
  t.sim.settle();
  CHECK(t.display->iterations.empty());  // clock 0 has been given up
  t.sim.tell(t.it,
             control_passed{worker_id{1}, frames::worker_report{clock_id{999}, -1, 1, {3.0}}});
  t.sim.settle();
  CHECK(t.display->iterations.size() == 1);
}

TEST_CASE("caller: another worker says where to, its program's end goes to the node") {
  program_of_two t(worker_id{1});
  t.sim.tell(t.it, clock_reported{clock_id{0}, 1.5, 8});
  t.sim.tell(t.it, control_passed{worker_id{0}, frames::worker_left{seat_id{0}, version_id{5}}});
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

TEST_CASE("caller: another worker tells worker 0 what its program can give") {
  program_of_two t(worker_id{1});
  t.from->caller.tell(loads_measured{{{0.5, 0.25, 8}, {0.125, 0, 0}}});
  t.sim.settle();
  REQUIRE(t.leader.got->size() == 1);
  CHECK(std::get<frames::factor_offer>(t.leader.got->front().header).rows ==
        std::vector<std::uint32_t>{8, 0});
  CHECK(t.offered.got->empty());
}

TEST_CASE("caller: the page sees the program's clocks by its pushes") {
  trace_lane lane("program", true);
  program_of_two t(worker_id{1}, &lane);
  t.sim.tell(t.it, begin_training{});
  for (const std::uint64_t clock : {0u, 1u})
    for (const unsigned p : {1u, 0u})
      t.sim.tell(t.it, gradients_lent{{{parameter_id{p}, clock_id{clock}}}});
  t.sim.settle();
  std::vector<std::pair<span_phase, std::uint64_t>> seen;
  lane.for_each([&](const trace_span& s) { seen.emplace_back(s.phase, s.clock); });
  CHECK(seen == std::vector<std::pair<span_phase, std::uint64_t>>{{span_phase::forward, 0},
                                                                  {span_phase::backward, 0},
                                                                  {span_phase::forward, 1},
                                                                  {span_phase::backward, 1}});
}

TEST_CASE("program: the first difference of two lists is named with both sides") {
  const std::vector<declared_parameter> here{{"w", {3, 4}}, {"b", {3}}};
  CHECK(difference({{"w", {3, 4}, true}}, {{"w", {3, 4}}}) ==
        "parameter 0 is \"w\" 3x4 on worker 0 and \"w\" 3x4 (given by worker 0) here. All workers "
        "need the same model");
  CHECK(difference(here, here).empty());
  CHECK(difference(here, {{"w", {3, 5}}, {"b", {3}}}).find("parameter 0 is \"w\"") == 0);
  CHECK(difference(here, {{"w", {3, 4}}, {"c", {3}}}).find("\"c\"") != std::string::npos);
  CHECK(difference(here, {{"w", {3, 4}}}).find("worker 0 has 1 parameter and this worker 2") == 0);
}

TEST_CASE("caller: shared state that has landed is no longer on its way") {
  program_of_two t(worker_id{1});
  t.from->shared_in_flight.expect(7);
  t.sim.tell(t.it, shared_landed{3});
  t.sim.settle();
  CHECK(t.from->shared_in_flight.wait(std::chrono::seconds{0}) == state_in_flight::answer::not_yet);
  t.sim.tell(t.it, shared_landed{4});
  t.sim.settle();
  CHECK(t.from->shared_in_flight.wait(std::chrono::seconds{0}) == state_in_flight::answer::over);
}
