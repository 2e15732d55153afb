#include "actors/parameters/factor_broadcast.hpp"

#include "actors/parameters/send_order.hpp"
#include "tests/actors/fakes.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr factor_shape one_pass{1, 1, 2};  // weights [1, 2]
constexpr parameter_id weight_id{0}, bias_id{1};

net two_weights_and_a_bias() {
  net n;
  n.layers.resize(1);
  n.layers[0].name = "fc7";
  n.layers[0].parameters = {0, 1};
  n.parameters.push_back({0, 0, "fc7/0", {1, 2}, 1, 1, {}});
  n.parameters.push_back({0, 1, "fc7/1", {1}, 2, 1, {}});
  return n;
}

/// Worker 1 of `workers`, whose run begins at clock 5, with one row (and pass) per clock unless told otherwise.
struct broadcast_of {
  test::sim sim;
  std::size_t workers;
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<factor_store> factors;
  test::probe<send_frame> to_first = sim.listen<send_frame>(), to_last = sim.listen<send_frame>();
  test::probe<parameters_fresh> layer = sim.listen<parameters_fresh>();
  test::probe<layer_fresh> solver = sim.listen<layer_fresh>();
  test::probe<history_arrived> checkpointer = sim.listen<history_arrived>();
  handle<factor_broadcast> it;

  /// `rule`: false where versions are mean gradients.
  explicit broadcast_of(std::size_t all, std::size_t passes = 1, bool rule = true,
                        std::size_t awaited_state = 0, std::uint64_t former_states = 0)
      : workers(all) {
    const auto n = two_weights_and_a_bias();
    partition cut;
    cut.chunks = {{weight_id, 0, 2, every_worker}, {bias_id, 0, 1, every_worker}};
    cut.by_parameter = {{chunk_id{0}}, {chunk_id{1}}};
    cut.by_owner.resize(workers);
    store = std::make_shared<parameter_store>(n.parameters, cut, workers);
    factors = std::make_shared<factor_store>(
        one_pass, factor_rows(workers, std::vector<std::size_t>(passes, one_pass.rows)),
        clock_id{5});
    factor_broadcast_setup s;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.layer = layer_id{7};
    s.name = "fc7";
    s.self = worker_id{1};
    s.workers = workers;
    s.passes = passes;
    if (rule) s.update = solver_rule{};
    s.scale = rule ? 1.0f : 1.0f / static_cast<float>(workers);
    s.solver.set_base_lr(1);
    s.solver.set_lr_policy("fixed");
    s.parameters = {weight_id, bias_id};
    s.of_net = by_id<parameter_id, net_parameter>(n.parameters);
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.factors = factors;
    s.product = factors->of_all();
    s.awaited_state = awaited_state;
    s.former_states = former_states;
    it = sim.spawn<factor_broadcast>("factor_broadcast fc7", std::move(s));
    connect_factor_broadcast m{{}, {layer.in}, solver.in, checkpointer.in};
    m.links.resize(workers);
    m.links.front() = to_first.in;
    if (workers > 2) m.links.back() = to_last.in;
    sim.tell(it, m);
  }
  void first_values() {
    for (const unsigned chunk : {0u, 1u})
      sim.tell(it, chunk_landed{chunk_id{chunk}, version_id{5}});
    sim.settle();
  }
  /// What a link does with a worker's factors, u first.
  void arrived(unsigned worker, std::uint64_t clock, float u, std::vector<float> v) {
    const auto rows = std::uint32_t{1};
    for (const std::uint64_t first : {0u, 1u}) {
      const auto place = factors->piece(clock_id{clock}, worker_id{worker}, rows, first);
      if (first == 0)
        place[0] = u;
      else
        std::copy(v.begin(), v.end(), place.begin());
      sim.tell(it, factors_landed{worker_id{worker}, clock_id{clock}, rows, first});
    }
    sim.settle();
  }
  /// What a stream does with this node's own.
  void packed(std::uint64_t clock, float u, std::vector<float> v, std::uint32_t pass = 0) {
    const auto place = factors->pass(clock_id{clock}, worker_id{1}, pass);
    place.u[0] = u;
    std::copy(v.begin(), v.end(), place.v.begin());
    sim.tell(it, backward_done{replica_id{0}, {clock_id{clock}, pass, 0}});
    sim.settle();
  }
  [[nodiscard]] std::vector<float> weights() const {
    const auto w = store->current(weight_id);
    return {w.begin(), w.end()};
  }
};

}  // namespace

TEST_CASE(
    "factor_broadcast: an update is made when, and only when, every worker's factors are in") {
  broadcast_of t(3);
  t.first_values();
  REQUIRE(t.layer.got->size() == 1);
  t.packed(5, 1, {1, 2});
  t.arrived(2, 5, 10, {1, 1});
  CHECK(t.layer.got->size() == 1);
  CHECK(t.store->version(weight_id) == 5);
  t.arrived(0, 5, 2, {3, 0});
  REQUIRE(t.layer.got->size() == 2);
  CHECK(t.layer.got->back().version == version_id{6});
  CHECK(t.solver.got->back().version == version_id{6});
  CHECK(t.weights() == std::vector<float>{-(1 + 10 + 6), -(2 + 10 + 0)});
  CHECK(t.store->current(bias_id)[0] == -2 * (1 + 10 + 2));  // lr_mult 2; the column sum of u
}

TEST_CASE("factor_broadcast: half of a worker's factors are not all of them") {
  broadcast_of t(2);
  t.first_values();
  t.packed(5, 1, {1, 1});
  t.sim.tell(t.it, factors_landed{worker_id{0}, clock_id{5}, 1, 0});
  t.sim.settle();
  CHECK(t.layer.got->size() == 1);
  t.sim.tell(t.it, factors_landed{worker_id{0}, clock_id{5}, 1, 1});
  t.sim.settle();
  CHECK(t.layer.got->size() == 2);
}

TEST_CASE("factor_broadcast: rows are added in worker order, whatever order they arrive in") {
  // (1e8 + 1) - 1e8 is 0 in float32, 1e8 - 1e8 + 1 is 1: the order shows.
  broadcast_of t(3);
  t.first_values();
  t.arrived(2, 5, 1, {-1e8f, 1});
  t.arrived(0, 5, 1, {1e8f, 1e8f});
  t.packed(5, 1, {1, -1e8f});
  CHECK(t.weights() == std::vector<float>{0, -1});
}

TEST_CASE("factor_broadcast: factors of a peer that is a clock ahead wait, and are not lost") {
  broadcast_of t(2);
  t.first_values();
  t.arrived(0, 5, 1, {1, 1});
  t.arrived(0, 6, 1, {5, 5});
  CHECK(t.layer.got->size() == 1);
  t.packed(5, 1, {2, 2});
  REQUIRE(t.layer.got->size() == 2);
  CHECK(t.weights() == std::vector<float>{-3, -3});
  t.packed(6, 1, {0, 0});
  REQUIRE(t.layer.got->size() == 3);
  CHECK(t.weights() == std::vector<float>{-8, -8});
}

TEST_CASE("factor_broadcast: nothing moves before the first values are all in") {
  broadcast_of t(2);
  t.arrived(0, 5, 1, {1, 1});
  t.packed(5, 1, {1, 1});
  CHECK(t.layer.got->empty());
  t.first_values();
  CHECK(t.layer.got->size() == 2);
}

TEST_CASE("factor_broadcast: what leaves is the store's memory, the same for every peer") {
  broadcast_of t(3, 2);
  t.first_values();
  t.packed(5, 1, {1, 2}, 0);
  CHECK(t.to_first.got->empty());
  CHECK(t.factors->sent() == 5);
  t.packed(5, 2, {3, 4}, 1);
  CHECK(t.factors->sent() == 6);
  REQUIRE(t.to_first.got->size() == 2);
  REQUIRE(t.to_last.got->size() == 2);
  const auto& u = t.to_first.got->front();
  CHECK(test::values_of(u.data) == std::vector<float>{1, 2});
  CHECK(test::values_of(t.to_first.got->back().data) == std::vector<float>{1, 2, 3, 4});
  CHECK(u.data.bytes.data() == t.to_last.got->front().data.bytes.data());
  CHECK(u.priority == forward_order(6, layer_id{7}));
  const auto& header = std::get<frames::factors>(t.to_first.got->back().header);
  CHECK(header.layer == layer_id{7});
  CHECK(header.clock == clock_id{5});
  CHECK(header.rows == 2);
  CHECK(header.first == 2);
}

TEST_CASE("factor_broadcast: a worker with fewer rows adds no more than these") {
  broadcast_of t(2, 2);
  t.first_values();
  for (auto& v : t.factors->all(clock_id{5}).v) v = 99;
  for (auto& u : t.factors->all(clock_id{5}).u) u = 99;
  t.packed(5, 1, {1, 1}, 0);
  t.packed(5, 1, {1, 1}, 1);
  t.arrived(0, 5, 3, {1, 2});
  CHECK(t.weights() == std::vector<float>{-5, -8});
}

TEST_CASE(
    "factor_broadcast: solver state is installed, used once a clock, and told with its version") {
  broadcast_of t(2);
  t.sim.tell(t.it, history_inherited{chunk_id{0}, 0, 0, test::payload_of({40, 50})});
  t.first_values();
  t.packed(5, 1, {1, 1});
  t.arrived(0, 5, 1, {1, 1});
  t.sim.tell(t.it, copy_history{version_id{6}});
  t.sim.settle();
  REQUIRE(t.checkpointer.got->size() == 2);
  const auto& first = t.checkpointer.got->front();
  CHECK(first.version == version_id{6});
  CHECK(first.from == worker_id{1});
  CHECK(test::values_of(first.values) == std::vector<float>{41, 51});  // the fake counts updates
}

// -- programs -------------------------------------------------------------------------------------------

namespace {

/// What the program of a worker does, which has lent its factors.
void filled(broadcast_of& t, std::uint64_t clock, const std::vector<float>& u,
            const std::vector<float>& v) {
  t.factors->fill(clock_id{clock}, worker_id{1}, u, v);
  t.sim.tell(t.it, backward_done{replica_id{0}, {clock_id{clock}, 0, 0}});
  t.sim.settle();
}

}  // namespace

TEST_CASE("factor_broadcast: without a rule a version is the mean of all workers' gradients") {
  broadcast_of t(2, 1, false);
  t.first_values();
  filled(t, 5, {2}, {1, 3});
  CHECK(t.layer.got->size() == 1);
  t.arrived(0, 5, 4, {1, 1});
  REQUIRE(t.layer.got->size() == 2);
  CHECK(t.weights() == std::vector<float>{(2 + 4) / 2.0f, (6 + 4) / 2.0f});
  CHECK_FALSE(t.solver.got->back().nothing);
}

TEST_CASE("factor_broadcast: a program's factors may have fewer rows than there is room for") {
  broadcast_of t(2, 2, false);
  t.first_values();
  for (auto& u : t.factors->all(clock_id{5}).u) u = 99;
  for (auto& v : t.factors->all(clock_id{5}).v) v = 99;
  t.factors->fill(clock_id{5}, worker_id{1}, std::vector<float>{1}, std::vector<float>{1, 2});
  for (const std::uint32_t pass : {0u, 1u})
    t.sim.tell(t.it, backward_done{replica_id{0}, {clock_id{5}, pass, 0}});
  t.sim.settle();
  const auto& header = std::get<frames::factors>(t.to_first.got->front().header);
  CHECK(header.rows == 1);
  CHECK(t.to_first.got->front().data.bytes.size() == sizeof(float));
  t.arrived(0, 5, 3, {1, 1});
  CHECK(t.weights() == std::vector<float>{(1 + 3) / 2.0f, (2 + 3) / 2.0f});
}

TEST_CASE("factor_broadcast: a worker without a gradient sends no rows, and adds none") {
  broadcast_of t(2, 1, false);
  t.first_values();
  filled(t, 5, {}, {});
  REQUIRE(t.to_first.got->size() == 1);
  CHECK(std::get<frames::factors>(t.to_first.got->front().header).rows == 0);
  CHECK(t.to_first.got->front().data.bytes.empty());
  t.arrived(0, 5, 4, {1, 2});
  CHECK(t.weights() == std::vector<float>{2, 4});
  CHECK_FALSE(t.solver.got->back().nothing);
  filled(t, 6, {}, {});
  t.sim.tell(t.it, factors_landed{worker_id{0}, clock_id{6}, 0, 0});
  t.sim.settle();
  CHECK(t.solver.got->back().version == version_id{7});
  CHECK(t.solver.got->back().nothing);  // nobody has one
}

TEST_CASE("factor_broadcast: where versions before are kept, it gives their solver state, too") {
  const auto released = [](std::uint64_t trained, std::uint64_t version) {
    broadcast_of t(2, 1, true, 0, 1);
    auto history = t.sim.listen<history_released>();
    t.first_values();
    for (std::uint64_t clock = 5; clock < trained; ++clock) {
      t.packed(clock, 1, {1, 2});
      t.arrived(0, clock, 2, {3, 0});
    }
    t.sim.tell(t.it, release_history{history.in, version_id{version}});
    t.sim.settle();
    return history.got->empty() ? std::vector<std::vector<float>>{}
                                : history.got->front().history->at(chunk_id{0});
  };
  const auto updates = [](float made) {
    return std::vector<std::vector<float>>(1, std::vector<float>(2, made));
  };
  CHECK(released(8, 8) == updates(3));  // the fake counts updates
  CHECK(released(8, 7) == updates(2));
  CHECK(released(8, 6).empty());  // it has failed
  CHECK(released(8, 9).empty());
}

TEST_CASE(
    "factor_broadcast: no update is made before the awaited state of all its chunks is there") {
  broadcast_of t(2, 1, true, 3);
  const auto state = [&](unsigned chunk, std::uint64_t first, std::vector<float> values) {
    t.sim.tell(t.it,
               history_inherited{chunk_id{chunk}, 0, first, test::payload_of(std::move(values))});
    t.sim.settle();
  };
  t.first_values();
  state(0, 1, {20});
  t.packed(5, 1, {1, 2});
  t.arrived(0, 5, 2, {3, 0});
  state(0, 0, {10});
  CHECK(t.store->version(weight_id) == 5);
  state(1, 0, {4});
  CHECK(t.store->version(weight_id) == 6);
  CHECK(t.weights() == std::vector<float>{-(1 + 6), -2});
  t.packed(6, 1, {1, 2});
  t.arrived(0, 6, 2, {3, 0});
  CHECK(t.store->version(weight_id) == 7);
}
