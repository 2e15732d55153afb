#include "actors/run/view_shares.hpp"

#include "actors/run/compile_run.hpp"
#include "cpu/cpu_device.hpp"
#include "models/solver/solver_file.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

using namespace poseidon;

namespace {

constexpr const char* mean_loss = R"(
  layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" })";

/// A net with a batch of 8.
struct run_of_batch_8 {
  run_definition run;
  node_spec node;

  explicit run_of_batch_8(std::size_t workers, const std::string& more = mean_loss,
                          int iter_size = 1) {
    ::caffe::SolverParameter solver;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
      base_lr: 0.05 lr_policy: 'fixed' max_iter: 4 iter_size: )" +
                                                              std::to_string(iter_size) + R"(
      net_param {
        layer { name: "data" type: "DummyData" top: "x" top: "y"
          dummy_data_param { shape { dim: 8 dim: 6 } shape { dim: 8 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } } )" +
                                                              more + "}",
                                                          &solver));
    run.solver = resolve_solver(solver, {"test", 0});
    run.workers = workers;
    node.compute = make_cpu_device();
    node.replicas = 1;
  }
  std::vector<std::string> keep(std::uint64_t resumed = 0, std::size_t most_nodes = 1) {
    return settle_global_batch(run, node, {batch_rule::keep, resumed, most_nodes});
  }
  [[nodiscard]] std::string refusal(std::uint64_t resumed = 0, std::size_t most_nodes = 1) {
    try {
      (void)keep(resumed, most_nodes);
    } catch (const spec_error& e) {
      return e.what();
    }
    return "";
  }
};

bool mentions(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("view_shares: the global batch that stays is the first view's, or the resumed run's") {
  run_of_batch_8 t(2, mean_loss, 3);
  CHECK(batch_rule_of(t.run) == batch_rule::scale);
  CHECK(t.keep().empty());
  CHECK(global_batch_of(t.run) == 48);
  CHECK(batch_rule_of(t.run) == batch_rule::keep);
  CHECK(t.keep(64).empty());
  CHECK(global_batch_of(t.run) == 64);
}

TEST_CASE(
    "view_shares: a run that scales keeps nothing, and says so where the resumed run kept another "
    "number") {
  run_of_batch_8 t(2);
  CHECK(settle_global_batch(t.run, t.node, {batch_rule::scale, 16, 1}).empty());
  const auto lines = settle_global_batch(t.run, t.node, {batch_rule::scale, 24, 1});
  REQUIRE(lines.size() == 1);
  CHECK(lines.front() ==
        "the run of this snapshot kept 24 samples an iteration (--global-batch keep), and this one "
        "has 16. --global-batch keep goes on with 24.");
  CHECK(global_batch_of(t.run) == 0);
}

TEST_CASE("view_shares: each view shares out what stays, and the first one takes the net's batch") {
  run_of_batch_8 t(2);
  (void)t.keep();
  CHECK(weighed_shares(t.run, 8, 1).empty());
  t.run.workers = 3;
  CHECK(weighed_shares(t.run, 8, 1) == node_shares{{6, 1, 1}, {5, 1, 1}, {5, 1, 1}});
  t.run.workers = 1;
  CHECK(weighed_shares(t.run, 8, 1) == node_shares{{8, 1, 2}});
  t.run.workers = 17;
  CHECK_THROWS_WITH_AS((void)weighed_shares(t.run, 8, 1),
                       doctest::Contains("it is 16 samples, and 17 nodes with 1 replica each need"),
                       spec_error);
}

TEST_CASE("view_shares: a node compiles passes of its share, and never more than the net's batch") {
  const auto shown =
      std::string(R"(layer { name: "shown" type: "InnerProduct" bottom: "x" top: "shown"
    inner_product_param { num_output: 1 } })");
  run_of_batch_8 t(2, shown + mean_loss);
  (void)t.keep();
  const auto two = compile_run(t.run, t.node);
  CHECK(two->shares.empty());
  CHECK(two->train.batch == 8);
  t.run.workers = 3;
  CHECK(!fit_to_view(*two, t.run, t.node));
  t.node.worker = 1;
  const auto three = compile_run(t.run, t.node);
  CHECK(three->train.batch == 5);
  CHECK(three->micro_batches == 1);
  CHECK(samples_of_node(*three) == 5);
  // Values of samples are left out.
  CHECK(three->train.outputs.size() == two->train.outputs.size());
  CHECK(schedule_of(t.run, *three).samples_per_clock() == 16);
  t.run.workers = 1;
  t.node.worker = 0;
  const auto one = compile_run(t.run, t.node);
  CHECK(one->train.batch == 8);
  CHECK(one->micro_batches == 2);
  t.run.workers = 2;  // as in the first view again
  CHECK(!fit_to_view(*three, t.run, t.node));
}

TEST_CASE(
    "view_shares: a node that is about to join tries out whole batches, however many others there "
    "are") {
  run_of_batch_8 t(1);
  (void)t.keep();
  t.run.workers = 9;  // more than samples
  const auto tried = compile_run(with_whole_batches(t.run, t.node), t.node);
  CHECK(tried->train.batch == 8);
  CHECK(tried->micro_batches == 1);
  t.run.workers = 2;
  CHECK(!fit_to_view(*tried, t.run, t.node));
}

TEST_CASE("view_shares: what a later view could not do is refused before the first one") {
  SUBCASE("data of its own") {
    run_of_batch_8 t(2);
    t.node.own_data = true;
    CHECK(mentions(t.refusal(), "--global-batch keep: --own-data does not go with it"));
  }
  SUBCASE("more nodes in a view than samples") {
    run_of_batch_8 t(1);
    t.node.replicas = 2;
    CHECK(t.refusal(0, 4) == "");
    CHECK(mentions(t.refusal(0, 5), "it is 8 samples, and 5 nodes with 2 replicas each need"));
  }
  SUBCASE("samples of a run with another batch") {
    run_of_batch_8 t(1);
    CHECK(mentions(t.refusal(20),
                   "it is 20 samples, and the net's batch of 8 does not divide this number"));
  }
  SUBCASE("a loss that is a sum") {
    run_of_batch_8 t(1, R"(layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y"
      top: "loss" loss_param { normalization: NONE } })");
    CHECK(mentions(t.refusal(), "Leave out --batch-share and --global-batch keep"));
  }
  SUBCASE("a net that cuts the batch at a fixed place") {
    run_of_batch_8 t(1, R"(
      layer { name: "cut" type: "Slice" bottom: "ip" top: "a" top: "b" slice_param { axis: 0 slice_point: 3 } }
      layer { name: "rest" type: "Silence" bottom: "b" bottom: "y" }
      layer { name: "loss" type: "Reduction" bottom: "a" top: "loss" loss_weight: 1
        reduction_param { operation: MEAN axis: 0 } })");
    CHECK(mentions(t.refusal(),
                   "nodes take from 1 to 8 samples at the same time, and with 1 this net cannot "
                   "be built: "));
    CHECK(mentions(t.refusal(), "\"cut\""));
  }
}

TEST_CASE(
    "view_shares: statistics of a batch are warned of where the batch changes with the view") {
  const auto norm = std::string(R"(layer { name: "bn" type: "BatchNorm" bottom: "ip" top: "ip" })");
  run_of_batch_8 t(1, norm + mean_loss), plain(1);
  CHECK(compile_run(t.run, t.node)->warnings.empty());
  (void)t.keep();
  (void)plain.keep();
  const auto warnings = compile_run(t.run, t.node)->warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(mentions(warnings.front(),
                 "layer \"bn\" (BatchNorm) normalises with the samples of one pass"));
  CHECK(compile_run(plain.run, plain.node)->warnings.empty());
}
