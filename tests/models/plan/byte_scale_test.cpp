// Nets with scaled parameters: how many values are left, and in how large chunks they travel.
#include "models/plan/byte_scale.hpp"

#include "models/plan/partition.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace poseidon;

namespace {

/// 1000 x 3000 weights and 3 biases of another layer.
net two_layers() {
  return test::build(
      test::input("x", {2, 3000}) +
      test::layer("a", "InnerProduct", "x", "a",
                  "inner_product_param { num_output: 1000 bias_term: false "
                  "weight_filler { type: \"xavier\" } }") +
      test::layer("b", "InnerProduct", "a", "b", "inner_product_param { num_output: 3 }") +
      test::layer("loss", "Reduction", "b", "loss", "loss_weight: 1"));
}

}  // namespace

TEST_CASE("byte_scale: a tenth of each parameter's values is left, rounded, and never none") {
  auto n = two_layers();
  scale_parameters(n, 0.1);
  CHECK(to_string(n.parameters[0].shape) == "300000");
  CHECK(to_string(n.parameters[1].shape) == "300");  // 3 x 1000
  CHECK(to_string(n.parameters[2].shape) == "1");    // 1 of 3
  CHECK(to_string(test::named(n, "a").parameter_shapes[0]) == "300000");
  CHECK(n.parameters[0].filler.type() == "constant");
}

TEST_CASE(
    "byte_scale: with scale 1 the shapes stay, and first values are zeros that cost nothing to "
    "make") {
  auto n = two_layers();
  scale_parameters(n, 1);
  CHECK(to_string(n.parameters[0].shape) == "1000x3000");
  CHECK(n.parameters[0].filler.type() == "constant");
}

TEST_CASE("byte_scale: outside (0, 1] it is refused") {
  auto n = two_layers();
  for (const double scale : {0.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_AS(scale_parameters(n, scale), spec_error);
  CHECK(to_string(n.parameters[0].shape) == "1000x3000");
}

TEST_CASE("byte_scale: chunks shrink with the blobs, so that as many of them travel") {
  const auto whole = make_partition(two_layers(), 2);
  auto n = two_layers();
  scale_parameters(n, 0.1);
  const auto scaled = make_partition(n, 2, {}, 0.1);
  constexpr parameter_id weights{0};
  CHECK(scaled.by_parameter[weights].size() == whole.by_parameter[weights].size());
  CHECK(make_partition(n, 2).by_parameter[weights].size() >= whole.by_parameter[weights].size());
  const auto longest = [](const partition& p) {
    return std::max_element(p.chunks.begin(), p.chunks.end(),
                            [](const auto& a, const auto& b) { return a.count < b.count; })
        ->count;
  };
  CHECK(longest(scaled) <= longest(whole) / 9);
  // headers must not outweigh what they head
  CHECK(longest(make_partition(n, 2, {}, 1e-6)) >= 4000);
}
