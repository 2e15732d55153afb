#include "actors/run/compile_run.hpp"

#include "cpu/cpu_device.hpp"
#include "models/solver/solver_file.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <memory>

using namespace poseidon;

namespace {

struct run_of_a_net {
  run_definition run;
  node_spec node;

  explicit run_of_a_net(std::size_t workers) {
    ::caffe::SolverParameter solver;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
      base_lr: 0.05 lr_policy: 'fixed' max_iter: 4
      net_param {
        layer { name: "data" type: "DummyData" top: "x" top: "y"
          dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
      })",
                                                          &solver));
    run.solver = resolve_solver(solver, {"test", 0});
    run.workers = workers;
    node.compute = make_cpu_device();
    node.replicas = 1;
  }
};

}  // namespace

TEST_CASE("compile_run: another number of workers only cuts the parameters anew") {
  run_of_a_net t(2);
  const auto c = compile_run(t.run, t.node);
  const auto* const replica = c->train.replicas.front().get();
  const auto* const view = &c->store->view(parameter_id{0});
  c->store->publish(parameter_id{0}, 7);
  t.run.workers = 3;
  REQUIRE(fit_to_view(*c, t.run, t.node));
  CHECK(c->store->cut().by_owner.size() == 3);
  const auto alike = compile_run(t.run, t.node);
  CHECK(c->store->cut().chunks.size() == alike->store->cut().chunks.size());
  CHECK(c->train.replicas.front().get() == replica);
  CHECK(&c->store->view(parameter_id{0}) == view);
  CHECK(c->store->version(parameter_id{0}) == 7);
}

TEST_CASE("compile_run: what the nets or the memory depend on is compiled again") {
  run_of_a_net t(2);
  const auto c = compile_run(t.run, t.node);
  SUBCASE("one worker needs one copy of the parameters") {
    t.run.workers = 1;
  }
  SUBCASE("a layer gives factors") {
    t.run.routes = {route::factor_broadcast, route::factor_broadcast};
  }
  SUBCASE("the batch is shared out unevenly") {
    t.run.shares = {{5, 1}, {3, 1}};
  }
  SUBCASE("staleness, with which replicas remember versions") {
    t.run.solver.spec.mutable_poseidon()->set_staleness(1);
  }
  SUBCASE("each node has data of its own") {
    t.node.own_data = true;
  }
  CHECK(!fit_to_view(*c, t.run, t.node));
  CHECK(c->store->cut().by_owner.size() == 2);
}

TEST_CASE("compile_run: routes of another net are refused, however the view begins") {
  run_of_a_net t(2);
  const auto c = compile_run(t.run, t.node);
  t.run.routes.assign(9, route::parameter_server);
  CHECK_THROWS_AS((void)fit_to_view(*c, t.run, t.node), spec_error);
}
