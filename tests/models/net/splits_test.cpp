#include "models/net/net_builder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::input;
using test::layer;

TEST_CASE("splits: a blob with two consumers goes through a Split with Caffe's names") {
  const auto n = test::build(input("x", {2, 3}) + layer("a", "AbsVal", "x", "a") +
                             layer("b", "AbsVal", "x", "b"));
  REQUIRE(n.layers.size() == 4);
  const auto& split = n.layers[1];
  CHECK(split.name == "x_x_0_split");
  CHECK(split.type == "Split");
  CHECK(split.where.line == 0);
  CHECK(n.blobs[split.tops[1]].name == "x_x_0_split_1");
  CHECK(n.layers[2].bottoms[0] == split.tops[0]);
  CHECK(n.layers[3].bottoms[0] == split.tops[1]);
}

TEST_CASE(
    "splits: one consumer needs none, and an in-place layer begins a new blob of the same name") {
  const auto n = test::build(input("x", {2, 3}) + layer("r", "ReLU", "x", "x") +
                             layer("a", "AbsVal", "x", "a"));
  CHECK(n.layers.size() == 3);
  CHECK(n.layers[1].bottoms == n.layers[1].tops);
}

TEST_CASE("splits: a top that is a loss and a bottom gives copy 0, with the weight, to the loss") {
  const auto n = test::build(input("x", {2, 3}) +
                             layer("p", "InnerProduct", "x", "p",
                                   "loss_weight: 0.5 inner_product_param { num_output: 2 }") +
                             layer("a", "AbsVal", "p", "a"));
  const auto& split = test::named(n, "p_p_0_split");
  CHECK(split.loss_weights == std::vector<float>{0.5f, 0.0f});
  CHECK(test::named(n, "p").loss_weights == std::vector<float>{0.0f});
  CHECK(test::named(n, "a").bottoms[0] == split.tops[1]);
}

TEST_CASE("splits: every top has one consumer at most, however often a blob is taken") {
  std::string text = input("x", {2, 3});
  for (const char* name : {"a", "b", "c", "d", "e"}) text += layer(name, "AbsVal", "x", name);
  text +=
      "layer { name: \"s\" type: \"Eltwise\" bottom: \"a\" bottom: \"a\" bottom: \"b\" top: \"s\" "
      "}";
  const auto n = test::build(text);
  for (std::size_t i = 0; i < n.layers.size(); ++i)
    for (const auto top : n.layers[i].tops) {
      std::size_t consumers = 0;
      for (const auto& other : n.layers)
        for (const auto bottom : other.bottoms) consumers += bottom == top;
      CHECK(consumers <= 1);
    }
}
