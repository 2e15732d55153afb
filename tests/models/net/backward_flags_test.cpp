// The layers that run backward. Caffe's flags for whole nets are in the reference set (formats/backward_*);
// here are the single reasons.
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::input;
using test::layer;

namespace {
std::string ip(const std::string& name, const std::string& bottom, const std::string& more = {}) {
  return layer(name, "InnerProduct", bottom, name, more + " inner_product_param { num_output: 3 }");
}
std::string sum_loss(const std::string& bottom) {
  return layer("loss", "Reduction", bottom, "loss", "loss_weight: 1");
}
const std::string x = input("x", {2, 4});
}  // namespace

TEST_CASE("backward_flags: the lowest layer that learns computes no gradient of its data") {
  const auto n = test::build(x + ip("a", "x") + ip("b", "a") + sum_loss("b"));
  CHECK_FALSE(test::named(n, "x").needs_backward);
  CHECK(test::named(n, "a").needs_backward);
  CHECK(test::named(n, "a").propagate_down == std::vector<bool>{false});
  CHECK(test::named(n, "b").propagate_down == std::vector<bool>{true});
}

TEST_CASE("backward_flags: a frozen layer at the bottom stays out, one in the middle hands on") {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const auto n =
      test::build(x + ip("a", "x", frozen) + ip("b", "a") + ip("c", "b", frozen) + sum_loss("c"));
  CHECK_FALSE(test::named(n, "a").needs_backward);
  CHECK(test::named(n, "b").propagate_down == std::vector<bool>{false});
  CHECK(test::named(n, "c").needs_backward);
  CHECK(test::named(n, "c").propagate_down == std::vector<bool>{true});
  CHECK(test::named(n, "c").learn == std::vector<bool>{false, false});
}

TEST_CASE("backward_flags: a branch without a loss above it stays out") {
  const auto n = test::build(x + ip("a", "x") + ip("side", "a") + ip("b", "a") + sum_loss("b"));
  CHECK_FALSE(test::named(n, "side").needs_backward);
  CHECK(test::named(n, "a_a_0_split").needs_backward);
  CHECK(test::named(n, "b").needs_backward);
}

TEST_CASE("backward_flags: propagate_down false keeps the gradient from everything below") {
  const auto n =
      test::build(x + ip("a", "x") + ip("b", "a", "propagate_down: false") + sum_loss("b"));
  CHECK(test::named(n, "b").needs_backward);
  CHECK_FALSE(test::named(n, "a").needs_backward);
}

TEST_CASE("backward_flags: force_backward reaches the data but not the labels of a loss") {
  const auto n =
      test::build("force_backward: true\n" + x + input("l", {2}) + ip("a", "x") +
                  "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"a\" bottom: \"l\" }");
  CHECK(test::named(n, "a").propagate_down == std::vector<bool>{true});
  CHECK(test::named(n, "loss").propagate_down == std::vector<bool>{true, false});
}

TEST_CASE("backward_flags: BatchNorm's statistics are nothing that the solver learns") {
  const auto n =
      test::build(x + layer("bn", "BatchNorm", "x", "bn") + ip("a", "bn") + sum_loss("a"));
  CHECK(test::named(n, "bn").learn == std::vector<bool>{false, false, false});
  CHECK_FALSE(test::named(n, "bn").needs_backward);
  CHECK(n.parameters[0].lr_mult == 0);
}

TEST_CASE("net: producers and consumers are found through in-place layers") {
  const auto n =
      test::build(x + ip("a", "x") + layer("r", "ReLU", "a", "a") + ip("b", "a") + sum_loss("b"));
  const auto blob = n.layers[1].tops[0];
  CHECK(producer(n, blob, 2) == 1);
  CHECK(producer(n, blob, 3) == 2);
  CHECK(consumer(n, blob, 1) == 2);
  CHECK(consumer(n, blob, 2) == 3);
  CHECK_FALSE(consumer(n, blob, 3).has_value());
  CHECK_FALSE(producer(n, blob, 1).has_value());
  CHECK(is_source(n.layers[0]));
  CHECK_FALSE(is_source(n.layers[1]));
}

TEST_CASE(
    "net: a shared parameter has one entry, the owner's, with the multipliers of whoever gave "
    "them") {
  const auto n =
      test::build(input("x", {2, 3}) + ip("a", "x", "param { name: \"w\" } param { lr_mult: 2 }") +
                  ip("b", "a", "param { name: \"w\" lr_mult: 0.5 }") + sum_loss("b"));
  REQUIRE(n.parameters.size() == 3);
  CHECK(n.parameters[0].name == "w");
  CHECK(n.parameters[0].lr_mult == 0.5f);
  CHECK(n.parameters[1].name == "a/1");
  CHECK(n.parameters[2].name == "b/1");
  CHECK(test::named(n, "b").parameters == std::vector<std::size_t>{0, 2});
  CHECK(n.parameters[0].layer == 1);
}
