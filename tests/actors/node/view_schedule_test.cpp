// Views that are known before the run begins (--views), where members may be lost.
#include "tests/actors/node/resumed_run.hpp"

#include <cstdint>
#include <random>
#include <vector>

using namespace poseidon;
using test::chained, test::node_rig;

TEST_CASE("node: who has left waits for the goodbye of the leader, whoever else says one") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    node_rig t;
    t.clocks = 12;
    t.survive = 1;
    t.views = {{3, 3}, {6, 2}, {9, 1}};
    t.cluster(4);
    t.go_on_anyhow(random);
    CAPTURE(t.ends());
    for (const auto& n : t.nodes) {
      CHECK(n->error() == "");
      CHECK(n->exit_code() == 0);
    }
    const auto& views = t.nodes[0]->display->views;
    REQUIRE(views.size() == 4);
    CHECK(t.weights(t.clocks) == chained(t, views));
  }
}

TEST_CASE("node: the views that --views asks for still come where a member is lost before them") {
  for (const std::uint64_t lost_after : {1, 2, 3, 5}) {
    CAPTURE(lost_after);
    node_rig t;
    t.clocks = 20;
    t.survive = 1;
    t.views = {{8, 2}, {12, 3}};
    t.cluster(4);
    REQUIRE(t.until_clock(lost_after));
    t.kill(2);
    t.joiner("x");
    std::mt19937 random(1);
    t.go_on_anyhow(random);
    CAPTURE(t.ends());
    std::vector<std::size_t> members;
    std::vector<std::uint64_t> first;
    for (const auto& v : t.nodes[0]->display->views) {
      members.push_back(v.seats.size());
      first.push_back(v.first_clock);
    }
    CHECK(members == std::vector<std::size_t>{4, 3, 2, 3});
    REQUIRE(first.size() == 4);
    CHECK(first[1] < 8);
    CHECK(first[2] == 8);
    CHECK(first[3] == 12);
    CHECK(t.nodes[0]->error() == "");
    CHECK(t.nodes.back()->exit_code() == 0);
  }
}
