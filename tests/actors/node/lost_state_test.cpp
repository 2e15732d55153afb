// --lost-state: more nodes are lost at the same time than the run survives, and solver state with them.
#include "tests/actors/node/resumed_run.hpp"

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace poseidon;
using test::node_rig, test::train_without_a_change;

namespace {

constexpr std::uint64_t all_clocks = 30;
/// Of the rig's net: weights and bias of ip1, and of ip2.
constexpr int arrays = 4;

/// Kills these in iteration 6, all at the same time, and runs to the end.
void lose_at_once(node_rig& t, std::size_t members, const std::set<std::size_t>& lost) {
  t.clocks = all_clocks;
  t.survive = 1;
  t.cluster(members);
  REQUIRE(t.until_clock(6));
  for (const auto n : lost) t.kill(n);
  std::mt19937 random(1);
  t.go_on_anyhow(random);
}

/// What `members` nodes train up to `change`, and `after` nodes from there on, without the momentum of some arrays.
std::string resumed_without(std::size_t members, std::size_t after, std::uint64_t change,
                            unsigned gone) {
  node_rig first, second;
  train_without_a_change(first, members, change);
  ::caffe::SolverState state;
  std::ifstream in(first.state(change), std::ios::binary);
  REQUIRE(state.ParseFromIstream(&in));
  REQUIRE(state.history_size() == arrays);
  for (int i = 0; i < arrays; ++i)
    if ((gone >> i & 1U) != 0)
      for (auto& v : *state.mutable_history(i)->mutable_data()) v = 0;
  const auto path = first.folder / ("zeroed_iter_" + std::to_string(change) + ".solverstate");
  std::ofstream out(path, std::ios::binary);
  REQUIRE(state.SerializeToOstream(&out));
  out.close();
  train_without_a_change(second, after, all_clocks, path);
  return second.weights(all_clocks);
}

}  // namespace

TEST_CASE("node: with --lost-state zero the others go on, and the state that is gone is zero") {
  const std::vector<std::pair<std::size_t, std::set<std::size_t>>> losses{
      {3, {1, 2}}, {4, {1, 2}}, {4, {0, 1}}, {4, {0, 3}}};
  for (const auto& [members, lost] : losses) {
    node_rig t;
    t.zeroes_lost_state = true;
    lose_at_once(t, members, lost);
    CAPTURE(t.ends());
    std::size_t first = 0;
    while (lost.contains(first)) ++first;
    for (std::size_t n = 0; n < members; ++n) {
      if (lost.contains(n)) continue;
      CHECK(t.nodes[n]->error() == "");
      CHECK(t.nodes[n]->exit_code() == 0);
      CHECK(t.nodes[n]->display->said(" begins with zeros in iteration "));
    }
    const auto& said = *t.nodes[first]->display;
    CHECK(said.said("results: not those of one node with the same samples"));
    const auto& views = said.views;
    REQUIRE(views.size() == 2);
    CHECK(views[1].changed.find("begins with zeros") != std::string::npos);
    // Which arrays those are depends on how the net was cut: one choice fits, to the bit, and the layers are those that were named.
    const auto weights = t.weights(all_clocks);
    unsigned fits = 0;
    for (unsigned gone = 0; gone < 1U << arrays; ++gone)
      if (resumed_without(members, members - lost.size(), views[1].first_clock, gone) == weights)
        fits = gone;
    CHECK(fits != 0);
    CHECK(fits != (1U << arrays) - 1);
    CHECK(said.said("state of ip1") == ((fits & 3U) != 0));
    CHECK((said.said("state of ip2") || said.said(" ip2 begins")) == ((fits & 12U) != 0));
  }
}

TEST_CASE("node: without it they keep the weights and end, and say what would have gone on") {
  node_rig t;
  lose_at_once(t, 4, {1, 2});
  for (const std::size_t n : {0, 3}) {
    CAPTURE(t.nodes[n]->error());
    CHECK(t.nodes[n]->exit_code() == 3);
    CHECK(t.nodes[n]->error().find("solver state is gone with the nodes that were lost") == 0);
    CHECK(t.nodes[n]->error().find("--lost-state zero") != std::string::npos);
  }
  CHECK(t.nodes[0]->display->snapshots.size() == 1);
}

TEST_CASE("node: a node that joins later hears that state has begun with zeros") {
  node_rig t;
  t.zeroes_lost_state = true;
  t.clocks = all_clocks;
  t.survive = 1;
  t.views = {{20, 3}};
  t.cluster(4);
  REQUIRE(t.until_clock(6));
  for (const std::size_t n : {1, 2}) t.kill(n);
  const auto& newcomer = t.joiner("x");
  std::mt19937 random(1);
  t.go_on_anyhow(random);
  CAPTURE(t.ends());
  CHECK(newcomer.exit_code() == 0);
  CHECK(newcomer.display->said("results: not those of one node with the same samples"));
}
