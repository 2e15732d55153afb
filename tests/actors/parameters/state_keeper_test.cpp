#include "actors/parameters/state_keeper.hpp"

#include "models/device/wire_format.hpp"
#include "models/plan/keepers.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/actors/parameters/rounding_formats.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr chunk_id of_worker_1{1}, of_worker_2{2};

std::vector<std::vector<float>> one_state_array(std::vector<float> values) {
  return {std::move(values)};
}

std::uint32_t checksum_of_values(std::vector<float> values) {
  value_checksum sum;
  sum.add(values);
  return sum.value();
}

/// Worker 0 of three, which keeps what workers 1 and 2 own: chunks 1 and 2, of two values each. The view begins at clock 5.
struct keeper_of_two {
  test::sim sim;
  std::shared_ptr<parameter_store> store;
  test::probe<chunk_fresh> gather = sim.listen<chunk_fresh>();
  test::probe<history_released> history = sim.listen<history_released>();
  handle<state_keeper> keeper;
  std::shared_ptr<const std::string> fault;

  explicit keeper_of_two(std::size_t awaited = 0, std::uint64_t former_states = 1,
                         wire_format format = wire_format::float32) {
    const auto n = test::one_parameter_net(6);
    auto cut = test::one_parameter_store(6, 2, 3, 0, format)->cut();
    set_keepers(cut, n.parameters, 2);
    store = std::make_shared<parameter_store>(n.parameters, cut, 3);
    state_keeper_setup s;
    s.self = worker_id{0};
    s.first_clock = clock_id{5};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    if (awaited > 0) s.awaited_state = by_id<chunk_id, std::size_t>(3, awaited);
    s.former_states = former_states;
    s.names = {"fc7/0"};
    s.layers = {"fc7"};
    keeper = sim.spawn<state_keeper>("state_keeper", std::move(s));
    fault = sim.fault_of(keeper);
    sim.tell(keeper, connect_keeper{{gather.in}});
    sim.settle();
  }
  void sum(chunk_id chunk, std::uint64_t clock, std::vector<float> values,
           std::vector<float> expected) {
    sim.tell(keeper, sum_arrived{{chunk, clock_id{clock}, 1, 0, 0.5f,
                                  checksum_of_values(std::move(expected))},
                                 test::payload_of(std::move(values))});
    sim.settle();
  }
  [[nodiscard]] std::vector<float> values(chunk_id chunk, std::uint64_t version) const {
    const auto at = store->at(chunk, version);
    return {at.begin(), at.end()};
  }
};

}  // namespace

TEST_CASE("state_keeper: it makes the owner's values of the sum, and tells as if they had come") {
  keeper_of_two t;
  t.sum(of_worker_1, 5, {2, 4}, {-1, -2});
  REQUIRE(t.gather.got->size() == 1);
  CHECK(t.gather.got->back().chunk == of_worker_1);
  CHECK(t.gather.got->back().version == version_id{6});
  CHECK(t.values(of_worker_1, 6) == std::vector<float>{-1, -2});
  CHECK(t.store->applied(of_worker_1) == 6);
  t.sum(of_worker_1, 6, {2, 2}, {-2, -3});
  t.sum(of_worker_2, 5, {4, 4}, {-2, -2});
  REQUIRE(t.gather.got->size() == 3);
  CHECK(t.values(of_worker_1, 7) == std::vector<float>{-2, -3});
  CHECK(t.fault->empty());
}

/// Every node but the owner and its keepers has only these steps.
TEST_CASE(
    "state_keeper: where values travel rounded, it has the exact ones and takes rounded steps") {
  const auto format = rounding_format();
  keeper_of_two t(0, 1, format);
  const std::vector<std::vector<float>> exact{{-1.01f, -2}, {-1.01f, -3}, {-1.51f, -3}};
  t.sum(of_worker_1, 5, {2.02f, 4}, exact[0]);
  t.sum(of_worker_1, 6, {0, 2}, exact[1]);
  t.sum(of_worker_1, 7, {1, 0}, exact[2]);
  CHECK(*t.fault == "");
  REQUIRE(t.gather.got->size() == 3);
  std::vector<float> followed(2);
  std::vector<std::byte> step(wire_bytes(format, 2));
  for (std::size_t i = 0; i < 3; ++i) {
    encode_change(format, exact[i], followed, step);
    add_decoded(format, step, followed, followed);
    if (i > 0) CHECK(t.values(of_worker_1, 6 + i) == followed);
  }
  CHECK(followed != exact[2]);
}

TEST_CASE("state_keeper: values that are not the owner's end it, with both checksums") {
  keeper_of_two t;
  t.sum(of_worker_1, 5, {2, 4}, {-1, -2.0000002f});
  CHECK(t.gather.got->empty());
  CHECK(t.fault->find("iteration 5: of parameter fc7/0, chunk 1, the values that this node has "
                      "computed are not those of the node that owns it") != std::string::npos);
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%08x here and %08x there", checksum_of_values({-1, -2}),
                checksum_of_values({-1, -2.0000002f}));
  CHECK(t.fault->find(numbers) != std::string::npos);
  CHECK(t.fault->find("--survive 0") != std::string::npos);
}

TEST_CASE("state_keeper: sums wait for the awaited state of their chunk, and of no other one") {
  keeper_of_two t(2);
  const auto state = [&](chunk_id chunk, std::uint64_t first, std::vector<float> values) {
    t.sim.tell(t.keeper, history_inherited{chunk, 0, first, test::payload_of(std::move(values))});
    t.sim.settle();
  };
  t.sum(of_worker_1, 5, {2, 4}, {-1, -2});
  t.sum(of_worker_1, 6, {2, 4}, {-2, -4});
  state(of_worker_1, 1, {20});
  CHECK(t.gather.got->empty());
  state(of_worker_2, 0, {7, 8});
  CHECK(t.gather.got->empty());
  t.sum(of_worker_2, 5, {2, 2}, {-1, -1});
  CHECK(t.gather.got->size() == 1);
  state(of_worker_1, 0, {10});
  CHECK(t.gather.got->size() == 3);
  t.sim.tell(t.keeper, release_history{t.history.in});
  t.sim.settle();
  REQUIRE(t.history.got->size() == 1);
  // The fake counts updates in it.
  const auto& copies = t.history.got->front().copies;
  CHECK(copies.at(worker_id{1})->at(of_worker_1) == one_state_array({12, 22}));
  CHECK(copies.at(worker_id{2})->at(of_worker_2) == one_state_array({8, 9}));
}

TEST_CASE("state_keeper: it gives the state of each owner's chunks by itself, as of a version") {
  keeper_of_two t;
  for (const std::uint64_t clock : {5u, 6u}) {
    const auto made = -static_cast<float>(clock - 4);
    t.sum(of_worker_1, clock, {2, 2}, {made, made});
  }
  t.sum(of_worker_2, 5, {2, 2}, {-1, -1});
  SUBCASE("that all have reached") {
    t.sim.tell(t.keeper, release_history{t.history.in, version_id{6}});
    t.sim.settle();
    REQUIRE(t.history.got->size() == 1);
    const auto& m = t.history.got->front();
    CHECK(m.history == nullptr);
    CHECK(m.version == version_id{6});
    REQUIRE(m.copies.size() == 2);
    CHECK(m.copies.at(worker_id{1})->size() == 1);
    CHECK(m.copies.at(worker_id{1})->at(of_worker_1) == one_state_array({1, 1}));
    CHECK(m.copies.at(worker_id{2})->at(of_worker_2) == one_state_array({1, 1}));
  }
  SUBCASE("that one has not reached") {
    t.sim.tell(t.keeper, release_history{t.history.in, version_id{7}});
    t.sim.settle();
    CHECK(t.history.got->empty());
    CHECK(t.fault->find("has not reached (got 7, expected 6)") != std::string::npos);
  }
}

TEST_CASE("state_keeper: a sum of another clock than the next is a fault of our own") {
  keeper_of_two t;
  t.sum(of_worker_1, 6, {2, 4}, {-1, -2});
  CHECK(t.fault->find("a sum that is not the next one (got 6, expected 5)") != std::string::npos);
}
