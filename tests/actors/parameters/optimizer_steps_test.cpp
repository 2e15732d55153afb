#include "actors/parameters/server_shard.hpp"
#include "actors/parameters/worker_gradients.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace poseidon;

namespace {

constexpr chunk_id the_chunk{0};

}  // namespace

namespace {

/// Says how a program steps.
struct program_of_one_step : gradient_source {
  std::optional<optimizer_step> told;
  std::span<const float> total(std::uint64_t, std::size_t) const override { return {}; }
  std::optional<optimizer_step> step() const override { return told; }
  std::vector<float> has;
  std::span<const float> base() const override { return has; }
};

struct shard_with_optimizer {
  test::sim sim;
  std::shared_ptr<parameter_store> store =
      test::one_parameter_store(3, 3, 1, 0, wire_format::float32);
  std::shared_ptr<program_of_one_step> program = std::make_shared<program_of_one_step>();
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<chunk_landed> gather = sim.listen<chunk_landed>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<server_shard> shard;
  std::vector<float> momentum{5, 6, 7};

  explicit shard_with_optimizer(bool given = false) {
    server_shard_setup s;
    s.workers = 2;
    s.scale = 0.5f;
    s.optimizer = optimizer_rule::sgd;
    s.parameters.push_back(test::one_parameter_net(3).parameters.front());
    s.parameters[test::only_parameter].given = given;
    s.first_uses = {layer_id{7}};
    s.names = {"fc7"};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.lent = {program};
    s.first_state = {{momentum.data()}};
    program->told = optimizer_step{};
    program->told->rate = 0.5;
    shard = sim.spawn<server_shard>("server_shard", std::move(s));
    sim.tell(shard, connect_shard{{{}, link.in}, {gather.in}, checkpointer.in});
    store->publish(test::only_parameter, 0);
    sim.tell(shard, install_chunk{the_chunk, version_id{0}});
    sim.settle();
  }
  void gradient(unsigned worker, std::vector<float> values, step_mark step) {
    sim.tell(shard, gradient_arrived{worker_id{worker}, the_chunk, clock_id{0},
                                     test::payload_of(std::move(values)), step});
    sim.settle();
  }
};

}  // namespace

TEST_CASE("server_shard: a program's optimizer steps on the shard, with the state that it had") {
  shard_with_optimizer t;
  const auto step = mark_of(t.program->told);
  t.gradient(0, {1, 2, 3}, step);
  CHECK(t.gather.got->empty());
  t.gradient(1, {3, 2, 1}, step);
  REQUIRE(t.gather.got->size() == 1);
  // w - rate * scale * sum; the first state counts one update more.
  const auto fresh = t.store->at(the_chunk, 1), before = t.store->at(the_chunk, 0);
  for (std::size_t i = 0; i < 3; ++i) CHECK(fresh[i] == before[i] - 0.5f * 0.5f * 4);
  t.sim.tell(t.shard, copy_history{version_id{1}});
  t.sim.settle();
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(test::values_of(t.checkpointer.got->front().values) == std::vector<float>{6, 7, 8});
}

TEST_CASE(
    "server_shard: a step begins with the values that the program has, if it says where they lie") {
  shard_with_optimizer t;
  t.program->has = {10, 20, 30};  // written to since the version before
  const auto step = mark_of(t.program->told);
  t.gradient(0, {1, 2, 3}, step);
  t.gradient(1, {3, 2, 1}, step);
  const auto fresh = t.store->at(the_chunk, 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(fresh[i] == t.program->has[i] - 0.5f * 0.5f * 4);
}

TEST_CASE(
    "worker_gradients: a worker that steps otherwise is found, whichever gradient comes first") {
  const auto told = mark_of(optimizer_step{});
  auto other = told;
  other.rate = 0.25;
  const auto of = [](unsigned worker, std::uint64_t clock, const step_mark& step) {
    return gradient_arrived{worker_id{worker}, the_chunk, clock_id{clock}, {}, step};
  };
  worker_gradients gradients;
  CHECK(!gradients.steps_otherwise(of(1, 0, other)));
  gradients.add(of(1, 0, other), 3);
  CHECK(!gradients.steps_otherwise(of(0, 1, told)));  // of another clock
  CHECK(!gradients.steps_otherwise(of(2, 0, other)));
  const auto found = gradients.steps_otherwise(of(0, 0, told));
  REQUIRE(found);
  CHECK(found->first == worker_id{1});
  CHECK(found->second == other);
}

TEST_CASE("server_shard: what worker 0 gives is its bits, whatever they are, and no step") {
  // A signalling NaN, -0.0, a denormal.
  const std::vector<std::uint32_t> bits{0x7fa12345, 0x80000000, 1};
  shard_with_optimizer t(true);
  t.program->told = std::nullopt;
  std::vector<float> given(3);
  std::memcpy(given.data(), bits.data(), 12);
  t.gradient(1, {}, {});
  t.gradient(0, given, {});
  REQUIRE(t.gather.got->size() == 1);
  CHECK(!t.gather.got->front().nothing);
  CHECK(std::memcmp(t.store->at(the_chunk, 1).data(), bits.data(), 12) == 0);
  REQUIRE(t.link.got->size() == 1);
  CHECK(std::memcmp(t.link.got->front().data.bytes.data(), bits.data(), 12) == 0);
}
