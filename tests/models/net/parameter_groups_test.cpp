#include "models/net/parameter_groups.hpp"

#include "models/net/learned_parameters.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// An InnerProduct whose two parameters have these names ("" is none) and multipliers.
std::string product(const std::string& name, const std::string& bottom, const std::string& weights,
                    const std::string& bias, int lr = 1) {
  const auto param = [lr](const std::string& shared) {
    return "param { lr_mult: " + std::to_string(lr) +
           (shared.empty() ? "" : " name: \"" + shared + "\"") + " } ";
  };
  return test::layer(name, "InnerProduct", bottom, name,
                     param(weights) + param(bias) + "inner_product_param { num_output: 3 }");
}

std::string loss(const std::string& bottom) {
  return test::layer("loss " + bottom, "EuclideanLoss", bottom, "loss " + bottom,
                     "bottom: \"target\"");
}

const std::string inputs = test::input("x", {2, 3}) + test::input("target", {2, 3});

std::vector<std::string> names(const net& n, const std::vector<std::size_t>& layers) {
  std::vector<std::string> out;
  for (const auto l : layers) out.push_back(n.layers[l].name);
  return out;
}
using words = std::vector<std::string>;

template <class... Places>
std::vector<parameter_id> places(Places... of) {
  return {as_id<parameter_id>(of)...};
}

}  // namespace

TEST_CASE("parameter_groups: layers that share nothing are groups of one, in net order") {
  const auto n =
      test::build(inputs + product("a", "x", "", "") + product("b", "a", "", "") + loss("b"));
  const auto groups = parameter_groups(n);
  REQUIRE(groups.size() == 2);
  CHECK(names(n, groups[0].layers) == words{"a"});
  CHECK(groups[0].learned == places(0, 1));
  CHECK(names(n, groups[1].writers) == words{"b"});
  CHECK(groups[1].learned == places(2, 3));
}

TEST_CASE("parameter_groups: sharing through a third layer joins what came before it") {
  const auto n = test::build(inputs + product("a", "x", "u", "") + product("b", "a", "v", "") +
                             product("c", "b", "v", "u2") + product("d", "c", "u", "u2") +
                             product("e", "d", "", "") + loss("e"));
  const auto groups = parameter_groups(n);
  REQUIRE(groups.size() == 2);
  CHECK(names(n, groups[0].layers) == words{"a", "b", "c", "d"});
  CHECK(groups[0].learned == places(0, 1, 2, 3, 4));
  CHECK(names(n, groups[1].layers) == words{"e"});
}

TEST_CASE("parameter_groups: a layer that no loss needs reads, but does not write") {
  const auto n =
      test::build(inputs + product("a", "x", "w", "") + product("idle", "x", "w", "") + loss("a"));
  const auto groups = parameter_groups(n);
  REQUIRE(groups.size() == 1);
  CHECK(names(n, groups[0].layers) == words{"a", "idle"});
  CHECK(names(n, groups[0].writers) == words{"a"});
  // idle's own bias has no gradient, but decays.
  CHECK(groups[0].learned == places(0, 1, 2));
  CHECK(groups[0].frozen.empty());
}

TEST_CASE(
    "parameter_groups: where no loss reaches a layer, it still says that its gradient is zero") {
  const auto n =
      test::build(inputs + product("a", "x", "", "") + product("idle", "x", "", "") + loss("a"));
  const auto groups = parameter_groups(n);
  REQUIRE(groups.size() == 2);
  CHECK_FALSE(test::named(n, "idle").needs_backward);
  CHECK(names(n, groups[1].writers) == words{"idle"});
}

TEST_CASE("parameter_groups: frozen shared parameters have no writers") {
  const auto n =
      test::build(inputs + product("a", "x", "w", "b", 0) + product("c", "a", "w", "b", 0) +
                  product("d", "c", "", "") + loss("d"));
  const auto groups = parameter_groups(n);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].writers.empty());
  CHECK(groups[0].learned.empty());
  CHECK(groups[0].frozen == places(0, 1));
}

TEST_CASE("learned_parameters: the list of a net has its groups, their layers' names and places") {
  const auto n = test::build(inputs + product("a", "x", "u", "") + product("b", "a", "", "", 0) +
                             product("c", "b", "u", "") + loss("c"));
  const auto list = learned_parameters_of(n);
  REQUIRE(list.parameters.size() == 5);  // a and c share their weights
  CHECK(list.layers.items() == words{"a", "a", "b", "b", "c"});
  REQUIRE(list.groups.size() == 2);
  CHECK(list.groups[0].name == "a");
  CHECK(list.groups[0].writers == 2);
  CHECK(list.groups[0].learned == places(0, 1, 4));
  CHECK(list.groups[1].name == "b");
  CHECK(n.layers[value(list.groups[1].first)].name == "b");
  CHECK(list.groups[1].learned.empty());
  CHECK(list.groups[1].frozen == places(2, 3));
  CHECK(n.layers[value(list.first_uses[parameter_id{4}])].name == "c");
}
