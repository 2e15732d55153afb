// Copies of solver state on a simulated cluster, whose links hold frames back in orders that a seed draws: what is trained does not
// change, every copy has the owner's bits, and no byte more travels.
#include "models/plan/keepers.hpp"
#include "tests/actors/sim_cluster.hpp"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace poseidon;
using test::sim_cluster;
using test::sim_options;

namespace {

/// Layers in one chunk and in several, a running statistic, and one that does not learn.
constexpr const char* net_with_all_kinds = R"(
  layer { name: "data" type: "DummyData" top: "x" top: "y"
    dummy_data_param { shape { dim: 4 dim: 64 } shape { dim: 4 dim: 3 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "uniform" } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
    inner_product_param { num_output: 300 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "ip1" top: "norm" }
  layer { name: "fixed" type: "InnerProduct" bottom: "norm" top: "fixed" param { lr_mult: 0 } param { lr_mult: 0 }
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "ip2" type: "InnerProduct" bottom: "fixed" top: "ip2"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "y" top: "loss" }
)";

const std::string sgd_of_survivors = "type: 'SGD' momentum: 0.9 ";
const std::string adam_of_survivors = "type: 'Adam' momentum: 0.9 momentum2: 0.999 ";

/// A cluster that trains `end` clocks.
struct run_that_survives {
  std::size_t workers = 2;
  std::uint32_t survive = 1;
  unsigned seed = 1;
  std::string more = sgd_of_survivors;
  std::uint64_t end = 8;
  std::vector<std::string> by_factors = {};
  bool by_magnitude = false;

  [[nodiscard]] sim_options options() const {
    sim_options o;
    o.solver =
        "base_lr: 0.02 lr_policy: 'inv' gamma: 0.1 power: 0.75 weight_decay: 0.001 "
        "snapshot_after_train: false max_iter: " +
        std::to_string(end) + " " + more;
    o.net = net_with_all_kinds;
    o.workers = workers;
    o.survive = survive;
    o.seed = seed;
    o.by_factors = by_factors;
    o.has_budget = by_magnitude;
    return o;
  }
  void check_end(const sim_cluster& c) const {
    CHECK(c.faults() == std::vector<std::string>{});
    REQUIRE(c.done().size() == workers);
    for (std::size_t w = 1; w < workers; ++w) CHECK(c.parameters(w, end) == c.parameters(0, end));
  }
};

using state_of_chunk = std::vector<std::vector<float>>;

/// Every chunk's solver state is where it is to be, with the same bits. Returns  it. Once for each cluster.
std::map<chunk_id, state_of_chunk> check_copies(sim_cluster& c,
                                                std::optional<version_id> version = {}) {
  std::map<chunk_id, state_of_chunk> out;
  std::map<chunk_id, std::size_t> found;
  std::vector<std::pair<chunk_id, state_of_chunk>> copies;
  for (std::size_t w = 0; w < c.workers(); ++w)
    for (const auto& m : c.release(w, version)) {
      for (const auto& [owner, of] : m.copies)
        for (const auto& [id, state] : *of) {
          CHECK(owner == c.cut().chunks[id].owner);
          CHECK(is_keeper(c.cut(), id, as_id<worker_id>(w)));
          copies.emplace_back(id, state);
        }
      if (m.history == nullptr) continue;
      for (const auto& [id, state] : *m.history) {
        CHECK(out.try_emplace(id, state).first->second == state);
        ++found[id];
      }
    }
  for (const auto& [id, state] : copies) {
    CHECK(out.at(id) == state);
    ++found[id];
  }
  for (const auto id : c.cut().chunks.ids()) {
    CAPTURE(value(id));
    const auto& chunk = c.cut().chunks[id];
    CHECK(found[id] == (chunk.owner == every_worker ? c.workers() : 1 + chunk.keepers));
  }
  return out;
}

}  // namespace

TEST_CASE("survive: copies change no bit of what is trained, and are those of the owners") {
  for (const auto& rule : {sgd_of_survivors, adam_of_survivors})
    for (const std::size_t workers : {2u, 3u, 4u}) {
      const auto micro_batches = "iter_size: " + std::to_string(workers);
      const sim_cluster one(run_that_survives{1, 0, 1, rule + micro_batches}.options());
      for (const std::uint32_t survive : {1u, 2u}) {
        CAPTURE(rule);
        CAPTURE(workers);
        CAPTURE(survive);
        const run_that_survives r{workers, survive, static_cast<unsigned>(9 * workers + survive),
                                  rule};
        sim_cluster c(r.options());
        r.check_end(c);
        CHECK(c.parameters(0, r.end) == one.parameters(0, r.end));
        CHECK(check_copies(c).size() == c.cut().chunks.size());
      }
    }
}

TEST_CASE(
    "survive: owners and keepers have the state of the version before, as if it were the end") {
  for (const auto& rule : {sgd_of_survivors, adam_of_survivors})
    for (const std::vector<std::string>& by_factors : {std::vector<std::string>{}, {"ip1"}}) {
      CAPTURE(rule);
      CAPTURE(by_factors.size());
      run_that_survives r{3, 1, 5, rule};
      r.by_factors = by_factors;
      sim_cluster c(r.options());
      r.check_end(c);
      r.end = 7;
      sim_cluster stopped(r.options());
      CHECK(check_copies(c, version_id{7}) == check_copies(stopped));
    }
}

TEST_CASE("survive: with staleness, the states of as many versions more are there") {
  for (const bool by_magnitude : {false, true})
    for (std::uint64_t back = 0; back <= 3; ++back) {
      CAPTURE(back);
      run_that_survives r{3, 2, static_cast<unsigned>(back + 1),
                          "momentum: 0.5 poseidon { staleness: 2 }"};
      r.by_magnitude = by_magnitude;
      sim_cluster c(r.options());
      r.check_end(c);
      check_copies(c, version_id{r.end - back});
    }
}

TEST_CASE("survive: clipped gradients have the same factor on owners and keepers") {
  const run_that_survives one{1, 0, 1, "clip_gradients: 0.5 iter_size: 3"};
  const sim_cluster expected(one.options());
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    const run_that_survives r{3, 1, seed, "clip_gradients: 0.5"};
    sim_cluster c(r.options());
    r.check_end(c);
    CHECK(c.parameters(0, r.end) == expected.parameters(0, r.end));
    check_copies(c);
  }
}

TEST_CASE("survive: copies cost no bytes but the numbers of a step") {
  for (const std::size_t workers : {2u, 3u}) {
    CAPTURE(workers);
    const sim_cluster without(run_that_survives{workers, 0}.options());
    for (const std::uint32_t survive : {1u, 2u}) {
      const sim_cluster with(run_that_survives{workers, survive}.options());
      CAPTURE(without.bytes_sent());
      CAPTURE(with.bytes_sent());
      CHECK(with.bytes_sent() >= without.bytes_sent());
      CHECK(with.bytes_sent() - without.bytes_sent() <= without.bytes_sent() / 200);
    }
  }
}
