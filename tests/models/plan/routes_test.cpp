#include "models/plan/routes.hpp"

#include "models/plan/partition.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

std::string product(const std::string& name, const std::string& bottom,
                    const std::string& params = "", const std::string& more = "") {
  return test::layer(name, "InnerProduct", bottom, name,
                     params + " inner_product_param { num_output: 5 " + more + " }");
}

std::string convolution(const std::string& name, const std::string& bottom) {
  return test::layer(name, "Convolution", bottom, name,
                     "convolution_param { num_output: 4 kernel_size: 3 }");
}

std::string loss(const std::string& bottom) {
  return test::layer("loss", "SoftmaxWithLoss", bottom, "loss", "bottom: \"label\"");
}

const std::string inputs = test::input("x", {6, 2, 4, 4}) + test::input("label", {6});
const std::string chain = inputs + convolution("conv1", "x") + product("ip1", "conv1") +
                          product("ip2", "ip1") + loss("ip2");

std::size_t at(const net& n, const std::string& name) {
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (n.layers[l].name == name) return l;
  FAIL("no layer " << name);
  return 0;
}

std::string why(const std::string& text, const std::string& layer,
                const ::caffe::SolverParameter& solver = {}) {
  const auto n = test::build(text);
  return why_no_factors(n, at(n, layer), solver);
}

struct listed {
  test::temporary_folder folder;
  std::string path;
  explicit listed(const std::string& text) : path(folder.write("routes", text).string()) {}
};

std::string mistake_in(const std::string& text) {
  const listed file(text);
  try {
    const auto n = test::build(chain);
    (void)layers_of_option(n, parse_routes(file.path), {});
    return {};
  } catch (const spec_error& e) {
    const std::string said = e.what();
    return said.substr(said.find("routes:"));
  }
}

}  // namespace

TEST_CASE("routes: a layer broadcasts factors if it is a learned InnerProduct of its own") {
  CHECK(why(chain, "ip1").empty());
  CHECK(why(chain, "conv1") ==
        "it is no InnerProduct: only the gradient of one is a product of factors");
  CHECK(why(inputs + product("ip1", "x", "param { lr_mult: 0 }") + loss("ip1"), "ip1") ==
        "lr_mult of its weights is 0: nothing is sent");
  const std::string shared = "param { name: \"w\" } param { name: \"b\" }";
  CHECK(why(inputs + product("a", "x", shared) + product("c", "x", shared) +
                test::layer("sum", "Eltwise", "a", "sum", "bottom: \"c\"") + loss("sum"),
            "a") == "it shares parameters with another layer");
  CHECK(why(inputs + product("a", "x") + product("c", "x", "param { lr_mult: 1 }") +
                test::layer("quiet", "Silence", "c", "") + loss("a"),
            "c")
            .empty() == false);
}

TEST_CASE("routes: clip_gradients and debug_info keep every layer on the server, and are named") {
  ::caffe::SolverParameter solver;
  const auto n = test::build(chain);
  CHECK(why_no_factors_at_all(n, solver).empty());
  solver.set_clip_gradients(1);
  CHECK(why_no_factors_at_all(n, solver).find("clip_gradients") != std::string::npos);
  CHECK(why(chain, "ip1", solver).find("clip_gradients") == 0);
  solver.clear_clip_gradients();
  solver.set_debug_info(true);
  CHECK(why_no_factors_at_all(n, solver).find("debug_info") != std::string::npos);
  const auto nothing_to_say =
      test::build(test::input("a", {6, 5}) + test::input("b", {6, 5}) +
                  test::layer("loss", "EuclideanLoss", "a", "loss", "bottom: \"b\""));
  CHECK(why_no_factors_at_all(nothing_to_say, solver).empty());
}

TEST_CASE("routes: factors have the layer's rows, outputs and inputs, whatever its axis") {
  const auto n = test::build(inputs + product("a", "x") +
                             product("b", "x", "", "axis: 2 transpose: true bias_term: false") +
                             loss("a") + test::layer("quiet", "Silence", "b", ""));
  auto s = factors_of(n, at(n, "a"));
  CHECK(s.rows == 6);
  CHECK(s.outputs == 5);
  CHECK(s.inputs == 32);
  CHECK_FALSE(s.transposed);
  s = factors_of(n, at(n, "b"));
  CHECK(s.rows == 12);
  CHECK(s.inputs == 16);
  CHECK(s.transposed);
}

TEST_CASE("routes: a wish becomes routes of weights and bias; what is frozen stays on the server") {
  const auto n = test::build(inputs + convolution("conv1", "x") +
                             product("ip1", "conv1", "param { lr_mult: 1 } param { lr_mult: 0 }") +
                             product("ip2", "ip1") + loss("ip2"));
  const auto of = [&](const route_option& option) {
    return routes_of(n, layers_of_option(n, option, {}));
  };
  constexpr auto ps = route::parameter_server, sfb = route::factor_broadcast;
  CHECK(of(parse_routes("ps")) == parameter_routes{ps, ps, ps, ps, ps, ps});
  CHECK(of(parse_routes("sfb")) == parameter_routes{ps, ps, sfb, ps, sfb, sfb});
  const listed file("# what we know\n\nip2 sfb  # the last\nconv1 ps\n");
  CHECK(of(parse_routes(file.path)) == parameter_routes{ps, ps, ps, ps, sfb, sfb});
}

TEST_CASE("routes: a file says from which clock a route holds, in any order") {
  const auto n = test::build(inputs + product("ip1", "x") + product("ip2", "ip1") + loss("ip2"));
  const listed file("@9 ip1 ps\nip2 sfb\n@5 ip1 sfb\n@5 ip2 sfb\n@7 ip2 sfb\n");
  const auto option = parse_routes(file.path);
  const auto layers = [&](std::uint64_t clock) { return layers_of_option(n, option, {}, clock); };
  constexpr auto ps = route::parameter_server, sfb = route::factor_broadcast;
  CHECK(layers(4)[at(n, "ip1")] == ps);
  CHECK(layers(4)[at(n, "ip2")] == sfb);
  CHECK(layers(5)[at(n, "ip1")] == sfb);
  CHECK(layers(8)[at(n, "ip1")] == sfb);
  CHECK(layers(9)[at(n, "ip1")] == ps);
  const auto changes = changes_of_option(n, option, {}, 0);
  REQUIRE(changes.size() == 2);  // at 7 nothing becomes other than it is
  CHECK(changes.at(5) == layers(5));
  CHECK(changes.at(9) == layers(9));
  CHECK(changes_of_option(n, option, {}, 5).size() == 1);  // the routes of a run resumed at clock 5
  CHECK(changes_of_option(n, option, {}, 9).empty());
}

TEST_CASE("routes: what was chosen is written as a file that chooses the same again") {
  const auto n = test::build(chain);
  const auto of = [&](std::vector<std::string> layers) {
    std::vector<bool> chosen(n.layers.size());
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      chosen[l] = std::find(layers.begin(), layers.end(), n.layers[l].name) != layers.end();
    return routes_of(n, chosen);
  };
  // The first clock is that of a resumed run.
  const auto text = routes_file(n, {}, {{40, of({"ip1"})}, {50, of({"ip2"})}, {70, of({})}});
  CHECK(text.find("conv1") == std::string::npos);
  const listed file(text);
  const auto option = parse_routes(file.path);
  const auto routes_at = [&](std::uint64_t clock) {
    return routes_of(n, layers_of_option(n, option, {}, clock));
  };
  CHECK(routes_at(40) == of({"ip1"}));
  CHECK(routes_at(49) == of({"ip1"}));
  CHECK(routes_at(50) == of({"ip2"}));
  CHECK(routes_at(70) == of({}));
}

TEST_CASE("routes: mistakes in a file are named with their line") {
  CHECK(mistake_in("ip1 sfb\n") == "");
  CHECK(mistake_in("\nip3 sfb\n")
            .find("routes:2: the net \"\" has no layer \"ip3\". Did you mean \"ip1\"?") == 0);
  CHECK(mistake_in("conv1 sfb\n") ==
        "routes:1: layer \"conv1\" (Convolution) cannot broadcast factors: it is no InnerProduct: "
        "only the gradient of one is a product of factors. Give it ps.");
  CHECK(mistake_in("ip1 both\n") ==
        "routes:1: expected \"layer ps\", \"layer sfb\" or \"layer lowrank\", after \"@iteration\" "
        "where it is to hold from that iteration on; found \"ip1 both\".");
  CHECK(mistake_in("ip1\n").find("routes:1: expected") == 0);
  CHECK(mistake_in("ip1 ps\nip1 sfb\n") ==
        "routes:2: layer \"ip1\" has a route in line 1 already.");
  CHECK(mistake_in("@7 ip1 ps\nip1 sfb\n@7 ip1 sfb\n") ==
        "routes:3: layer \"ip1\" has a route from iteration 7 on in line 1 already.");
  CHECK(mistake_in("@7 conv1 sfb\n").find("routes:1: layer \"conv1\"") == 0);
  CHECK(mistake_in("@-7 ip1 sfb\n") ==
        "routes:1: expected the number of an iteration after @, found \"@-7\".");
  CHECK(mistake_in("@7\n").find("routes:1: expected") == 0);
  CHECK_THROWS_WITH_AS((void)parse_routes("nowhere"),
                       "--routes nowhere: it is none of auto, ps, sfb and lowrank, and no file of "
                       "that name can be read.",
                       spec_error);
}

TEST_CASE("routes: what goes by factors is in no shard and no part of their balance") {
  const auto n = test::build(chain);
  const auto routes = routes_of(n, layers_of_option(n, parse_routes("sfb"), {}));
  const auto cut = make_partition(n, 2, routes);
  for (const auto p : cut.by_parameter.ids()) {
    CHECK(on_every_node(cut, p) == on_factors(routes, p));
    std::size_t values = 0;
    for (const auto id : cut.by_parameter[p]) {
      values += cut.chunks[id].count;
      CHECK((cut.chunks[id].owner == every_worker) == on_factors(routes, p));
    }
    CHECK(values == static_cast<std::size_t>(count(n.parameters[value(p)].shape)));
  }
  std::size_t owned = 0;
  for (const auto& chunks : cut.by_owner)
    for (const auto id : chunks) owned += cut.chunks[id].count;
  CHECK(owned == 4 * 2 * 9 + 4);  // conv1
}

TEST_CASE("factor_piece: the pieces cover u and v once, and none has values of both") {
  for (const factor_shape s : {factor_shape{1, 1, 1}, factor_shape{3, 5, 7},
                               factor_shape{256, 4096, 1000}, factor_shape{64, 10, 25088}}) {
    std::size_t first = 0;
    bool cut_at_v = false;
    while (const auto piece = factor_piece(s, first)) {
      CHECK(piece <= max_factor_piece);
      first += piece;
      cut_at_v = cut_at_v || first == s.u_values();
    }
    CHECK(first == s.values());
    CHECK(cut_at_v);
  }
}
