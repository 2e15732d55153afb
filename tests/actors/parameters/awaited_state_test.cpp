#include "actors/parameters/server_shard.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// A shard of two chunks, of two values and of one, which two workers push to in a view that follows another one.
struct shard_that_awaits_state {
  test::sim sim;
  std::shared_ptr<parameter_store> store = test::one_parameter_store(3, 2, 1);
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<chunk_fresh> gather = sim.listen<chunk_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<server_shard> shard;

  shard_that_awaits_state(std::size_t of_first, std::size_t of_second) {
    server_shard_setup s;
    s.workers = 2;
    s.scale = 0.5f;
    s.solver.set_base_lr(1);
    s.solver.set_lr_policy("fixed");
    s.solver.set_momentum(0.5f);
    s.update = rule_of(s.solver);
    s.parameters.push_back(test::one_parameter_net(3).parameters.front());
    s.first_uses = {layer_id{7}};
    s.names = {"fc7"};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.awaited_state = {of_first, of_second};
    shard = sim.spawn<server_shard>("server_shard", std::move(s));
    sim.tell(shard, connect_shard{{{}, link.in}, {gather.in}, checkpointer.in});
    store->publish(test::only_parameter, 0);
    for (const unsigned chunk : {0u, 1u})
      sim.tell(shard, install_chunk{chunk_id{chunk}, version_id{0}});
    sim.settle();
  }
  void gradient(unsigned worker, unsigned chunk, std::vector<float> values) {
    sim.tell(shard, gradient_arrived{worker_id{worker}, chunk_id{chunk}, clock_id{0},
                                     test::payload_of(std::move(values))});
    sim.settle();
  }
  void state(unsigned chunk, std::uint64_t first, std::vector<float> values) {
    sim.tell(shard,
             history_inherited{chunk_id{chunk}, 0, first, test::payload_of(std::move(values))});
    sim.settle();
  }
};

}  // namespace

TEST_CASE(
    "server_shard: no chunk is updated before its awaited state is there, from all who kept it") {
  shard_that_awaits_state t(2, 1);
  SUBCASE("gradients wait for it") {
    t.gradient(0, 0, {2, 4});
    t.gradient(1, 0, {2, 0});
    CHECK(t.link.got->empty());
    t.state(0, 1, {20});
    CHECK(t.link.got->empty());
    t.state(0, 0, {10});
  }
  SUBCASE("it is there before them") {
    t.state(0, 0, {10, 20});
    t.gradient(0, 0, {2, 4});
    CHECK(t.link.got->empty());
    t.gradient(1, 0, {2, 0});
  }
  REQUIRE(t.link.got->size() == 1);
  CHECK(test::values_of(t.link.got->front().data) == std::vector<float>{-2, -2});
  // The device counts updates in it.
  t.state(1, 0, {8});
  t.sim.tell(t.shard, copy_history{version_id{1}});
  t.sim.settle();
  REQUIRE(!t.checkpointer.got->empty());  // the other chunk's, too
  CHECK(t.checkpointer.got->front().chunk == chunk_id{0});
  CHECK(test::values_of(t.checkpointer.got->front().values) == std::vector<float>{11, 21});
}

TEST_CASE(
    "server_shard: a snapshot of a view's first version waits for the state that comes from the "
    "view before") {
  shard_that_awaits_state t(2, 1);
  t.sim.tell(t.shard, copy_history{version_id{0}});
  t.state(0, 0, {10, 20});
  CHECK(t.checkpointer.got->empty());
  t.state(1, 0, {30});
  REQUIRE(t.checkpointer.got->size() == 2);
  CHECK(test::values_of(t.checkpointer.got->at(0).values) == std::vector<float>{10, 20});
  CHECK(test::values_of(t.checkpointer.got->at(1).values) == std::vector<float>{30});
}

TEST_CASE(
    "server_shard: state that one chunk waits for does not keep another one from its update") {
  shard_that_awaits_state t(2, 0);
  for (const unsigned worker : {0u, 1u})
    for (const unsigned chunk : {0u, 1u})
      t.gradient(worker, chunk, chunk == 0 ? std::vector<float>{2, 4} : std::vector<float>{6});
  REQUIRE(t.link.got->size() == 1);
  CHECK(test::values_of(t.link.got->front().data) == std::vector<float>{-6});
  t.state(1, 0, {8});  // more than was awaited is written, and not counted
  t.state(0, 0, {10, 20});
  CHECK(t.link.got->size() == 2);
}
