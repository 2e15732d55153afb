// tests/cpu/factors_test.cpp - factors are packed as the layer computed them, and the product of them is its gradient.
#include "cpu/factors.hpp"

#include "models/plan/routes.hpp"
#include "tests/cpu/hand_net.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// x -> Split -> two inner products (one of each kind) -> losses: the bottom is shared.
test::hand_net shared_bottom(const std::string& more, const shape& in, const shape& top,
                             const std::vector<shape>& parameters) {
  test::hand_net h;
  h.all_diffs = true;
  h.input("x", in);
  h.layer("name: 'two' type: 'Split' bottom: 'x' top: 'x1' top: 'x2'", {in, in});
  h.layer(
      "name: 'ip' type: 'InnerProduct' bottom: 'x1' top: 'y' inner_product_param { " + more + " }",
      {top}, parameters);
  h.layer("name: 'relu' type: 'ReLU' bottom: 'y' top: 'y'", {});
  h.layer("name: 'pow' type: 'Power' bottom: 'x2' top: 'z' power_param { power: 2 }", {in});
  return h;
}

}  // namespace

TEST_CASE(
    "reconstruct_gradient: the gradient is the sum over rows of u times v, and the bias's that of "
    "u") {
  for (const bool transposed : {false, true}) {
    for (const factor_shape s :
         {factor_shape{1, 1, 1, transposed}, factor_shape{7, 3, 5, transposed},
          factor_shape{96, 33, 130, transposed}}) {
      const auto u = test::noise(s.u_values(), 1), v = test::noise(s.rows * s.inputs, 2);
      std::vector<float> w(s.outputs * s.inputs, 9), b(s.outputs, 9);
      cpu::reconstruct_gradient(s, u, v, w, b);
      std::vector<double> expected(w.size()), bias(b.size());
      for (std::size_t r = 0; r < s.rows; ++r)
        for (std::size_t o = 0; o < s.outputs; ++o) {
          bias[o] += u[r * s.outputs + o];
          for (std::size_t i = 0; i < s.inputs; ++i)
            expected[transposed ? i * s.outputs + o : o * s.inputs + i] +=
                double{u[r * s.outputs + o]} * double{v[r * s.inputs + i]};
        }
      CHECK(test::deviation(w, expected) < 1e-6);
      CHECK(test::deviation(b, bias) < 1e-6);
    }
  }
}

TEST_CASE("reconstruct_gradient: wrong sizes are refused by name, with both") {
  std::vector<float> u(6), v(10), w(15), b(2);
  CHECK_THROWS_WITH_AS(cpu::reconstruct_gradient({2, 3, 5}, u, v, w, b),
                       "reconstruct_gradient: bias has 2 values, 3 are needed",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(cpu::reconstruct_gradient({2, 3, 6}, u, v, w, {}),
                       "reconstruct_gradient: v has 10 values, 12 are needed",
                       std::invalid_argument);
}

TEST_CASE("factors: their product is the gradient that the layer would have computed itself") {
  struct kind {
    std::string more;
    shape in, top;
    std::vector<shape> parameters;
  };
  const kind kinds[] = {
      {"num_output: 4", {6, 3, 2, 1}, {6, 4}, {{4, 6}, {4}}},
      {"num_output: 4 transpose: true", {6, 3, 2, 1}, {6, 4}, {{6, 4}, {4}}},
      {"num_output: 4 bias_term: false", {6, 3, 2, 1}, {6, 4}, {{4, 6}}},
      {"num_output: 5 axis: 2", {2, 3, 7}, {2, 3, 5}, {{5, 7}, {5}}},
      {"num_output: 5 axis: -1 transpose: true", {2, 3, 7}, {2, 3, 5}, {{7, 5}, {5}}},
  };
  for (const auto& k : kinds) {
    CAPTURE(k.more);
    const auto h = shared_bottom(k.more, k.in, k.top, k.parameters);
    replica_options by_factors;
    by_factors.by_factors = {false, false, true, false, false};
    test::running_net plain(h.n), packed(h.n, by_factors);
    const auto s = factors_of(h.n, 2);
    std::vector<float> u(s.u_values()), v(s.rows * s.inputs);
    const auto values = static_cast<std::size_t>(count(k.in));
    const auto tops = static_cast<std::size_t>(count(k.top));
    for (auto* net : {&plain, &packed}) {
      net->set("x", test::noise(values, 3));
      net->forward();
      net->set_diff("y", test::noise(tops, 4));
      net->set_diff("z", test::noise(values, 5));
      for (std::size_t l = h.n.layers.size(); l-- > 0;) {
        if (h.n.layers[l].needs_backward) net->r->at(l).backward(net->now);
        // At once: the memory of u and v may be used for other things by the layers below.
        if (l == 2 && net == &packed) net->r->at(l).factors(u, v);
      }
    }
    std::vector<float> w(s.outputs * s.inputs);
    std::vector<float> b(k.parameters.size() > 1 ? s.outputs : 0);
    cpu::reconstruct_gradient(s, u, v, w, b);
    CHECK(w == plain.gradient(0));
    if (!b.empty()) CHECK(b == plain.gradient(1));
    CHECK(packed.gradient(0).empty());
    CHECK(packed.diff("x") == plain.diff("x"));
  }
}

TEST_CASE("factors: only layers that were asked to hand them out can") {
  test::hand_net h;
  h.input("x", {2, 3});
  h.layer("name: 'relu' type: 'ReLU' bottom: 'x' top: 'y'", {{2, 3}});
  test::running_net t(h.n);
  CHECK_THROWS_AS(t.r->at(1).factors({}, {}), std::logic_error);
}
