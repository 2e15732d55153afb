// The actor that stands for a program, where its clocks pause, routes change, others join, and one leaves.
#include "tests/actors/client/caller_rig.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace poseidon;
using test::may_begin, test::program_of_two;

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
      t.sim.tell(
          t.it, control_passed{worker_id{0}, frames::worker_left{seat_id{1}, version_id{5}, true}});
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
             control_passed{worker_id{0}, frames::worker_left{seat_id{1}, version_id{5}, true}});
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
  t.sim.tell(t.it, control_passed{worker_id{1}, frames::factor_offer{{9}}});
  t.sim.settle();
  REQUIRE(t.offered.got->size() == 1);
  const auto& all = t.offered.got->front();
  // Worker 1 has said less than the program has.
  CHECK(all.rows == std::vector<std::uint32_t>{9, 0});
  CHECK(all.loads.at(0).product_s == 0.25);
  CHECK(all.order == std::vector{parameter_id{1}, parameter_id{0}});
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
    CHECK(t.from->clocks.give_state(5) == clock_gate::gift::never_asked);
    CHECK(t.from->clocks.give_state(6) == clock_gate::gift::wanted);
    t.from->newcomers.give(6, state, 2);
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
    SUBCASE("while the program makes its state, which nobody needs then") {
      CHECK(t.from->clocks.give_state(6) == clock_gate::gift::too_late);
    }
    SUBCASE("while the program makes its state, and the next clock's is wanted meanwhile") {
      t.from->clocks.pause_at(7, true);
      CHECK(t.from->clocks.give_state(6) == clock_gate::gift::too_late);
      CHECK(t.from->clocks.begin(6, now) == answer::begun);
      CHECK(t.from->clocks.begin(7, now) == answer::wants_state);
      t.from->clocks.open();
    }
    SUBCASE("while the program gives its state, which is forgotten") {
      t.from->newcomers.give(6, state, 2);
      t.from->caller.tell(state_given{clock_id{6}});
      t.sim.settle();
      CHECK_FALSE(t.from->newcomers.has_given(6));
    }
    CHECK(t.from->clocks.begin(6, now) == answer::begun);
    CHECK(t.from->clocks.give_state(6) == clock_gate::gift::never_asked);
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
