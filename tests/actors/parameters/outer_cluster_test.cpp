// Outer steps on a simulated cluster: whatever the order of events, all nodes have the same parameters after each outer step, and
// those of every other order.
#include "tests/actors/sim_cluster.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace poseidon;
using test::sim_cluster;
using test::sim_options;

namespace {

constexpr std::uint64_t clocks = 4, every = 3;

/// Weights that two layers share, a running statistic, a layer that does not learn, and a side branch with a loss of its own.
constexpr const char* net_of_all_kinds = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
    inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "ip1" top: "norm" }
  layer { name: "side" type: "InnerProduct" bottom: "norm" top: "side"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "side_loss" type: "EuclideanLoss" bottom: "side" bottom: "y" top: "side_loss" loss_weight: 0.3 }
  layer { name: "left" type: "InnerProduct" bottom: "norm" top: "left" param { name: "w" } param { name: "b" }
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "norm" top: "tanh" }
  layer { name: "right" type: "InnerProduct" bottom: "tanh" top: "right" param { name: "w" } param { name: "b" }
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "fixed" type: "InnerProduct" bottom: "right" top: "fixed" param { lr_mult: 0 } param { lr_mult: 0 }
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "fixed" top: "sum" }
  layer { name: "ip2" type: "InnerProduct" bottom: "sum" top: "ip2"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "y" top: "loss" }
)";

sim_options on(std::size_t workers, unsigned seed, const std::string& more = "",
               const std::string& ours = "") {
  sim_options o;
  o.solver =
      "base_lr: 0.02 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.001 snapshot_after_train: "
      "false max_iter: " +
      std::to_string(clocks * every) + " poseidon { outer_steps: " + std::to_string(every) + " " +
      ours + " } " + more;
  o.net = net_of_all_kinds;
  o.workers = workers;
  o.seed = seed;
  return o;
}

void check_end(const sim_cluster& c) {
  CHECK(c.faults() == std::vector<std::string>{});
  REQUIRE(c.done().size() == c.workers());
  for (const auto& d : c.done()) CHECK(d.version == version_id{clocks});
  for (std::size_t w = 1; w < c.workers(); ++w)
    CHECK(c.parameters(w, clocks) == c.parameters(0, clocks));
}

/// The largest difference of two values.
double distance(const parameter_arrays& a, const parameter_arrays& b) {
  double most = 0;
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].size(); ++i)
      most = std::max(most, std::abs(double{a[p][i]} - b[p][i]));
  return most;
}

}  // namespace

TEST_CASE("outer steps: in every order of events all nodes have the same bits after each of them") {
  for (const std::string more : {"", "iter_size: 2 type: 'Adam' momentum2: 0.99"})
    for (const std::size_t workers : {2u, 3u}) {
      CAPTURE(more);
      CAPTURE(workers);
      const sim_cluster one(on(workers, 1, more, "outer_rate: 0.7 outer_momentum: 0.5"));
      check_end(one);
      CHECK(distance(one.parameters(0, clocks), one.first_values()) > 1e-3);
      for (unsigned seed = 2; seed <= 6; ++seed) {
        CAPTURE(seed);
        auto o = on(workers, seed, more, "outer_rate: 0.7 outer_momentum: 0.5");
        o.survive = seed % 2;
        const sim_cluster other(o);
        check_end(other);
        CHECK(other.parameters(0, clocks) == one.parameters(0, clocks));
      }
    }
}

TEST_CASE("outer steps: several replicas of a node make its updates together") {
  const auto with_replicas = [](unsigned seed) {
    auto o = on(2, seed, "iter_size: 2");
    o.replicas = 2;
    return o;
  };
  const sim_cluster one(with_replicas(1));
  check_end(one);
  for (unsigned seed = 2; seed <= 6; ++seed) {
    const sim_cluster other(with_replicas(seed));
    check_end(other);
    CHECK(other.parameters(0, clocks) == one.parameters(0, clocks));
  }
}

TEST_CASE("outer steps: one node with rate 1 and without momentum trains what its iterations do") {
  const sim_cluster outer(on(1, 1));
  check_end(outer);
  auto o = on(1, 1);
  o.solver.replace(o.solver.find("poseidon"), std::string::npos, "");
  const sim_cluster plain(o);
  const auto steps = clocks * every;
  CHECK(distance(outer.parameters(0, clocks), plain.parameters(0, steps)) < 1e-5);
}

TEST_CASE("outer steps: an outer step of each iteration is nearly what gradients' means train") {
  const auto solver = [](const std::string& ours) {
    return "base_lr: 0.02 lr_policy: 'fixed' snapshot_after_train: false max_iter: 12 " + ours;
  };
  auto o = on(3, 1);
  o.solver = solver("poseidon { outer_steps: 1 }");
  const sim_cluster outer(o);
  o.solver = solver("");
  const sim_cluster plain(o);
  CHECK(outer.faults() == std::vector<std::string>{});
  // Running statistics are a mean of each node's, and not the sum over all passes: they are left out.
  auto a = outer.parameters(0, 12), b = plain.parameters(0, 12);
  CHECK(a.size() == b.size());
  CHECK(distance({a.front(), a.back()}, {b.front(), b.back()}) < 1e-4);
  CHECK(distance({a.front(), a.back()},
                 {outer.first_values().front(), outer.first_values().back()}) > 1e-3);
}
