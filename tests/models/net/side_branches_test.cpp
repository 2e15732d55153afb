#include "models/net/side_branches.hpp"

#include "models/net/parameter_groups.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

std::string product(const std::string& name, const std::string& bottom) {
  return test::layer(name, "InnerProduct", bottom, name, "inner_product_param { num_output: 3 }");
}

std::string loss(const std::string& bottom) {
  return test::layer("loss " + bottom, "EuclideanLoss", bottom, "loss " + bottom,
                     "bottom: \"target\"");
}

const std::string inputs = test::input("x", {2, 3}) + test::input("target", {2, 3});

/// The names of the groups that run ahead.
std::vector<std::string> ahead(const net& n) {
  std::vector<std::string> out;
  const auto groups = parameter_groups(n);
  const auto found = groups_that_run_ahead(n);
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (found[g]) out.push_back(n.layers[groups[g].layers.front()].name);
  return out;
}
using words = std::vector<std::string>;

}  // namespace

TEST_CASE("side_branches: with one loss no gradient is complete before all parameters are read") {
  CHECK(ahead(test::build(inputs + product("a", "x") + product("b", "a") + loss("b"))) == words{});
}

TEST_CASE("side_branches: a branch to a loss runs ahead of what it does not lead to") {
  const auto n =
      test::build(inputs + product("trunk", "x") + product("side", "trunk") + loss("side") +
                  product("deep", "trunk") + product("deeper", "deep") + loss("deeper"));
  // Each of the two branches may be ahead of the other one; what is below both waits for both.
  CHECK(ahead(n) == words{"side", "deep", "deeper"});
}

TEST_CASE("side_branches: a branch that ends in no loss is waited for, too") {
  const auto n = test::build(inputs + product("trunk", "x") + product("b", "trunk") + loss("b") +
                             test::layer("quiet", "Silence", "trunk", ""));
  CHECK(ahead(n) == words{});
}

TEST_CASE("side_branches: of more ends than are told apart every group may run ahead") {
  std::string text = inputs;
  for (int i = 0; i < 65; ++i)
    text += product("p" + std::to_string(i), "x") + loss("p" + std::to_string(i));
  CHECK(ahead(test::build(text)).size() == 65);
}
