#include "actors/parameters/gradient_push.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/parameters/send_order.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace poseidon;

namespace {

struct push_of_two_replicas {
  test::sim sim;
  std::vector<float> r0{1, 2, 3, 4}, r1{10, 20, 30, 40};
  std::shared_ptr<gradient_sum> sum =
      std::make_shared<gradient_sum>(std::make_shared<test::plain_arithmetic>(),
                                     std::vector<std::vector<std::span<float>>>{{r0}, {r1}}, 1);
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<gradient_encoder> encoder;
  test::probe<send_frame> link = sim.listen<send_frame>();
  test::probe<gradient_arrived> shard = sim.listen<gradient_arrived>();
  test::probe<install_chunk> install = sim.listen<install_chunk>();
  test::probe<parameters_fresh> layer = sim.listen<parameters_fresh>();
  test::probe<layer_fresh> solver = sim.listen<layer_fresh>();
  handle<gradient_push> push;

  explicit push_of_two_replicas(wire_format format = wire_format::float32,
                                bool of_side_branch = false,
                                const std::shared_ptr<const gradient_source>& lent = nullptr)
      : store(test::one_parameter_store(4, 2, 2, 0, format)) {
    if (format != wire_format::float32)
      encoder = std::make_shared<gradient_encoder>(
          std::vector<gradient_encoder::part>{{format, r0.size()}});
    gradient_push_setup s;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.layer = layer_id{7};
    s.name = "fc7";
    s.contributions = 2;
    s.of_side_branch = of_side_branch;
    s.parameters = {test::only_parameter};
    s.gradient = sum;
    if (lent != nullptr) s.gradient = lent;
    s.of_program = lent != nullptr;
    s.encoder = encoder;
    s.store = store;
    push = sim.spawn<gradient_push>("gradient_push fc7", std::move(s));
    sim.tell(push,
             connect_gradient_push{{{}, link.in}, shard.in, install.in, {layer.in}, {}, solver.in});
    sim.settle();
  }
  void done(unsigned replica) {
    sum->contribute(3, 0);
    sim.tell(push, backward_done{replica_id{replica}, {clock_id{3}, 0, 0}});
    sim.settle();
  }
  void landed(unsigned chunk, std::uint64_t version) {
    sim.tell(push, chunk_landed{chunk_id{chunk}, version_id{version}});
    sim.settle();
  }
};

}  // namespace

TEST_CASE(
    "gradient_push: nothing leaves before every replica is done, then each chunk goes to its "
    "owner") {
  push_of_two_replicas t;
  t.done(1);
  CHECK(t.shard.got->empty());
  t.done(0);
  REQUIRE(t.shard.got->size() == 1);
  REQUIRE(t.link.got->size() == 1);
  CHECK(t.shard.got->front().clock == clock_id{3});
  CHECK(test::values_of(t.shard.got->front().values) == std::vector<float>{11, 22});
  CHECK(test::values_of(t.link.got->front().data) == std::vector<float>{33, 44});
  // no copy
  CHECK(t.link.got->front().data.bytes.data() == reinterpret_cast<std::byte*>(t.r0.data() + 2));
  CHECK(t.link.got->front().priority == forward_order(4, layer_id{7}));
}

TEST_CASE(
    "gradient_push: with magnitudes a chunk's priority is its own, behind those of older "
    "versions") {
  push_of_two_replicas t;
  const auto magnitudes = std::make_shared<chunk_magnitudes>(
      t.sum, t.store, std::vector{test::only_parameter}, 1.0f, 0);
  gradient_push_setup s;
  s.name = "fc7";
  s.self = worker_id{2};  // owns none of the chunks
  s.parameters = {test::only_parameter};
  s.gradient = t.sum;
  s.store = t.store;
  s.magnitudes = magnitudes;
  s.overlap = std::make_shared<overlap_meter>(1);
  const auto push = t.sim.spawn<gradient_push>("gradient_push by magnitude", std::move(s));
  t.sim.tell(push, connect_gradient_push{{t.link.in, t.link.in, {}}, {}, {}, {}, {}, {}});
  std::copy_n(std::vector<float>{100, 100, 1, 1}.begin(), 4,
              t.store->values(test::only_parameter, 0).begin());
  magnitudes->weigh(3);
  t.sim.tell(push, backward_done{replica_id{0}, {clock_id{3}, 0, 0}});
  t.sim.settle();
  REQUIRE(t.link.got->size() == 2);
  const auto small = t.link.got->front().priority, large = t.link.got->back().priority;
  CHECK(large < small);
  CHECK(large > magnitude_order(3, 0));
  CHECK(small < magnitude_order(5, 1));
}

TEST_CASE(
    "gradient_push: where a format is reduced every chunk leaves rounded, also to the own shard") {
  push_of_two_replicas t(wire_format::float16);
  const std::vector<float> total{0.1f, 22, 33, 2049};  // 0.1 and 2049 are no halves
  t.encoder->encode(0, total);
  t.done(1);
  t.done(0);
  REQUIRE(t.shard.got->size() == 1);
  REQUIRE(t.link.got->size() == 1);
  const auto half = [](const payload& p) {
    std::vector<float> values(p.bytes.size() / 2);
    decode(wire_format::float16, p.bytes, values);
    return values;
  };
  CHECK(half(t.shard.got->front().values) == std::vector<float>{0x1.998p-4f, 22});
  CHECK(half(t.link.got->front().data) == std::vector<float>{33, 2048});
}

TEST_CASE(
    "gradient_push: a program's gradient leaves in the format of its clock, and nothing is kept") {
  struct lent : gradient_source {
    std::vector<float> values{0.1f, 1e6f, 33, 2049};
    wire_format format = wire_format::float16;
    std::span<const float> total(std::uint64_t, std::size_t) const override { return values; }
    wire_format wire() const override { return format; }
  };
  const auto program = std::make_shared<lent>();
  push_of_two_replicas t(wire_format::float32, false, program);
  for (const std::uint64_t clock : {3u, 4u}) {
    for (const unsigned replica : {0u, 1u})
      t.sim.tell(t.push, backward_done{replica_id{replica}, {clock_id{clock}, 0, 0}});
    t.sim.settle();
    const auto& own = t.shard.got->back();
    CHECK(own.step.wire == wire_format::float16);
    std::vector<float> values(2);
    decode(wire_format::float16, own.values.bytes, values);
    CHECK(values == std::vector<float>{0x1.998p-4f, std::numeric_limits<float>::infinity()});
    const auto& sent = t.link.got->back();
    CHECK(std::get<frames::push_gradient>(sent.header).step.wire == wire_format::float16);
    decode(wire_format::float16, sent.data.bytes, values);
    CHECK(values == std::vector<float>{33, 2048});
  }
  program->format = wire_format::float32;
  for (const unsigned replica : {0u, 1u})
    t.sim.tell(t.push, backward_done{replica_id{replica}, {clock_id{5}, 0, 0}});
  t.sim.settle();
  CHECK(t.link.got->back().data.bytes.size() == 8);
}

TEST_CASE("gradient_encoder: what rounding takes from a clock is sent with the next ones") {
  gradient_encoder encoder({{wire_format::float32, 1}, {wire_format::bfloat16, 2}});
  CHECK_FALSE(encoder.reduces(0));
  double sent = 0;
  const std::vector<float> each{257, 0};  // bfloat16 has 256 and 258
  for (int clock = 0; clock < 10; ++clock) {
    encoder.encode(1, each);
    std::vector<float> values(2);
    decode(wire_format::bfloat16, encoder.take(1).bytes, values);
    sent += values[0];
  }
  CHECK(sent == 2570);
}

TEST_CASE("gradient_encoder: clocks that overlap are taken in their order, each once") {
  gradient_encoder encoder({{wire_format::float16, 1}});
  for (const float v : {1.0f, 2.0f}) encoder.encode(0, std::vector{v});
  for (const float v : {1.0f, 2.0f}) {
    std::vector<float> got(1);
    decode(wire_format::float16, encoder.take(0).bytes, got);
    CHECK(got[0] == v);
  }
  CHECK_THROWS_AS((void)encoder.take(0), logic_bug);
}

TEST_CASE(
    "gradient_push: layers hear of fresh parameters when every chunk has landed, not before") {
  push_of_two_replicas t;
  std::ranges::fill(t.store->at(chunk_id{0}, 3), 5.0f);
  t.landed(0, 3);
  CHECK(t.layer.got->empty());
  CHECK(t.store->current(test::only_parameter)[0] == 0.0f);
  t.landed(1, 3);
  REQUIRE(t.layer.got->size() == 1);
  CHECK(t.layer.got->front().version == version_id{3});
  CHECK(t.store->current(test::only_parameter)[0] == 5.0f);
  CHECK(t.solver.got->size() == 1);
}

TEST_CASE(
    "gradient_push: a side branch's gradient leaves when the node has all parameters of its "
    "clock") {
  push_of_two_replicas t(wire_format::float32, true);
  const auto whole = [&](std::uint64_t version) {
    t.sim.tell(t.push, parameters_whole{version_id{version}});
    t.sim.settle();
  };
  whole(2);
  t.done(0);
  t.done(1);
  CHECK(t.shard.got->empty());
  whole(3);
  CHECK(t.shard.got->size() == 1);
  CHECK(t.link.got->size() == 1);
}

TEST_CASE("gradient_push: the own shard takes over its chunks once, when the first values are in") {
  push_of_two_replicas t;
  t.landed(0, 0);
  t.landed(1, 0);
  REQUIRE(t.install.got->size() == 1);
  CHECK(t.install.got->front().chunk == chunk_id{0});
  t.landed(0, 1);
  t.landed(1, 1);
  CHECK(t.install.got->size() == 1);
}

TEST_CASE("gradient_push: layers that share a parameter push once, when the last of them is done") {
  push_of_two_replicas t;
  gradient_push_setup s;
  s.overlap = std::make_shared<overlap_meter>(1);
  s.name = "fc7";
  s.contributions = 3;  // layers
  s.micro_batches = 2;
  s.parameters = {test::only_parameter};
  s.gradient = t.sum;
  s.store = t.store;
  const auto push = t.sim.spawn<gradient_push>("gradient_push shared", std::move(s));
  t.sim.tell(push, connect_gradient_push{{{}, t.link.in}, t.shard.in, t.install.in, {}, {}, {}});
  const auto done = [&](std::uint32_t micro_batch, int times) {
    for (int i = 0; i < times; ++i)
      t.sim.tell(push, backward_done{replica_id{0}, {clock_id{3}, micro_batch, 0}});
    t.sim.settle();
  };
  // What two layers say of two micro-batches may cross on the way.
  done(0, 2);
  done(1, 2);
  CHECK(t.shard.got->empty());
  done(0, 1);
  CHECK(t.shard.got->empty());
  done(1, 1);
  CHECK(t.shard.got->size() == 1);
  done(0, 3);
  done(1, 3);
  CHECK(t.shard.got->size() == 2);
}

TEST_CASE("gradient_sum: replicas are added when every layer that writes has run on each") {
  std::vector<float> r0{1}, r1{2};
  gradient_sum sum(std::make_shared<test::plain_arithmetic>(), {{r0}, {r1}}, 1, 2);
  for (int i = 0; i < 3; ++i) sum.contribute(0, 0);
  CHECK(sum.total(0, 0)[0] == 1.0f);
  sum.contribute(0, 0);
  CHECK(sum.total(0, 0)[0] == 3.0f);
}

TEST_CASE("gradient_sum: what a device has added to the first replica's is waited for, not added") {
  std::vector<float> r0{3}, r2{4};
  gradient_sum sum(std::make_shared<test::plain_arithmetic>(), {{r0}, {std::span<float>()}, {r2}},
                   1);
  CHECK_FALSE(sum.contribute(0, 0));
  CHECK_FALSE(sum.contribute(0, 0));
  CHECK(sum.contribute(0, 0));
  CHECK(sum.total(0, 0)[0] == 7.0f);
}

TEST_CASE(
    "gradient_sum: at staleness 2 the sums of three clocks stay, whatever is computed after them") {
  std::vector<float> r0{0}, r1{0};
  gradient_sum sum(std::make_shared<test::plain_arithmetic>(), {{r0}, {r1}}, 1, 1, 2);
  for (const unsigned clock : {4u, 5u, 6u}) {
    r0 = {static_cast<float>(clock)};
    r1 = {100};
    sum.contribute(clock, 0);
    sum.contribute(clock, 0);
  }
  for (const unsigned clock : {4u, 5u, 6u})
    CHECK(sum.total(clock, 0)[0] == static_cast<float>(clock + 100));
}

TEST_CASE(
    "gradient_sum: micro-batches are added after the replicas of each, and the first overwrites") {
  std::vector<float> r0{1}, r1{2};
  gradient_sum sum(std::make_shared<test::plain_arithmetic>(), {{r0}, {r1}}, 2);
  for (int clock = 0; clock < 2; ++clock) {
    r0 = {1};
    r1 = {2};
    sum.contribute(0, 0);
    sum.contribute(0, 0);
    r0 = {10};
    r1 = {20};
    sum.contribute(0, 1);
    sum.contribute(0, 1);
    CHECK(sum.total(0, 0)[0] == 33.0f);
  }
}

TEST_CASE("gradient_push: with outer steps layers hear of each own update, and the last is sent") {
  push_of_two_replicas t;
  gradient_push_setup s;
  s.name = "fc7";
  s.contributions = 1;
  s.micro_batches = 6;
  s.passes_per_update = 2;
  s.parameters = {test::only_parameter};
  s.gradient = t.sum;
  s.store = t.store;
  s.overlap = std::make_shared<overlap_meter>(1);
  const auto push = t.sim.spawn<gradient_push>("gradient_push of own updates", std::move(s));
  t.sim.tell(push, connect_gradient_push{
                       {{}, t.link.in}, t.shard.in, t.install.in, {t.layer.in}, {}, t.solver.in});
  for (std::uint32_t index = 0; index < 5; ++index)
    t.sim.tell(push, backward_done{replica_id{0}, {clock_id{3}, index, 0}});
  t.sim.settle();
  REQUIRE(t.layer.got->size() == 2);
  CHECK(t.layer.got->front().version == version_id{3});
  CHECK(t.layer.got->front().own_updates == 1);
  CHECK(t.layer.got->back().own_updates == 2);
  CHECK(t.link.got->empty());
  t.sim.tell(push, backward_done{replica_id{0}, {clock_id{3}, 5, 0}});
  t.sim.settle();
  CHECK(t.layer.got->size() == 2);
  REQUIRE(t.link.got->size() == 1);
  CHECK(std::get<frames::push_gradient>(t.link.got->front().header).clock == clock_id{3});
}
