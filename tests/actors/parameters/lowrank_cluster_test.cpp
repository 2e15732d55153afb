// Layers by low rank on a simulated cluster, whose links hold frames back in orders that a seed draws: all nodes have the same bits, in
// whatever order.
#include "tests/actors/sim_cluster.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace poseidon;
using test::sim_cluster;
using test::sim_options;

namespace {

constexpr std::uint64_t lowrank_clocks = 8;

/// Convolution with a bias, an inner product without one and a transposed one by low rank; one layer on the server.
constexpr const char* lowrank_net = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 4 dim: 8 dim: 5 dim: 5 } shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
    convolution_param { num_output: 24 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "conv" top: "tanh" }
  layer { name: "ip1" type: "InnerProduct" bottom: "tanh" top: "ip1"
    inner_product_param { num_output: 40 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" param { lr_mult: 1 } param { lr_mult: 0 }
    inner_product_param { num_output: 30 transpose: true weight_filler { type: "xavier" } } }
  layer { name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip3" bottom: "y" top: "loss" }
)";

sim_options lowrank_on(std::size_t workers, unsigned seed, const std::string& more = "") {
  sim_options o;
  o.solver =
      "base_lr: 0.01 lr_policy: 'fixed' momentum: 0.5 weight_decay: 0.001 snapshot_after_train: "
      "false max_iter: " +
      std::to_string(lowrank_clocks) + " " + more;
  o.net = lowrank_net;
  o.workers = workers;
  o.seed = seed;
  o.by_lowrank = {"conv", "ip1", "ip2"};
  return o;
}

/// What all nodes have at the end.
parameter_arrays trained_by_lowrank(const sim_options& o) {
  const sim_cluster c(o);
  CHECK(c.faults() == std::vector<std::string>{});
  REQUIRE(c.done().size() == o.workers);
  for (std::size_t w = 1; w < o.workers; ++w) {
    CAPTURE(w);
    CHECK(c.parameters(w, lowrank_clocks) == c.parameters(0, lowrank_clocks));
  }
  return c.parameters(0, lowrank_clocks);
}

}  // namespace

TEST_CASE("lowrank: in whatever order events come, all nodes end with the same bits") {
  for (const std::size_t workers : {2, 3}) {
    const auto right = trained_by_lowrank(lowrank_on(workers, 1));
    for (unsigned seed = 2; seed <= 12; ++seed) {
      CAPTURE(seed);
      CHECK(trained_by_lowrank(lowrank_on(workers, seed)) == right);
    }
  }
}

TEST_CASE(
    "lowrank: replicas and micro-batches of a node are one gradient, in any order of events") {
  auto o = lowrank_on(2, 1, "iter_size: 2 ");
  o.replicas = 2;
  const auto right = trained_by_lowrank(o);
  for (o.seed = 2; o.seed <= 8; ++o.seed) CHECK(trained_by_lowrank(o) == right);
}

TEST_CASE(
    "lowrank: with staleness, and with a solver of two arrays, all nodes have the same bits") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    (void)trained_by_lowrank(lowrank_on(3, seed, "poseidon { staleness: 2 } "));
    (void)trained_by_lowrank(lowrank_on(2, seed, "type: 'Adam' momentum2: 0.999 "));
  }
}

TEST_CASE("lowrank: fewer bytes travel than on the server, and the result is near that one") {
  const sim_cluster by_lowrank(lowrank_on(2, 1));
  auto o = lowrank_on(2, 1);
  o.by_lowrank.clear();
  const sim_cluster by_server(o);
  CHECK(2 * by_lowrank.bytes_sent() < by_server.bytes_sent());
  const auto a = by_lowrank.parameters(0, lowrank_clocks),
             b = by_server.parameters(0, lowrank_clocks);
  const auto first = by_server.first_values();
  double apart = 0, moved = 0;
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].size(); ++i) {
      apart += (a[p][i] - b[p][i]) * (a[p][i] - b[p][i]);
      moved += (first[p][i] - b[p][i]) * (first[p][i] - b[p][i]);
    }
  CHECK(apart > 0);
  CHECK(apart < 0.5 * moved);
}
