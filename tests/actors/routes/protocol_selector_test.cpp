#include "actors/routes/protocol_selector.hpp"

#include "models/solver/solver_file.hpp"
#include "tests/plain_arithmetic.hpp"
#include "tests/sim.hpp"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

using namespace poseidon;

namespace {

// Weights of 1000 x 1000: as factors of one sample they are 2000 values.
constexpr const char* one_large_product = R"(
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 1 dim: 1000 } shape { dim: 1 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 1000 } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

/// It is known to be so slow that no link makes factors worth their products, unless the link is slower still.
class slow_device : public test::device_with<> {
 public:
  std::optional<double> told_flop_s() const override { return 1e3; }
};

run_definition two_workers() {
  ::caffe::SolverParameter solver;
  REQUIRE(google::protobuf::TextFormat::ParseFromString("base_lr: 1 lr_policy: 'fixed'", &solver));
  REQUIRE(
      google::protobuf::TextFormat::ParseFromString(one_large_product, solver.mutable_net_param()));
  run_definition run;
  run.solver = resolve_solver(solver, {"test", 0});
  run.workers = 2;
  return run;
}

struct selector_of_two {
  test::sim sim;
  test::probe<routes_chosen> chosen = sim.listen<routes_chosen>();
  test::probe<routes_proposed> proposed = sim.listen<routes_proposed>();
  test::probe<send_frame> link = sim.listen<send_frame>();
  handle<protocol_selector> selector;

  explicit selector_of_two(route_option option, double link_mbit_s = 0)
      : selector_of_two(two_workers(), std::make_shared<slow_device>(), std::move(option),
                        link_mbit_s) {}

  selector_of_two(run_definition run, std::shared_ptr<device> compute, route_option option,
                  double link_mbit_s = 0) {
    route_request r;
    r.run = std::move(run);
    r.node.compute = std::move(compute);
    r.node.replicas = 1;
    r.option = std::move(option);
    r.link_mbit_s = link_mbit_s;
    selector = sim.spawn<protocol_selector>("protocol_selector", std::move(r));
    sim.tell(selector, choose_routes{chosen.in, proposed.in, {}});
    sim.settle();
  }
  /// The peer answers each round of probes when the round's last frame has come.
  void measure(bool within_machine = false) {
    sim.tell(selector, measure_links{{link.in}, within_machine});
    sim.settle();
    while (!link.got->empty()) {
      const auto last = std::get<frames::probe>(link.got->back().header);
      link.got->clear();
      CHECK(last.last);
      sim.tell(selector, probe_answered{worker_id{1}, last.round});
      sim.settle();
    }
  }
  void send_rate(double mbit_s) {
    sim.tell(selector, send_rate_measured{worker_id{1}, mbit_s, true, 1000000});
    sim.settle();
  }
};

route_option told(route_option::kind what) {
  route_option o;
  o.what = what;
  return o;
}

route_option automatic() {
  return {};
}

const parameter_routes on_server{route::parameter_server, route::parameter_server};
const parameter_routes by_factors{route::factor_broadcast, route::factor_broadcast};

}  // namespace

TEST_CASE(
    "protocol_selector: with a known rate it chooses immediately, and proposes nothing later") {
  selector_of_two t(automatic(), 1000);
  REQUIRE(t.chosen.got->size() == 1);
  const auto& c = t.chosen.got->front();
  CHECK(c.error.empty());
  CHECK(c.batch == 1);
  CHECK(c.routes == on_server);
  CHECK_FALSE(c.needs_rate);
  CHECK_FALSE(c.follow_links);
  CHECK(c.reasons.at(1).find("making the gradient again") != std::string::npos);
  for (int i = 0; i < 8; ++i) t.send_rate(1e-9);
  CHECK(t.proposed.got->empty());
}

TEST_CASE("protocol_selector: without a rate it asks for links, times them and chooses again") {
  selector_of_two t(automatic());
  REQUIRE(t.chosen.got->size() == 1);
  CHECK(t.chosen.got->front().needs_rate);
  CHECK_FALSE(t.chosen.got->front().follow_links);
  t.measure();
  REQUIRE(t.chosen.got->size() == 2);
  const auto& c = t.chosen.got->back();
  CHECK_FALSE(c.needs_rate);
  CHECK(c.follow_links);
  CHECK(c.routes == on_server);
  CHECK(c.notes.at(0).find("Mbit/s together, as measured") != std::string::npos);
}

TEST_CASE(
    "protocol_selector: when measured links become slow it makes one proposal, until the routes "
    "have changed") {
  selector_of_two t(automatic());
  t.measure();
  for (int i = 0; i < 3; ++i) t.send_rate(1e-9);
  CHECK(t.proposed.got->empty());  // they may be outliers
  t.send_rate(1e-9);
  REQUIRE(t.proposed.got->size() == 1);
  CHECK(t.proposed.got->front().routes == by_factors);
  CHECK(t.proposed.got->front().why.find("ip to factor_broadcast") != std::string::npos);
  t.send_rate(1e-9);
  CHECK(t.proposed.got->size() == 1);
  t.sim.tell(t.selector, routes_changed{std::chrono::milliseconds{5}});
  for (int i = 0; i < 8; ++i) t.send_rate(1e-9);
  CHECK(t.proposed.got->size() == 1);  // what holds is the best at this rate
}

TEST_CASE("protocol_selector: between nodes of one machine it chooses once, at the start") {
  selector_of_two t(automatic());
  t.measure(true);
  REQUIRE(t.chosen.got->size() == 2);
  CHECK_FALSE(t.chosen.got->back().follow_links);
  for (int i = 0; i < 8; ++i) t.send_rate(1e-9);
  CHECK(t.proposed.got->empty());
}

TEST_CASE("protocol_selector: what --routes asks for and the net cannot do is part of its answer") {
  route_option option;
  option.what = route_option::kind::listed;
  option.file = "my.routes";
  option.entries.push_back({"fc8", route::factor_broadcast, 0, 3});
  selector_of_two t(option);
  REQUIRE(t.chosen.got->size() == 1);
  CHECK(t.chosen.got->front().error.find("my.routes:3") != std::string::npos);
  CHECK(t.chosen.got->front().error.find("fc8") != std::string::npos);
  t.sim.tell(t.selector, choose_routes{t.chosen.in, t.proposed.in, {}});
  t.sim.settle();
  CHECK(t.chosen.got->size() == 2);  // it still answers
}

namespace {

/// It knows how long a pass takes, whatever its big products reach.
class told_device : public test::device_with<> {
 public:
  explicit told_device(double pass_s) : pass_s_(pass_s) {}
  std::optional<double> told_flop_s() const override { return 1e10; }
  std::optional<double> told_pass_s(const net&, double) const override { return pass_s_; }
  bool computes() const override { return false; }

 private:
  double pass_s_;
};

}  // namespace

TEST_CASE(
    "protocol_selector: --lossy rounds where the wire is longer than the pass that the device "
    "tells") {
  const auto is_rounded = [](double pass_s) {
    route_request r;
    r.run = two_workers();
    r.node.compute = std::make_shared<told_device>(pass_s);
    r.node.replicas = 1;
    r.option = told(route_option::kind::server);
    r.lossy = parse_lossy("int4");
    r.link_mbit_s = 100;
    test::sim sim;
    auto chosen = sim.listen<routes_chosen>();
    const auto proposed = sim.listen<routes_proposed>();
    auto selector = sim.spawn<protocol_selector>("protocol_selector", std::move(r));
    sim.tell(selector, choose_routes{chosen.in, proposed.in, {}});
    sim.settle();
    REQUIRE(chosen.got->size() == 1);
    REQUIRE(chosen.got->front().error == "");
    return !chosen.got->front().wire.empty();
  };
  CHECK(is_rounded(0.001));
  CHECK_FALSE(is_rounded(10));  // 4 MB take 0.32 s
}

// -- programs that compute the gradients ----------------------------------------------------------------

namespace {

/// It makes 1e10 values of a product in a second.
class quick_device : public test::device_with<> {
 public:
  std::optional<double> told_flop_s() const override { return 1e10; }
  bool computes() const override { return false; }
};

/// A convolution, which has no factors, before a matrix of 1000 x 1000.
selector_of_two selector_of_program(route_option option) {
  run_definition run;
  run.declared = {{"conv", {8, 3, 3, 3}}, {"fc", {1000, 1000}}};
  run.workers = 2;
  return {std::move(run), std::make_shared<quick_device>(), std::move(option)};
}

const factors_offered one_row{
    {0, 1}, {{0.01, 0, 0}, {0.002, 0.001, 1}}, {parameter_id{0}, parameter_id{1}}};

}  // namespace

TEST_CASE(
    "protocol_selector: a program begins on the server; what it has measured leads to a proposal") {
  auto t = selector_of_program(automatic());
  REQUIRE(t.chosen.got->size() == 1);
  CHECK(t.chosen.got->front().needs_rate);
  t.measure();
  REQUIRE(t.chosen.got->size() == 2);
  CHECK(t.chosen.got->back().routes.empty());
  CHECK(t.chosen.got->back().follow_links);
  // The simulated link is fast: 8 MB of it may take less than making the gradient again. A slow link is reported later.
  t.sim.tell(t.selector, choose_by_offers{one_row});
  t.sim.settle();
  for (int i = 0; i < 8 && t.proposed.got->empty(); ++i) t.send_rate(10);
  REQUIRE(t.proposed.got->size() == 1);
  const auto& p = t.proposed.got->front();
  CHECK(p.routes == parameter_routes{route::parameter_server, route::factor_broadcast});
  CHECK(p.why.find("fc") != std::string::npos);
}

TEST_CASE("protocol_selector: told to, a program's factors go wherever there are any, or nowhere") {
  auto all = selector_of_program(told(route_option::kind::factors));
  CHECK_FALSE(all.chosen.got->front().needs_rate);
  all.sim.tell(all.selector, choose_by_offers{one_row});
  all.sim.settle();
  REQUIRE(all.proposed.got->size() == 1);
  CHECK(all.proposed.got->front().routes ==
        parameter_routes{route::parameter_server, route::factor_broadcast});
  auto none = selector_of_program(told(route_option::kind::server));
  none.sim.tell(none.selector, choose_by_offers{one_row});
  none.sim.settle();
  CHECK(none.proposed.got->empty());
}

TEST_CASE("protocol_selector: a program begins with low rank where it is told to") {
  auto option = told(route_option::kind::lowrank);
  option.rank = 8;
  auto t = selector_of_program(option);
  REQUIRE(t.chosen.got->size() == 1);
  const auto& c = t.chosen.got->front();
  CHECK(c.error.empty());
  CHECK(c.routes == parameter_routes{route::parameter_server, route::lowrank_8});
  CHECK(c.notes == std::vector<std::string>{"routes: lowrank_8 for 1 parameter of 2"});
  t.sim.tell(t.selector, choose_by_offers{one_row});
  t.sim.settle();
  CHECK(t.proposed.got->empty());
}

TEST_CASE("protocol_selector: workers that make a program's steps have no low rank") {
  run_definition run;
  run.declared = {{"fc", {1000, 1000}}};
  run.workers = 2;
  run.optimizer = optimizer_rule::sgd;
  selector_of_two t(std::move(run), std::make_shared<quick_device>(),
                    told(route_option::kind::lowrank));
  CHECK(t.chosen.got->front().error.find("the workers make the optimizer's steps") !=
        std::string::npos);
}

TEST_CASE("protocol_selector: programs on one machine keep the bits") {
  run_definition run;
  run.declared = {{"conv", {8, 3, 3, 3}}, {"fc", {1000, 1000}}};
  run.workers = 2;
  selector_of_two t(std::move(run), std::make_shared<test::device_with<>>(), automatic());
  t.measure(true);
  t.sim.tell(t.selector, choose_by_offers{one_row});
  t.sim.settle();
  for (int i = 0; i < 8; ++i) t.send_rate(0.001);
  CHECK(t.proposed.got->empty());
}
