// --global-batch keep: nodes join and leave, and an iteration keeps its samples. What is trained is compared with a run of one
// node, which accumulates the same samples.
#include "tests/actors/node/resumed_run.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace poseidon;
using test::node_rig, test::train_without_a_change;

namespace {

constexpr std::uint64_t samples_of_net = 4;  // of node_test_net

std::vector<double> trained_values(const node_rig& t, std::uint64_t clock) {
  std::vector<double> out;
  const auto path = t.folder / ("s_iter_" + std::to_string(clock) + ".caffemodel");
  const auto model = read_caffemodel(path);
  for (const auto& layer : model.layer())
    for (const auto& blob : layer.blobs())
      out.insert(out.end(), blob.data().begin(), blob.data().end());
  return out;
}

/// The distance of two models, as part of the length of the first one.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE(!a.empty());
  double distance = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    length += a[i] * a[i];
  }
  return std::sqrt(distance / length);
}

/// A run of `nodes` nodes, and of as many joiners as its views need.
void train_in_views(node_rig& t, std::size_t nodes, std::size_t most, view_schedule views) {
  t.clocks = 30;
  t.views = std::move(views);
  t.cluster(nodes);
  for (auto n = nodes; n < most; ++n) t.joiner(std::string(1, static_cast<char>('a' + n)));
  t.sim.settle();
  for (const auto& n : t.nodes) {
    CHECK(n->error() == "");
    CHECK(n->exit_code() == 0);
  }
}

void copy_wishes(const node_rig& from, node_rig& to) {
  to.more_solver = from.more_solver;
  to.routes = from.routes;
  to.net = from.net;
}

}  // namespace

TEST_CASE(
    "global_batch: 1, 2, 3 and 2 members that keep it train what one node trains, and the same "
    "bits "
    "again") {
  const view_schedule views{{5, 2}, {11, 3}, {20, 2}};
  node_rig t, again, one, scaled;
  std::uint64_t samples = samples_of_net;
  SUBCASE("all on the server") {}
  SUBCASE("a layer on factors") {
    t.routes = {route_option::kind::listed, "test", {{"ip1", route::factor_broadcast, 0, 0}}};
  }
  SUBCASE("with clipped gradients") {
    t.more_solver = "clip_gradients: 0.01";
  }
  SUBCASE("two arrays of solver state for each value") {
    t.more_solver = "type: 'Adam' momentum2: 0.99";
  }
  SUBCASE("micro-batches") {
    t.more_solver = "iter_size: 3";
    samples = 3 * samples_of_net;
  }
  copy_wishes(t, again);
  copy_wishes(t, one);
  copy_wishes(t, scaled);
  t.global_batch = again.global_batch = batch_rule::keep;
  train_in_views(t, 1, 3, views);
  train_in_views(again, 1, 3, views);
  train_in_views(scaled, 1, 3, views);
  train_without_a_change(one, 1, 30);
  CHECK(t.weights(30) == again.weights(30));
  CHECK(apart(trained_values(one, 30), trained_values(t, 30)) < 1e-6);
  CHECK(apart(trained_values(one, 30), trained_values(scaled, 30)) > 1e-4);
  const auto& seen = t.nodes[0]->display->views;
  REQUIRE(seen.size() == 4);
  for (const auto& v : seen) {
    CHECK(v.samples == samples);
    CHECK(v.first_sample == v.first_clock * samples);
  }
  CHECK(t.nodes[0]->display->said("; 3 nodes train from iteration 11 on, " +
                                  std::to_string(samples) + " samples an iteration, after"));
  CHECK(t.nodes[0]->display->said("batch: " + std::to_string(samples) +
                                  " samples an iteration, however many nodes take part"));
  for (const auto& v : scaled.nodes[0]->display->views) CHECK(v.samples == 0);
}

TEST_CASE("global_batch: what 3 members begin, 2 and 1 go on with, in more passes") {
  node_rig t, one;
  t.global_batch = batch_rule::keep;
  SUBCASE("a batch of several samples") {}
  SUBCASE("a batch of one sample") {
    for (auto at = t.net.find("dim: 4 dim"); at != std::string::npos; at = t.net.find("dim: 4 dim"))
      t.net.replace(at, 10, "dim: 1 dim");
  }
  copy_wishes(t, one);
  one.more_solver += " iter_size: 3";
  train_in_views(t, 3, 5, {{4, 2}, {9, 1}, {14, 2}, {20, 3}});  // two leave, and two others come
  train_without_a_change(one, 1, 30);
  CHECK(apart(trained_values(one, 30), trained_values(t, 30)) < 1e-6);
}

TEST_CASE("global_batch: a resumed run goes on with the samples of the first one") {
  node_rig first, second, one;
  first.global_batch = batch_rule::keep;
  train_without_a_change(first, 3, 10);
  second.resume = first.state(10);
  SUBCASE("kept, on another number of nodes") {
    second.global_batch = batch_rule::keep;
    second.clocks = 30;
    second.cluster(2);
    second.sim.settle();
    for (const auto& n : second.nodes) CHECK(n->error() == "");
    one.more_solver = "iter_size: 3";
    train_without_a_change(one, 1, 30);
    CHECK(apart(trained_values(one, 30), trained_values(second, 30)) < 1e-6);
    CHECK(second.nodes[0]->display->said("this node's share 6 of 12 (50 %), in 2 passes"));
  }
  SUBCASE("scaled, which is said") {
    train_without_a_change(second, 2, 20, first.state(10));
    CHECK(second.nodes[0]->display->said("the run of this snapshot kept 12 samples an iteration"));
    CHECK(second.nodes[0]->display->said("and this one has 8."));
  }
}

TEST_CASE("global_batch: more nodes than samples are refused, and the run goes on without them") {
  node_rig t;
  t.global_batch = batch_rule::keep;
  t.clocks = 200;
  for (auto at = t.net.find("dim: 4 dim"); at != std::string::npos; at = t.net.find("dim: 4 dim"))
    t.net.replace(at, 10, "dim: 1 dim");
  SUBCASE("as they come") {
    t.first(1);
    REQUIRE(t.until_clock(3));
    t.joiner("b");
    t.sim.settle();
    CHECK(t.nodes[0]->exit_code() == 0);
    CHECK(t.nodes[1]->error().find(
              "an iteration has 1 sample whoever takes part (--global-batch keep), "
              "and 2 nodes with 1 replica each need") != std::string::npos);
  }
  SUBCASE("as they are planned") {
    t.views = {{5, 2}};
    t.first(1);
    t.sim.settle();
    CHECK(t.nodes[0]->exit_code() == 2);
    CHECK(t.nodes[0]->error().find("it is 1 sample, and 2 nodes with 1 replica each need") !=
          std::string::npos);
  }
}

TEST_CASE("global_batch: a joiner that was told another rule than the run has is refused") {
  for (const bool kept : {true, false}) {
    CAPTURE(kept);
    node_rig t;
    t.clocks = 200;
    if (kept) t.global_batch = batch_rule::keep;
    t.first(1);
    REQUIRE(t.until_clock(3));
    t.joiner("b", {"a"}, kept ? batch_rule::scale : batch_rule::keep);
    t.joiner("c", {"a"}, kept ? batch_rule::keep : batch_rule::scale);
    t.sim.settle();
    CHECK(t.nodes[0]->exit_code() == 0);
    CHECK(t.nodes[1]->exit_code() == 2);
    CHECK(t.nodes[1]->error().find(
              kept ? "given --global-batch scale, and the run that it joins has --global-batch keep"
                   : "given --global-batch keep, and the run that it joins has --global-batch "
                     "scale") != std::string::npos);
    CHECK(t.nodes[2]->exit_code() == 0);
    CHECK(t.nodes[0]->display->said("(c:7600) joined; 2 nodes train"));
  }
}

TEST_CASE("global_batch: a net whose loss is no mean is refused before it trains") {
  node_rig t;
  t.global_batch = batch_rule::keep;
  t.net.replace(t.net.find("type: \"EuclideanLoss\""), 21,
                "type: \"EuclideanLoss\" loss_param { normalization: NONE }");
  t.first(1);
  t.sim.settle();
  CHECK(t.nodes[0]->exit_code() == 2);
  CHECK(t.nodes[0]->error().find("Leave out --batch-share and --global-batch keep") !=
        std::string::npos);
}
