#include "actors/parameters/server_shard.hpp"
#include "actors/parameters/worker_gradients.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/actors/parameters/rounding_formats.hpp"
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
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<program_of_one_step> program = std::make_shared<program_of_one_step>();
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<chunk_fresh> gather = sim.listen<chunk_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<server_shard> shard;
  std::vector<float> momentum{5, 6, 7};

  explicit shard_with_optimizer(bool given = false, optimizer_rule rule = optimizer_rule::sgd,
                                wire_format format = wire_format::float32)
      : store(test::one_parameter_store(3, 3, 1, 0, format)) {
    server_shard_setup s;
    s.workers = 2;
    s.scale = 0.5f;
    s.update = rule;
    s.parameters.push_back(test::one_parameter_net(3).parameters.front());
    s.parameters[test::only_parameter].given = given;
    s.first_uses = {layer_id{7}};
    s.names = {"fc7"};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.lent = {program};
    if (rule != optimizer_rule::none) s.first_state = {{momentum.data()}};
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

namespace {

payload rounded(wire_format format, const std::vector<float>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(wire_bytes(format, values.size()));
  encode(format, values, *bytes);
  return {bytes, *bytes};
}

}  // namespace

TEST_CASE("server_shard: the mean of rounded gradients goes back rounded, to its own node, too") {
  shard_with_optimizer t(false, optimizer_rule::none);
  t.program->told = std::nullopt;
  const step_mark half{0, 0, wire_format::float16};
  for (const std::uint64_t clock : {0u, 1u}) {
    for (const unsigned worker : {1u, 0u})
      t.sim.tell(t.shard,
                 gradient_arrived{
                     worker_id{worker}, the_chunk, clock_id{clock},
                     rounded(wire_format::float16, {worker == 0 ? 1.0f : 2048.0f, 3, 0}), half});
    t.sim.settle();
    const std::vector<float> wanted{1024, 3, 0};  // 1024.5 is no half; nothing is kept of it
    const auto own = t.store->at(the_chunk, clock + 1);
    CHECK(std::vector<float>(own.begin(), own.end()) == wanted);
    const auto& sent = t.link.got->back();
    CHECK(std::get<frames::fresh_parameters>(sent.header).format == wire_format::float16);
    std::vector<float> values(3);
    decode(wire_format::float16, sent.data.bytes, values);
    CHECK(values == wanted);
  }
}

TEST_CASE(
    "server_shard: the mean of gradients in blocks goes back in blocks, to its own node, too") {
  for (const auto format : {wire_format::int8, wire_format::int4}) {
    shard_with_optimizer t(false, optimizer_rule::none);
    t.program->told = std::nullopt;
    const step_mark mark{0, 0, format};
    const std::vector<float> one{1, 0.3f, 0}, other{8, 3, -2};
    const auto as_sent = [format](const std::vector<float>& values) {
      std::vector<float> out(3);
      decode(format, rounded(format, values).bytes, out);
      return out;
    };
    auto mean = as_sent(one);
    for (std::size_t i = 0; i < 3; ++i) mean[i] = 0.5f * (mean[i] + as_sent(other)[i]);
    const auto wanted = as_sent(mean);
    for (const std::uint64_t clock : {0u, 1u}) {
      for (const unsigned worker : {1u, 0u})
        t.sim.tell(t.shard, gradient_arrived{worker_id{worker}, the_chunk, clock_id{clock},
                                             rounded(format, worker == 0 ? one : other), mark});
      t.sim.settle();
      const auto own = t.store->at(the_chunk, clock + 1);
      CHECK(std::vector<float>(own.begin(), own.end()) == wanted);
      const auto& sent = t.link.got->back();
      CHECK(std::get<frames::fresh_parameters>(sent.header).format == format);
      CHECK(sent.data.bytes.size() == wire_bytes(format, 3));
      std::vector<float> values(3);
      decode(format, sent.data.bytes, values);
      CHECK(values == wanted);
    }
  }
}

TEST_CASE("worker_gradients: a worker whose gradients travel otherwise steps otherwise") {
  const step_mark half{0, 0, wire_format::float16};
  const gradient_arrived rounded_one{worker_id{1}, the_chunk, clock_id{0}, {}, half};
  worker_gradients gradients;
  gradients.add({worker_id{0}, the_chunk, clock_id{0}, {}, {}}, 2);
  const auto found = gradients.steps_otherwise(rounded_one);
  REQUIRE(found);
  CHECK(found->second == step_mark{});
  worker_gradients alike;
  alike.add({worker_id{0}, the_chunk, clock_id{0}, {}, half}, 1);
  CHECK(alike.take(0)->wire == wire_format::float16);
}

TEST_CASE(
    "server_shard: a step in a reduced format begins with exact values, or what a program wrote") {
  const auto format = rounding_format();
  shard_with_optimizer t(false, optimizer_rule::sgd, format);
  const auto step = mark_of(t.program->told);  // rate 0.5
  const auto first = t.store->at(the_chunk, 0);
  std::vector<float> exact(first.begin(), first.end());
  for (const std::uint64_t clock : {0u, 1u}) {
    const auto before = t.store->at(the_chunk, clock);
    t.program->has.assign(before.begin(), before.end());
    if (clock == 1) t.program->has[1] = exact[1] = 77;
    const auto base = t.program->has;
    for (const unsigned worker : {0u, 1u})
      t.sim.tell(t.shard, gradient_arrived{worker_id{worker}, the_chunk, clock_id{clock},
                                           rounded(format, {257, 2, 3}), step});
    t.sim.settle();
    std::vector<float> sum(3), wanted(3);  // of bfloat16 512, 4 and 6: 257 is 256
    decode(format, rounded(format, {257, 2, 3}).bytes, sum);
    const auto fresh = t.store->at(the_chunk, clock + 1);
    for (std::size_t i = 0; i < 3; ++i) exact[i] -= 0.5f * 0.5f * 2 * sum[i];
    std::vector<std::byte> change(wire_bytes(format, 3));
    encode_change(format, exact, base, change);
    add_decoded(format, change, base, wanted);
    CHECK(std::vector<float>(fresh.begin(), fresh.end()) == wanted);
  }
}
