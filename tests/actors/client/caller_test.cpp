// The actor that stands for a program: gradients out, fresh versions to the board, reports to the leader.
#include "actors/client/caller.hpp"

#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <thread>
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
  test::probe<goes_on_without> goes_on = sim.listen<goes_on_without>();
  test::probe<clocks_held> held = sim.listen<clocks_held>();
  test::probe<training_paused> paused = sim.listen<training_paused>();
  test::probe<factors_offered> offered = sim.listen<factors_offered>();
  test::probe<write_snapshot> checkpointer = sim.listen<write_snapshot>();
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

}  // namespace

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
  t.sim.tell(t.it, control_arrived{worker_id{0}, frames::worker_left{seat_id{0}, version_id{5}}});
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

TEST_CASE(
    "caller: it goes on without a worker that leaves when its program trains a further clock") {
  for (const bool hears_first : {false, true}) {
    CAPTURE(hears_first);
    program_of_two t(worker_id{0});
    const auto lends = [&](std::uint64_t clock) {
      t.from->caller.tell(gradients_lent{{{parameter_id{0}, clock_id{clock}}}});
      t.sim.settle();
    };
    const auto hears = [&] {
      t.sim.tell(t.it, control_arrived{worker_id{0},
                                       frames::worker_left{seat_id{1}, version_id{5}, true}});
      t.sim.settle();
    };
    lends(4);
    hears_first ? hears() : lends(5);
    CHECK(t.goes_on.got->empty());
    hears_first ? lends(5) : hears();
    REQUIRE(t.goes_on.got->size() == 1);
    CHECK(t.goes_on.got->front().left == seat_id{1});
    lends(6);
    CHECK(t.goes_on.got->size() == 1);
    CHECK(!t.from->fresh.first_to_leave());
  }
}

TEST_CASE("caller: what a program gives to newcomers shows that it trains that clock") {
  program_of_two t(worker_id{0});
  t.sim.tell(t.it,
             control_arrived{worker_id{0}, frames::worker_left{seat_id{1}, version_id{5}, true}});
  t.from->caller.tell(state_given{clock_id{5}});
  t.sim.settle();
  CHECK(t.goes_on.got->size() == 1);
}

TEST_CASE("caller: a program that leaves says so although its node pauses for newcomers") {
  for (const bool leaves : {false, true}) {
    CAPTURE(leaves);
    program_of_two t(worker_id{1});
    t.sim.tell(t.it, begin_training{clock_id{0}});
    t.sim.tell(t.it, hold_clocks{1});
    t.sim.tell(t.it, pause_at{clock_id{5}, 1, true});
    t.from->caller.tell(program_done{5, leaves});
    t.sim.settle();
    REQUIRE(t.node.got->size() == (leaves ? 1 : 0));
    if (leaves) CHECK(t.node.got->front().others_go_on);
  }
}

namespace {

bool may_begin(const program_of_two& t, std::uint64_t clock) {
  return t.from->clocks.begin(clock, std::chrono::seconds{0}) == clock_gate::answer::begun;
}

}  // namespace

TEST_CASE(
    "caller: it pauses when all versions of the clock are here, and the program begins no clock "
    "meanwhile") {
  constexpr std::chrono::seconds now{0};
  program_of_two t(worker_id{1});
  CHECK(may_begin(t, 4));
  t.sim.tell(t.it, hold_clocks{});
  t.sim.settle();
  REQUIRE(t.held.got->size() == 1);
  CHECK(t.held.got->front().clock == clock_id{5});
  CHECK(may_begin(t, 4));
  CHECK_FALSE(may_begin(t, 5));
  t.sim.tell(t.it, pause_at{clock_id{6}});  // another worker was ahead
  t.sim.settle();
  CHECK(may_begin(t, 5));
  CHECK_FALSE(may_begin(t, 6));
  t.sim.tell(t.it, layer_fresh{layer_id{0}, version_id{6}});
  t.sim.tell(t.it, layer_fresh{layer_id{1}, version_id{5}});
  t.sim.settle();
  CHECK(t.paused.got->empty());
  t.sim.tell(t.it, layer_fresh{layer_id{1}, version_id{6}, true});
  t.sim.settle();
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().version == version_id{6});
  // The new graph tells all versions again; that nobody had a gradient stays known.
  t.sim.tell(t.it, layer_fresh{layer_id{1}, version_id{6}});
  t.from->caller.tell(program_done{6});
  t.sim.settle();
  CHECK(t.paused.got->size() == 1);
  CHECK(t.from->fresh.wait(parameter_id{1}, 6, now) == fresh_board::answer::no_gradient);
  CHECK(t.node.got->empty());  // none may end while all rebuild
  t.sim.tell(t.it, resume_training{});
  t.sim.settle();
  CHECK(may_begin(t, 6));
  REQUIRE(t.node.got->size() == 1);
  CHECK(t.node.got->front().version == version_id{6});
}

TEST_CASE(
    "caller: worker 0 hears what all programs can give as factors, in the order of the forward "
    "pass") {
  program_of_two t(worker_id{0});
  t.from->places->set(layer_id{0}, layer_id{1});
  t.from->places->set(layer_id{1}, layer_id{0});
  t.from->caller.tell(loads_measured{{{0.5, 0.25, 8}, {0.125, 0, 3}}});
  t.sim.settle();
  CHECK(t.offered.got->empty());
  t.sim.tell(t.it, control_arrived{worker_id{1}, frames::factor_offer{{9}}});
  t.sim.settle();
  REQUIRE(t.offered.got->size() == 1);
  const auto& all = t.offered.got->front();
  // Worker 1 has said less than the program has.
  CHECK(all.rows == std::vector<std::uint32_t>{9, 0});
  CHECK(all.loads.at(0).product_s == 0.25);
  CHECK(all.order == std::vector{parameter_id{1}, parameter_id{0}});
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

TEST_CASE("caller: an optimizer's state is gathered only while no graph can be rebuilt") {
  program_of_two t(worker_id{1});
  const state_wanted wanted{version_id{3}};
  SUBCASE("training has not begun") {
    t.sim.tell(t.it, wanted);
    t.sim.settle();
    CHECK(t.checkpointer.got->empty());
    t.sim.tell(t.it, begin_training{});
    t.sim.settle();
    CHECK(t.checkpointer.got->size() == 1);
    return;
  }
  t.sim.tell(t.it, begin_training{});
  SUBCASE("nodes are held when it is gathered") {
    t.sim.tell(t.it, wanted);
    t.sim.tell(t.it, hold_clocks{});
    t.sim.settle();
    REQUIRE(t.checkpointer.got->size() == 1);
    CHECK(t.checkpointer.got->front().version == version_id{3});
    CHECK(t.checkpointer.got->front().for_program);
    CHECK(t.held.got->empty());
    t.sim.tell(t.it, snapshot_copied{version_id{3}});
    t.sim.settle();
    CHECK(t.held.got->size() == 1);
  }
  SUBCASE("nodes that pause later need this program's clock first") {
    t.sim.tell(t.it, hold_clocks{});
    t.sim.tell(t.it, wanted);
    t.sim.settle();
    CHECK(t.checkpointer.got->empty());
    t.sim.tell(t.it, pause_at{clock_id{4}});
    t.sim.settle();
    CHECK(t.checkpointer.got->size() == 1);
  }
  SUBCASE("nodes that pause now are waited for") {
    t.sim.tell(t.it, hold_clocks{});
    t.sim.tell(t.it, pause_at{clock_id{3}});
    t.sim.tell(t.it, wanted);
    t.sim.settle();
    CHECK(t.checkpointer.got->empty());
    t.sim.tell(t.it, resume_training{});
    t.sim.settle();
    CHECK(t.checkpointer.got->size() == 1);
  }
}

TEST_CASE(
    "caller: where shards make the steps, a clock without gradients is no step, and its values are "
    "those of before") {
  program_of_two t(worker_id{0});
  t.from->optimizer = optimizer_rule::sgd;
  t.from->store = test::one_parameter_store(3, 3, 1, 0, wire_format::float32);
  const auto write = [&](std::uint64_t version, float first) {
    const auto to = t.from->store->values(test::only_parameter, version);
    std::iota(to.begin(), to.end(), first);
  };
  const auto fresh = [&](std::uint64_t version, bool nothing) {
    t.sim.tell(t.it, layer_fresh{layer_id{0}, version_id{version}, nothing});
    t.sim.settle();
  };
  write(0, 5);
  write(1, 7);
  fresh(0, false);
  CHECK(t.from->steps_made[0] == 0);
  fresh(1, false);
  CHECK(t.from->steps_made[0] == 1);
  fresh(1, false);  // routes have changed
  CHECK(t.from->steps_made[0] == 1);
  fresh(2, true);
  CHECK(t.from->steps_made[0] == 1);
  CHECK(t.from->store->values(test::only_parameter, 2)[2] == 9);
}

TEST_CASE("caller: where others join, it has not paused before the program has given its state") {
  using answer = clock_gate::answer;
  constexpr std::chrono::seconds now{0};
  program_of_two t(worker_id{1});
  const std::vector<std::byte> state(5, std::byte{7});
  for (const auto p : {layer_id{0}, layer_id{1}}) t.sim.tell(t.it, layer_fresh{p, version_id{6}});
  t.sim.tell(t.it, pause_at{clock_id{6}, 0, true});
  t.sim.settle();
  CHECK(t.paused.got->empty());
  CHECK(t.from->clocks.begin(5, now) == answer::begun);
  CHECK(t.from->clocks.begin(6, std::chrono::hours{1}) == answer::wants_state);
  SUBCASE("it gives it") {
    t.from->newcomers.give(6, state, 2);
    t.from->clocks.gave_state();
    t.from->caller.tell(state_given{clock_id{6}});
    t.sim.settle();
    CHECK(t.from->clocks.begin(6, now) == answer::not_yet);
    CHECK(t.from->newcomers.given(6).bytes == 5);
    CHECK(t.from->newcomers.given(5).bytes == 0);
  }
  SUBCASE("it is done, and gives none") {
    t.from->caller.tell(program_done{6});
    t.sim.settle();
  }
  SUBCASE("a worker is lost, and all train on") {
    t.sim.tell(t.it, give_up_clocks{});
    t.sim.tell(t.it, resume_training{});
    t.sim.settle();
    CHECK(t.paused.got->empty());
    CHECK(t.from->clocks.begin(6, now) == answer::begun);
    return;
  }
  REQUIRE(t.paused.got->size() == 1);
  CHECK(t.paused.got->front().version == version_id{6});
}

TEST_CASE("clock_gate: who waits for a clock goes on when it may begin, and when the run is over") {
  for (const bool over : {false, true}) {
    clock_gate gate;
    gate.pause_at(3);
    std::thread program(
        [&] { CHECK(gate.begin(3, std::chrono::hours{1}) == clock_gate::answer::begun); });
    over ? gate.close() : gate.open();
    program.join();
    CHECK(gate.is_closed() == over);
    CHECK(gate.hold() == 4);
  }
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
