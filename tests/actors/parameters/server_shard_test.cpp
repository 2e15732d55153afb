#include "actors/parameters/server_shard.hpp"

#include "models/device/wire_format.hpp"
#include "models/solver/solver_file.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace poseidon;

namespace {

constexpr chunk_id c0{0};

struct shard_of_two {
  test::sim sim;
  std::shared_ptr<parameter_store> store;
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<chunk_fresh> gather = sim.listen<chunk_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<server_shard> shard;

  explicit shard_of_two(std::optional<float> average_momentum = std::nullopt,
                        std::uint64_t staleness = 0, wire_format format = wire_format::float32)
      : store(test::one_parameter_store(3, 3, 1, staleness, format)) {
    server_shard_setup s;
    s.workers = 2;
    s.scale = 0.5f;
    s.passes = 2;
    s.solver.set_base_lr(1);
    s.solver.set_lr_policy("fixed");
    s.update = rule_of(s.solver);
    s.parameters.push_back(test::one_parameter_net(3).parameters.front());
    s.parameters[test::only_parameter].average_momentum = average_momentum;
    s.first_uses = {layer_id{7}};
    s.names = {"fc7"};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    shard = sim.spawn<server_shard>("server_shard", std::move(s));
    sim.tell(shard, connect_shard{{{}, link.in}, {gather.in}, checkpointer.in});
    store->publish(test::only_parameter, 0);
    sim.tell(shard, install_chunk{c0, version_id{0}});
    sim.settle();
  }
  void gradient(unsigned worker, std::uint64_t clock, std::vector<float> values) {
    sim.tell(shard, gradient_arrived{worker_id{worker}, c0, clock_id{clock},
                                     test::payload_of(std::move(values))});
    sim.settle();
    for (; published < gather.got->size(); ++published)
      store->publish(test::only_parameter, published + 1);
  }
  std::size_t published = 0;
};

}  // namespace

TEST_CASE("server_shard: a chunk is updated when, and only when, every worker's gradient is in") {
  shard_of_two t;
  t.gradient(1, 0, {2, 4, 6});
  CHECK(t.link.got->empty());
  t.gradient(0, 0, {2, 0, 2});
  REQUIRE(t.link.got->size() == 1);
  REQUIRE(t.gather.got->size() == 1);
  CHECK(t.gather.got->front().version == version_id{1});
  // Averaged over the workers: w' = 0 - 1 * (sum / 2).
  CHECK(test::values_of(t.link.got->front().data) == std::vector<float>{-2, -2, -4});
  const auto landed = t.store->current(test::only_parameter);
  CHECK(std::vector<float>(landed.begin(), landed.end()) == std::vector<float>{-2, -2, -4});
}

TEST_CASE("server_shard: gradients are added in worker order, whatever order they arrive in") {
  // (1e8 + 1) - 1e8 is 0 in float32, 1e8 - 1e8 + 1 is 1: the order shows.
  test::sim sim;
  auto store = test::one_parameter_store(1, 1, 1);
  auto link = sim.listen<send_frame>();
  auto gather = sim.listen<chunk_fresh>();
  server_shard_setup s;
  s.workers = 3;
  s.solver.set_base_lr(-1);
  s.solver.set_lr_policy("fixed");
  s.update = rule_of(s.solver);
  s.parameters.push_back(test::one_parameter_net(1).parameters.front());
  s.first_uses = {layer_id{0}};
  s.names = {"fc7"};
  s.arithmetic = std::make_shared<test::plain_arithmetic>();
  s.store = store;
  auto shard = sim.spawn<server_shard>("server_shard", std::move(s));
  sim.tell(shard, connect_shard{{{}, link.in, {}}, {gather.in}, {}});
  store->publish(test::only_parameter, 0);
  sim.tell(shard, install_chunk{c0, version_id{0}});
  const float of_worker[] = {1e8f, 1.0f, -1e8f};
  for (const unsigned worker : {2u, 0u, 1u})
    sim.tell(shard, gradient_arrived{worker_id{worker}, c0, clock_id{0},
                                     test::payload_of({of_worker[worker]})});
  sim.settle();
  REQUIRE(link.got->size() == 1);
  CHECK(test::values_of(link.got->front().data) == std::vector<float>{0.0f});
}

TEST_CASE(
    "server_shard: with a reduced format every node takes the same rounded step, and what a step "
    "lacks "
    "is in the next") {
  shard_of_two t(std::nullopt, 0, wire_format::bfloat16);
  std::vector<float> peer(3);  // another node's copy
  const auto clock = [&](std::uint64_t number, float first, float second) {
    for (const auto& [worker, value] : {std::pair{0u, first}, std::pair{1u, second}}) {
      const auto bytes = std::make_shared<std::vector<std::byte>>(6);
      encode(wire_format::bfloat16, std::vector<float>{value, 0, -value}, *bytes);
      t.sim.tell(t.shard,
                 gradient_arrived{worker_id{worker}, c0, clock_id{number}, {bytes, *bytes}});
    }
    t.sim.settle();
    for (; t.published < t.gather.got->size(); ++t.published)
      t.store->publish(test::only_parameter, t.published + 1);
    REQUIRE(t.link.got->size() == number + 1);
    const auto& step = t.link.got->back().data.bytes;
    REQUIRE(step.size() == 6);
    add_decoded(wire_format::bfloat16, step, peer, peer);
    const auto own = t.store->current(test::only_parameter);
    CHECK(std::vector<float>(own.begin(), own.end()) == peer);
  };
  clock(0, 256, 258);  // their mean is 257, and a step of 257 is rounded to 256
  CHECK(peer == std::vector<float>{-256, 0, 256});
  clock(1, 0, 0);
  CHECK(peer == std::vector<float>{-257, 0, 257});
  clock(2, 256, 258);
  clock(3, 256, 258);  // 1 and 257
  CHECK(peer == std::vector<float>{-771, 0, 771});
}

TEST_CASE("server_shard: in blocks, too, every node takes the same step, and none is lost") {
  for (const auto format : {wire_format::int8, wire_format::int4}) {
    shard_of_two t(std::nullopt, 0, format);
    std::vector<float> peer(3);  // another node's copy
    std::vector<float> left(6);  // what rounding took of each worker's gradient
    std::vector<double> exact(3);
    constexpr std::uint64_t clocks = 40;
    for (std::uint64_t clock = 0; clock < clocks; ++clock) {
      for (const unsigned worker : {0u, 1u}) {
        const std::vector<float> gradient{1.0f, 0.01f, -0.3f * static_cast<float>(worker)};
        const auto bytes = std::make_shared<std::vector<std::byte>>(wire_bytes(format, 3));
        encode_with_feedback(format, gradient, std::span(left).subspan(3 * worker, 3), *bytes);
        t.sim.tell(t.shard,
                   gradient_arrived{worker_id{worker}, c0, clock_id{clock}, {bytes, *bytes}});
        for (std::size_t i = 0; i < 3; ++i) exact[i] -= 0.5 * gradient[i];
      }
      t.sim.settle();
      for (; t.published < t.gather.got->size(); ++t.published)
        t.store->publish(test::only_parameter, t.published + 1);
      REQUIRE(t.link.got->size() == clock + 1);
      add_decoded(format, t.link.got->back().data.bytes, peer, peer);
      const auto own = t.store->current(test::only_parameter);
      REQUIRE(std::vector<float>(own.begin(), own.end()) == peer);
    }
    // What is late is a step of one clock, however many there were.
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(exact[i] - peer[i]) < 0.4);
    CHECK(peer[1] < -0.01f * (clocks - 20));
  }
}

TEST_CASE("server_shard: a gradient of the next clock waits for the clock before") {
  shard_of_two t;
  t.gradient(1, 0, {2, 2, 2});
  t.gradient(1, 1, {4, 4, 4});
  t.gradient(0, 0, {0, 0, 0});
  REQUIRE(t.link.got->size() == 1);
  t.gradient(0, 1, {0, 0, 0});
  REQUIRE(t.link.got->size() == 2);
  CHECK(test::values_of(t.link.got->back().data) == std::vector<float>{-3, -3, -3});
}

TEST_CASE(
    "server_shard: an update rests on the shard's own last one, whether this node has all chunks "
    "of "
    "that version or not") {
  shard_of_two t(std::nullopt, 1);
  for (const std::uint64_t clock : {0u, 1u})
    for (const unsigned worker : {0u, 1u})
      t.sim.tell(t.shard, gradient_arrived{worker_id{worker}, c0, clock_id{clock},
                                           test::payload_of({1, 1, 1})});
  t.sim.settle();
  CHECK(t.store->version(test::only_parameter) == 0);
  REQUIRE(t.link.got->size() == 2);
  CHECK(test::values_of((*t.link.got)[0].data) == std::vector<float>{-1, -1, -1});
  CHECK(test::values_of((*t.link.got)[1].data) == std::vector<float>{-2, -2, -2});
}

TEST_CASE(
    "server_shard: what a link sends is the store's memory, whole until the update after next") {
  shard_of_two t;
  const auto clock = [&](std::uint64_t number) {
    for (unsigned worker : {0u, 1u}) t.gradient(worker, number, {1, 1, 1});
  };
  clock(0);
  REQUIRE(t.link.got->size() == 1);
  CHECK(t.link.got->front().data.bytes.data() ==
        static_cast<const void*>(t.store->current(test::only_parameter).data()));
  // Version 3 includes every worker's gradient of version 2, so no link still sends version 1 then.
  clock(1);
  REQUIRE(t.link.got->size() == 2);
  CHECK(test::values_of((*t.link.got)[0].data) == std::vector<float>{-1, -1, -1});
  CHECK(test::values_of((*t.link.got)[1].data) == std::vector<float>{-2, -2, -2});
}

TEST_CASE("parameter_store: a single worker has one copy, and no version before") {
  parameter_store store(test::one_parameter_net(3).parameters,
                        test::one_parameter_store(3, 3, 1)->cut(), 1);
  CHECK(store.at(c0, 5).data() == store.current(test::only_parameter).data());
  store.at(c0, 5)[1] = 7;
  store.publish(test::only_parameter, 5);
  CHECK(store.current(test::only_parameter)[1] == 7);
  CHECK(store.copy(5)[0] == std::vector<float>{0, 7, 0});
  CHECK_THROWS_AS((void)store.copy(4), std::runtime_error);
}

TEST_CASE(
    "parameter_store: at staleness 2 a version is whole until the fourth one after it lands") {
  parameter_store store(test::one_parameter_net(3).parameters,
                        test::one_parameter_store(3, 3, 1)->cut(), 2, 2);
  for (std::uint64_t version = 5; version < 9; ++version) {
    std::ranges::fill(store.at(c0, version), static_cast<float>(version));
    store.publish(test::only_parameter, version);
  }
  CHECK(store.current(test::only_parameter)[0] == 8);
  for (std::uint64_t version = 5; version < 9; ++version)
    CHECK(store.copy(version)[0] == std::vector<float>(3, static_cast<float>(version)));
  CHECK_THROWS_AS((void)store.copy(4), std::runtime_error);
  CHECK_THROWS_AS((void)store.copy(9), std::runtime_error);
}

TEST_CASE("parameter_store: a frozen parameter is in the copy of every version") {
  auto n = test::one_parameter_net(3);
  n.parameters[0].lr_mult = 0;
  for (const std::size_t workers : {1u, 2u}) {
    parameter_store store(n.parameters, test::one_parameter_store(3, 3, 1)->cut(), workers);
    store.at(c0, 5)[1] = 7;
    store.publish(test::only_parameter, 5);
    CHECK(store.copy(50)[0] == std::vector<float>{0, 7, 0});
  }
}

TEST_CASE(
    "server_shard: with clip_gradients nothing moves before every shard has told its squares") {
  // One parameter in four chunks of one value, dealt to two shards of two workers.
  test::sim sim;
  auto store = test::one_parameter_store(4, 1, 2);
  auto link = sim.listen<send_frame>();
  auto gather = sim.listen<chunk_fresh>();
  server_shard_setup s;
  s.workers = 2;
  s.solver.set_base_lr(1);
  s.solver.set_lr_policy("fixed");
  s.update = rule_of(s.solver);
  s.solver.set_clip_gradients(2.5);
  s.parameters.push_back(test::one_parameter_net(4).parameters.front());
  s.learned = {true};
  s.first_uses = {layer_id{0}};
  s.names = {"fc7"};
  s.arithmetic = std::make_shared<test::plain_arithmetic>();
  s.store = store;
  auto shard = sim.spawn<server_shard>("server_shard", std::move(s));
  sim.tell(shard, connect_shard{{{}, link.in}, {gather.in}, {}});
  store->publish(test::only_parameter, 0);
  const auto others = [&](std::uint64_t clock, float value) {
    square_sum squares;
    squares.add(std::vector<float>{value});
    auto bytes = std::make_shared<std::vector<std::byte>>(square_sum::bytes);
    squares.write(std::span<std::byte, square_sum::bytes>(*bytes));
    sim.tell(shard, squares_arrived{worker_id{1}, clock_id{clock}, {bytes, *bytes}});
    sim.settle();
  };
  const auto gradient = [&](unsigned chunk, std::uint64_t clock, float half) {
    for (const unsigned worker : {0u, 1u})
      sim.tell(shard, gradient_arrived{worker_id{worker}, chunk_id{chunk}, clock_id{clock},
                                       test::payload_of({half})});
    sim.settle();
  };
  for (const unsigned chunk : {0u, 2u}) sim.tell(shard, install_chunk{chunk_id{chunk}, {}});
  gradient(0, 0, 1.5f);  // summed: 3
  CHECK(link.got->empty());
  others(0, 5);
  gradient(2, 0, 0);
  REQUIRE(link.got->size() == 3);  // the own squares, and two chunks
  CHECK(std::holds_alternative<frames::gradient_squares>((*link.got)[0].header));
  const auto own = square_sum::read((*link.got)[0].data.bytes.first<square_sum::bytes>());
  CHECK(own.value() == 9);
  // The norm is sqrt(9 + 0 + 25): 3 becomes 3 * 2.5 / sqrt(34).
  CHECK(test::values_of((*link.got)[1].data)[0] ==
        doctest::Approx(-3 * 2.5 / std::sqrt(34.0)).epsilon(1e-6));
  link.got->clear();
  store->publish(test::only_parameter, 1);
  gradient(2, 1, 0);
  gradient(0, 1, 0.5f);
  CHECK(link.got->size() == 1);  // squares
  others(1, 1);
  REQUIRE(link.got->size() == 3);
  CHECK(test::values_of((*link.got)[1].data)[0] ==  // below the limit: as it is
        doctest::Approx(-3 * 2.5 / std::sqrt(34.0) - 1).epsilon(1e-6));
}

TEST_CASE("server_shard: a snapshot gets the solver state of every chunk, with its version") {
  shard_of_two t;
  t.gradient(0, 0, {1, 1, 1});
  t.gradient(1, 0, {1, 1, 1});
  t.sim.tell(t.shard, copy_history{version_id{1}});
  t.sim.settle();
  REQUIRE(t.checkpointer.got->size() == 1);
  CHECK(t.checkpointer.got->front().version == version_id{1});
  CHECK(test::values_of(t.checkpointer.got->front().values) == std::vector<float>{1, 1, 1});
}

TEST_CASE("server_shard: without a rule a version is the mean gradient of the clock before") {
  test::sim sim;
  auto store = test::one_parameter_store(2, 2, 1);
  auto link = sim.listen<send_frame>();
  auto gather = sim.listen<chunk_fresh>();
  server_shard_setup s;
  s.workers = 3;
  s.scale = 0.5f;
  s.parameters.push_back(test::one_parameter_net(2).parameters.front());
  s.first_uses = {layer_id{0}};
  s.names = {"w"};
  s.arithmetic = std::make_shared<test::plain_arithmetic>();
  s.places = std::make_shared<forward_places>(1);
  s.store = store;
  auto shard = sim.spawn<server_shard>("server_shard", std::move(s));
  sim.tell(shard, connect_shard{{{}, link.in, {}}, {gather.in}, {}});
  store->publish(test::only_parameter, 0);
  sim.tell(shard, install_chunk{c0, version_id{0}});
  const auto clock = [&](std::uint64_t number, std::vector<payload> of_workers) {
    for (unsigned w = 3; w-- > 0;)
      sim.tell(shard, gradient_arrived{worker_id{w}, c0, clock_id{number}, of_workers[w]});
    sim.settle();
    store->publish(test::only_parameter, number + 1);
  };
  clock(0, {test::payload_of({1, 2}), test::payload_of({3, 4}), test::payload_of({5, 6})});
  CHECK(test::values_of(link.got->back().data) == std::vector<float>{4.5, 6});
  // One that has none counts as zeros; if nobody has one, that is said.
  clock(1, {{}, test::payload_of({3, 4}), test::payload_of({5, 6})});
  CHECK(test::values_of(link.got->back().data) == std::vector<float>{4, 5});
  CHECK(!gather.got->back().nothing);
  clock(2, {{}, {}, {}});
  REQUIRE(gather.got->size() == 3);
  CHECK(gather.got->back().nothing);
  CHECK(std::get<frames::fresh_parameters>(link.got->back().header).nothing);
  CHECK(link.got->back().data.bytes.empty());
  clock(3, {test::payload_of({2, 2}), {}, {}});
  CHECK(test::values_of(link.got->back().data) == std::vector<float>{1, 1});
}

TEST_CASE("server_shard: the solver state of frozen parameters belongs to every version") {
  test::sim sim;
  auto checkpointer = sim.listen<history_arrived>();
  server_shard_setup s;
  s.update = solver_rule{};
  s.store = test::one_parameter_store(3, 3, 1);
  auto shard = sim.spawn<server_shard>("server_shard", std::move(s));
  sim.tell(shard, connect_shard{{}, {{}}, checkpointer.in});
  sim.tell(shard, copy_history{version_id{9}});
  sim.settle();
  REQUIRE(checkpointer.got->size() == 1);
  CHECK(checkpointer.got->front().version == version_id{9});
}

TEST_CASE(
    "server_shard: a running statistic keeps its part for every pass of the clock, whatever the "
    "rate") {
  shard_of_two t(0.5f);
  t.gradient(0, 0, {2, 0, 2});
  t.gradient(1, 0, {2, 4, 6});
  REQUIRE(t.link.got->size() == 1);
  CHECK(test::values_of(t.link.got->back().data) == std::vector<float>{4, 4, 8});
  t.gradient(0, 1, {0, 0, 1});
  t.gradient(1, 1, {1, 0, 0});
  REQUIRE(t.link.got->size() == 2);
  CHECK(test::values_of(t.link.got->back().data) == std::vector<float>{2, 1, 3});  // 0.5^2 of them
}
