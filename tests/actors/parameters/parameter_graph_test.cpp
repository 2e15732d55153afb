// The exchange of gradients as a client of another framework would use it: from a list of parameters, without a net.
#include "actors/parameters/parameter_graph.hpp"

#include "models/solver/solver_file.hpp"
#include "tests/plain_arithmetic.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr parameter_id embed_weights{0}, embed_bias{1}, head_weights{2};

net_parameter parameter(std::size_t layer, std::string name, shape extents, float lr_mult) {
  net_parameter p;
  p.layer = layer;
  p.name = std::move(name);
  p.shape = std::move(extents);
  p.lr_mult = lr_mult;
  return p;
}

/// Two layers that learn, the first with a frozen parameter.
learned_parameters two_layers() {
  return {{parameter(0, "embed/0", {3}, 1), parameter(0, "embed/1", {1}, 0),
           parameter(1, "head/0", {1, 2}, 2)},
          {"embed", "embed", "head"},
          {layer_id{0}, layer_id{0}, layer_id{1}},
          {{"embed", layer_id{0}, 1, {embed_weights}, {embed_bias}},
           {"head", layer_id{1}, 1, {head_weights}, {}}}};
}

/// One node with one replica, whose first values are 10 throughout. Rate 0.5.
struct exchange_of_two_layers {
  test::sim sim;
  trace_log trace{false};
  actor_spawner spawner{sim.system(), sim.book(), trace};
  std::vector<float> embed{1, 2, 3}, head{4, 6};  // gradients
  std::vector<parameter_arrays> snapshots;
  std::shared_ptr<parameter_store> store;
  test::probe<parameters_fresh> fresh = sim.listen<parameters_fresh>();
  test::probe<layer_fresh> solver = sim.listen<layer_fresh>();
  std::unique_ptr<parameter_graph> graph;

  explicit exchange_of_two_layers(bool head_by_factors) {
    parameter_graph_setup s;
    s.list = two_layers();
    parameter_routes routes(3, route::parameter_server);
    if (head_by_factors) {
      routes[head_weights] = route::factor_broadcast;
      s.by_factors[1] = {factor_shape{1, 1, 2}, factor_rows(1, {1})};
    }
    const auto& list = s.list.parameters;
    store = std::make_shared<parameter_store>(list, make_partition(list, 1, routes), 1);
    s.solver.set_base_lr(0.5f);
    s.solver.set_lr_policy("fixed");
    s.update = rule_of(s.solver);
    s.gradients = {{embed, {}, head}};
    s.arithmetic = std::make_shared<test::plain_arithmetic>();
    s.store = store;
    s.overlap = std::make_shared<overlap_meter>(1);
    s.files.write_weights = [this](const std::string&, const parameter_arrays& values) {
      snapshots.push_back(values);
    };
    graph = std::make_unique<parameter_graph>(spawner, std::move(s));
    const group_readers readers{{fresh.in}, {}};
    graph->connect(std::vector<port<send_frame>>(1), {readers, readers}, solver.in);
    give_first_values();
  }
  ~exchange_of_two_layers() {
    for (const auto& a : spawner.all()) tell(a, shut_down{});
  }
  exchange_of_two_layers(const exchange_of_two_layers&) = delete;
  exchange_of_two_layers& operator=(const exchange_of_two_layers&) = delete;

  template <class M>
  void tell(const port<M>& to, M m) {
    caf::anon_send(caf::actor_cast<caf::actor>(to.target()), std::move(m));
    sim.settle();
  }
  void give_first_values() {
    for (const auto p : store->parameters())
      for (auto& x : store->values(p, 0)) x = 10;
    const auto& chunks = store->cut().chunks;
    for (const auto id : chunks.ids())
      tell(graph->receiver_of(chunks[id].parameter), chunk_landed{id, version_id{0}});
  }
  [[nodiscard]] std::vector<float> current(parameter_id p) const {
    const auto values = store->current(p);
    return {values.begin(), values.end()};
  }
};

}  // namespace

TEST_CASE("parameter_graph: a list of parameters is enough to exchange gradients, without a net") {
  exchange_of_two_layers t(false);
  REQUIRE(t.fresh.got->size() == 2);  // the first values
  const pass_id pass{};
  t.graph->contribution(0)(pass);
  t.tell(t.graph->exchange(0), backward_done{replica_id{0}, pass});
  REQUIRE(t.fresh.got->size() == 3);
  CHECK(t.fresh.got->back().version == version_id{1});
  CHECK(t.current(embed_weights) == std::vector<float>{9.5f, 9, 8.5f});
  CHECK(t.current(embed_bias) == std::vector<float>{10});  // frozen
  CHECK(t.store->version(head_weights) == 0);              // no gradient of that group has come

  t.graph->contribution(1)(pass);
  t.tell(t.graph->exchange(1), backward_done{replica_id{0}, pass});
  CHECK(t.current(head_weights) == std::vector<float>{6, 4});  // lr_mult is 2
  CHECK(t.solver.got->size() == 4);
}

TEST_CASE("parameter_graph: a group on the factor route reconstructs its gradient from factors") {
  exchange_of_two_layers t(true);
  CHECK_FALSE(t.graph->on_factors(0));
  REQUIRE(t.graph->on_factors(1));
  const auto place = t.graph->factors().at(layer_id{1})->pass(clock_id{0}, worker_id{0}, 0);
  place.u[0] = 2;
  place.v[0] = 1;
  place.v[1] = 3;
  t.tell(t.graph->exchange(1), backward_done{replica_id{0}, pass_id{}});
  CHECK(t.current(head_weights) == std::vector<float>{8, 4});
}

TEST_CASE("parameter_graph: its checkpointer writes snapshots by the functions that it is given") {
  exchange_of_two_layers t(false);
  auto written = t.sim.listen<snapshot_written>();
  write_snapshot order;
  order.with_state = false;
  order.written = written.in;
  t.tell(port<write_snapshot>(t.graph->checkpoints()), order);
  REQUIRE(written.got->size() == 1);
  CHECK(written.got->front().error.empty());
  REQUIRE(t.snapshots.size() == 1);
  CHECK(t.snapshots.front() == parameter_arrays{{10, 10, 10}, {10}, {10, 10}});
}
