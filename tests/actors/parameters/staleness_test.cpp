// Bounded staleness on a simulated cluster: links that hold frames back for as long as they like, in orders that a
// seed draws. Nothing here waits or sleeps, and the same seed is the same order.
#include "tests/actors/sim_cluster.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace poseidon;
using test::sim_cluster;
using test::sim_options;

namespace {

constexpr std::uint64_t clocks = 12;

/// Two branches with one set of weights, one layer that does not learn, a running statistic.
constexpr const char* net_text = R"(
  name: "branches"
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
    inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "ip1" top: "norm" }
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

std::string solver_text(unsigned staleness, const std::string& more = "") {
  return "base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.001 snapshot_after_train: "
         "false max_iter: " +
         std::to_string(clocks) + " poseidon { staleness: " + std::to_string(staleness) + " } " +
         more;
}

sim_options on(std::size_t workers, unsigned staleness, unsigned seed,
               const std::string& more = "") {
  sim_options o;
  o.solver = solver_text(staleness, more);
  o.net = net_text;
  o.workers = workers;
  o.seed = seed;
  return o;
}

/// The most clocks that a forward kernel of training was behind.
std::uint64_t check_reads(const sim_cluster& c, unsigned staleness) {
  std::uint64_t behind = 0;
  for (std::size_t w = 0; w < c.workers(); ++w) {
    CHECK(c.seen(w).wrong == std::vector<std::string>{});
    CHECK(c.seen(w).backward > 0);
    for (const auto& s : c.seen(w).forward) {
      if (!s.updated) continue;
      CAPTURE(w);
      CAPTURE(s.layer);
      CAPTURE(s.clock);
      REQUIRE(s.version <= s.clock);
      REQUIRE(s.clock - s.version <= (s.training ? staleness : 0));
      behind = std::max(behind, s.clock - s.version);
    }
  }
  return behind;
}

/// Everybody has trained every clock, and all have the same values.
void check_end(const sim_cluster& c) {
  CHECK(c.faults() == std::vector<std::string>{});
  REQUIRE(c.done().size() == c.workers());
  for (const auto& d : c.done()) CHECK(d.version == version_id{clocks});
  for (std::size_t w = 1; w < c.workers(); ++w)
    CHECK(c.parameters(w, clocks) == c.parameters(0, clocks));
}

}  // namespace

TEST_CASE(
    "staleness: whatever is late, no kernel reads a version older than allowed, backward reads "
    "what "
    "forward did, no frame changes while it waits, and all updates are in at the end") {
  for (const unsigned staleness : {0u, 1u, 3u}) {
    std::uint64_t most = 0;
    for (unsigned seed = 1; seed <= 12; ++seed) {
      CAPTURE(staleness);
      CAPTURE(seed);
      const sim_cluster c(on(2 + seed % 2, staleness, seed));
      most = std::max(most, check_reads(c, staleness));
      check_end(c);
    }
    CHECK(most == staleness);  // it is used up to the bound: the checks above are not idle
  }
}

TEST_CASE("staleness: 0 trains what one worker trains, to the bit, in every order of events") {
  const sim_cluster one(on(1, 0, 1, "iter_size: 3"));
  check_end(one);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const sim_cluster three(on(3, 0, seed));
    check_end(three);
    CHECK(three.parameters(0, clocks) == one.parameters(0, clocks));
  }
  const sim_cluster alone(on(1, 3, 1, "iter_size: 3"));  // waits for no other worker
  check_end(alone);
  CHECK(alone.parameters(0, clocks) == one.parameters(0, clocks));
}

TEST_CASE("staleness: every gradient counts once, whatever the version that it was computed with") {
  // At a small rate what gradients of slightly different values differ by is a small part of a small step; one of
  // the 72 gradients more or less would be a seventieth.
  const auto small = [](unsigned staleness, unsigned seed) {
    auto o = on(3, staleness, seed);
    o.replicas = 2;
    o.solver = "base_lr: 1e-4 lr_policy: 'fixed' snapshot_after_train: false max_iter: " +
               std::to_string(clocks) + " poseidon { staleness: " + std::to_string(staleness) +
               " }";
    return o;
  };
  const sim_cluster exact(small(0, 1));
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const sim_cluster stale(small(3, seed));
    check_end(stale);
    const auto first = exact.first_values();
    const auto a = exact.parameters(0, clocks), b = stale.parameters(0, clocks);
    double moved = 0, apart = 0;
    for (std::size_t p = 0; p < a.size(); ++p)
      for (std::size_t i = 0; i < a[p].size(); ++i) {
        moved += std::abs(double{a[p][i]} - first[p][i]);
        apart += std::abs(double{a[p][i]} - b[p][i]);
      }
    CHECK(moved > 0);
    CHECK(apart < 0.005 * moved);
  }
}

TEST_CASE("staleness: replicas and micro-batches share gradient memory, and none is overwritten") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    auto o = on(2, 2, seed, seed % 2 == 0 ? "iter_size: 2" : "");
    o.replicas = 2;
    CAPTURE(seed);
    const sim_cluster c(o);
    check_reads(c, 2);
    check_end(c);
  }
}

TEST_CASE("staleness: clip_gradients waits for the norm of each clock") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const sim_cluster c(on(3, 2, seed, "clip_gradients: 0.5"));
    check_reads(c, 2);
    check_end(c);
  }
}

TEST_CASE("staleness: factors are bounded like gradients") {
  for (const unsigned staleness : {0u, 1u, 3u}) {
    std::uint64_t most = 0;
    for (unsigned seed = 1; seed <= 8; ++seed) {
      CAPTURE(staleness);
      CAPTURE(seed);
      auto o = on(2 + seed % 2, staleness, seed);
      o.replicas = 1 + seed % 2;
      o.by_factors = {"ip1", "ip2"};
      const sim_cluster c(o);
      most = std::max(most, check_reads(c, staleness));
      check_end(c);
    }
    CHECK(most == staleness);
  }
}

TEST_CASE("staleness: more gradients than a node would keep are refused before anything is taken") {
  auto o = on(2, 100, 1);
  o.net = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "y"
      dummy_data_param { shape { dim: 1 dim: 4096 } shape { dim: 1 dim: 9216 } } }
    layer { name: "fc" type: "InnerProduct" bottom: "x" top: "fc" inner_product_param { num_output: 9216 } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "fc" bottom: "y" top: "loss" }
  )";
  CHECK_THROWS_WITH(
      sim_cluster{o},
      "staleness 100: on each link gradients of 7273 MiB could wait for those of other "
      "nodes, and a node keeps 4096 MiB at most. For this net on 2 nodes the staleness "
      "can be 55.");
}

TEST_CASE("staleness: chunks that go by magnitude arrive in order all the same, on both routes") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    auto o = on(3, 2, seed, seed % 3 == 0 ? "iter_size: 2" : "");
    o.has_budget = true;
    if (seed % 2 == 0) o.by_factors = {"ip1"};
    const sim_cluster c(o);
    check_reads(c, 2);
    check_end(c);
  }
}

TEST_CASE("staleness: a test phase reads the version of its clock, and nothing newer or older") {
  const std::string tests = "test_iter: 3 test_interval: 4";
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const sim_cluster c(on(3, 3, seed, tests));
    check_reads(c, 3);
    check_end(c);
    std::size_t tested = 0;
    for (const auto& s : c.seen(0).forward) tested += s.training ? 0 : 1;
    CHECK(tested > 0);
  }
}
