// The first node is killed while routes change at each iteration, in whatever order nodes get their turns. POSEIDON_LOSSES: in how many
// orders, from the seed POSEIDON_LOSSES_SEED on.
#include "tests/actors/node/node_rig.hpp"
#include "tests/number_asked.hpp"

#include <random>

using namespace poseidon;
using test::node_rig;

namespace {

/// The first node knows the routes of each iteration, and tells them one view ahead. Who leads after it goes on with those that hold.
void lose_the_first_as_routes_change(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  node_rig t;
  t.survive = 1;
  t.clocks = 30;
  t.routes = {route_option::kind::listed, "test", {}};
  for (std::uint64_t clock = 1; clock < t.clocks; ++clock)
    t.routes.entries.push_back(
        {"ip1", clock % 2 == 0 ? route::parameter_server : route::factor_broadcast, clock, 0});
  t.cluster(3);
  REQUIRE(t.until_clock(2));
  t.some_turns(random, 2000);
  t.kill(0);
  t.go_on_anyhow(random);
  const auto ends = t.ends();
  CAPTURE(ends);
  for (const std::size_t n : {1, 2}) {
    CAPTURE(n);
    REQUIRE(t.nodes[n]->result);
    CHECK(t.nodes[n]->error() == "");
    CHECK(t.nodes[n]->exit_code() == 0);
  }
}

}  // namespace

TEST_CASE("node: the first node is killed while routes change at each iteration, in any order") {
  const auto seeds = test::number_asked("POSEIDON_LOSSES", 60);
  const auto first = test::number_asked("POSEIDON_LOSSES_SEED", 1);
  for (auto seed = first; seed < first + seeds; ++seed)
    lose_the_first_as_routes_change(static_cast<std::uint32_t>(seed));
}
