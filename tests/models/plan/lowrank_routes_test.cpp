#include "models/plan/lowrank_routes.hpp"

#include "models/net/declared_net.hpp"
#include "models/plan/partition.hpp"
#include "models/plan/route_choice.hpp"
#include "models/plan/wire_choice.hpp"
#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

std::string product(const std::string& name, const std::string& bottom, int outputs,
                    const std::string& params = "") {
  return test::layer(
      name, "InnerProduct", bottom, name,
      params + " inner_product_param { num_output: " + std::to_string(outputs) + " }");
}

const std::string inputs = test::input("x", {6, 64, 4, 4}) + test::input("label", {6});
const std::string net_text =
    inputs +
    test::layer("conv1", "Convolution", "x", "conv1",
                "convolution_param { num_output: 48 kernel_size: 3 }") +
    product("ip1", "conv1", 200) + product("ip2", "ip1", 10) +
    test::layer("loss", "SoftmaxWithLoss", "ip2", "loss", "bottom: \"label\"");

std::size_t at(const net& n, const std::string& name) {
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (n.layers[l].name == name) return l;
  FAIL("no layer " << name);
  return 0;
}

std::string why(const std::string& text, const std::string& layer, std::uint32_t rank = 4,
                const ::caffe::SolverParameter& solver = {}) {
  const auto n = test::build(text);
  return why_no_lowrank(n, at(n, layer), rank, solver);
}

layer_routes wanted(const net& n, const std::string& option, std::uint32_t rank = 0) {
  return layers_of_option(n, parse_routes(option, rank), {});
}

std::string refusal(const std::string& option, std::uint32_t rank = 0) {
  try {
    (void)wanted(test::build(net_text), option, rank);
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("lowrank: a layer goes by low rank if its matrix is its own and half of it is saved") {
  const auto n = test::build(net_text);
  const auto conv = lowrank_shape_of(n, at(n, "conv1"), 4);
  CHECK(conv.rows == 48);
  CHECK(conv.columns == 64 * 9);
  CHECK(lowrank_first_values(n, at(n, "conv1"), 4) == 48 * 4 + 48);  // P and the bias
  CHECK(why(net_text, "conv1").empty());
  CHECK(why(net_text, "ip1", 8).empty());
  CHECK(why(net_text, "ip2", 4).empty());
  CHECK(why(net_text, "ip2", 8) ==
        "at rank 8 its 10 x 200 matrix would save less than half of its values");
  CHECK(why(net_text, "loss") ==
        "it is none of InnerProduct, Convolution and Deconvolution, whose weights are matrices");
  CHECK(why(inputs + product("a", "x", 50, "param { lr_mult: 0 }") +
                test::layer("loss", "SoftmaxWithLoss", "a", "loss", "bottom: \"label\""),
            "a") == "lr_mult of its weights is 0: nothing is sent");
  ::caffe::SolverParameter solver;
  solver.set_clip_gradients(1);
  CHECK(why(net_text, "ip1", 4, solver).find("clip_gradients") == 0);
  solver.clear_clip_gradients();
  solver.set_debug_info(true);
  CHECK(why(net_text, "ip1", 4, solver).find("debug_info") == 0);
}

TEST_CASE("lowrank: the option takes every layer that can, a file those that it names") {
  const auto n = test::build(net_text);
  constexpr auto ps = route::parameter_server;
  const auto all = wanted(n, "lowrank", 8);
  CHECK(all[at(n, "conv1")] == route::lowrank_8);
  CHECK(all[at(n, "ip1")] == route::lowrank_8);
  CHECK(all[at(n, "ip2")] == ps);
  CHECK(wanted(n, "lowrank")[at(n, "ip2")] == route::lowrank_4);
  test::temporary_folder folder;
  const auto file = [&](const std::string& text) { return folder.write("routes", text).string(); };
  const auto mixed = wanted(n, file("ip1 lowrank\nip2 lowrank_4\nconv1 lowrank_8\n"), 8);
  CHECK(mixed[at(n, "conv1")] == route::lowrank_8);
  CHECK(mixed[at(n, "ip1")] == route::lowrank_8);
  CHECK(mixed[at(n, "ip2")] == route::lowrank_4);
  CHECK(wanted(n, file("ip1 lowrank\nip2 sfb\n"))[at(n, "ip1")] == route::lowrank_4);
  CHECK(wanted(n, file("ip1 lowrank_8_bfloat16\n"))[at(n, "ip1")] == route::lowrank_8_bfloat16);
  // What was chosen is written as a file that chooses the same again.
  const auto again = routes_file(n, {}, {{0, routes_of(n, mixed)}});
  CHECK(wanted(n, file(again)) == mixed);

  CHECK(refusal(file("ip2 lowrank_8\n"))
            .find("routes:1: layer \"ip2\" (InnerProduct) cannot go by "
                  "low rank: at rank 8 its 10 x 200 matrix would save "
                  "less than half of its values. Give it ps.") != std::string::npos);
  CHECK(refusal(file("ip1 lowrank\n@5 ip2 sfb\n"))
            .find("routes:2: it changes routes while training, and line 1 puts \"ip1\" on lowrank: "
                  "what low rank has kept back would be lost. Leave out the lines with @, or "
                  "lowrank.") != std::string::npos);
  CHECK(refusal(file("ip1 lowrank_16\n")).find("routes:1: expected \"layer ps\"") !=
        std::string::npos);
  CHECK(refusal("ps", 4).find("--rank 4: --routes ps puts no layer on lowrank.") == 0);
  CHECK(refusal(file("ip1 sfb\n"), 8).find("--rank 8: --routes ") == 0);
  CHECK(refusal("auto", 8).empty());
}

TEST_CASE("lowrank: of a program all goes by low rank that is a matrix, and half of it saved") {
  const auto n = declared_net(std::vector<declared_parameter>{{"conv", {32, 8, 3, 3}},
                                                              {"bias", {4096}},
                                                              {"small", {8, 3, 3, 3}},
                                                              {"given", {100, 100}, true},
                                                              {"bundle", {100, 100}, false, true}});
  const auto of = [&](std::size_t p) { return why_no_lowrank(n, p, 8, {}); };
  CHECK(of(0).empty());
  CHECK(lowrank_shape_of(n, 0, 8).columns == 72);
  CHECK(lowrank_first_values(n, 0, 8) == 32 * 8 + 1);  // P, and whether there is a gradient
  CHECK(of(1) == "it has fewer than two dimensions: only a matrix is sent as P and Q");
  CHECK(of(2) == "at rank 8 its 8 x 27 matrix would save less than half of its values");
  CHECK(of(3) == "worker 0 gives it as it is");
  CHECK(of(4) == "it is a bundle, and no matrix");
  CHECK(wanted(n, "lowrank", 8) == layer_routes{route::lowrank_8, route::parameter_server,
                                                route::parameter_server, route::parameter_server,
                                                route::parameter_server});
}

TEST_CASE(
    "lowrank: P and Q of what --wire rounds are bfloat16, half of the bytes; a bias beside P is "
    "not") {
  const auto n = test::build(net_text);
  const auto conv1 = at(n, "conv1"), ip1 = at(n, "ip1");
  const auto exact = wanted(n, "lowrank", 8);
  CHECK(rounded_lowrank(n, exact, {}) == exact);
  for (const auto format : {wire_format::float16, wire_format::bfloat16}) {
    wire_option all;
    all.all = format;
    const auto rounded = rounded_lowrank(n, exact, formats_of(n, all));
    CHECK(rounded[conv1] == route::lowrank_8_bfloat16);
    CHECK(rounded[ip1] == route::lowrank_8_bfloat16);
    CHECK(rounded[at(n, "ip2")] == exact[at(n, "ip2")]);
  }
  wire_option one;
  one.layers["ip1"] = wire_format::bfloat16;
  one.lines["ip1"] = 1;
  const auto of_one = rounded_lowrank(n, exact, formats_of(n, one));
  CHECK(of_one[conv1] == route::lowrank_8);
  CHECK(of_one[ip1] == route::lowrank_8_bfloat16);
  for (const auto l : {conv1, ip1}) {
    const auto s = lowrank_shape_of(n, l, 8);
    const auto beside = lowrank_first_values(n, l, 8) - s.p_values();
    const auto full = lowrank_bytes_of(n, l, route::lowrank_8);
    const auto half = lowrank_bytes_of(n, l, route::lowrank_8_bfloat16);
    CHECK(beside > 0);
    CHECK(full.both() == 4 * (s.p_values() + beside + s.q_values()));
    CHECK(half.first == 2 * s.p_values() + 4 * beside);
    CHECK(half.second == 2 * s.q_values());
  }
}

TEST_CASE("lowrank: every node has such a parameter, and no shard a part of it") {
  const auto n = test::build(net_text);
  const auto routes = routes_of(n, wanted(n, "lowrank", 8));
  const auto cut = make_partition(n, 3, routes);
  for (const auto& c : cut.chunks)
    CHECK((c.owner == every_worker) == (rank_of(cut, c.parameter) == 8));
  CHECK(rank_of(cut, parameter_id{0}) == 8);
  CHECK(rank_of(cut, as_id<parameter_id>(n.layers[at(n, "ip2")].parameters.front())) == 0);
}

TEST_CASE("lowrank: the sums of the largest layers are owned by different workers") {
  const auto n = test::build(net_text);
  const auto routes = routes_of(n, wanted(n, "lowrank"));
  const auto owners = lowrank_owners(n, routes, 2);
  CHECK(owners[at(n, "conv1")] != owners[at(n, "ip1")]);
  CHECK(owners[at(n, "conv1")] == worker_id{0});  // 624 rows and columns, and ip1 has 392
  CHECK(owners == lowrank_owners(n, routes, 2));
  CHECK(lowrank_owners(n, routes, 1)[at(n, "conv1")] == worker_id{0});
}

namespace {

route_load matrix(const char* name, std::size_t rows, std::size_t columns, std::uint32_t rank) {
  route_load l;
  l.name = name;
  l.values = static_cast<double>(rows * columns);
  l.lowrank = {rows, columns, rank};
  l.backward_flop = 1e9;
  return l;
}

route_rates nodes_at(double mbit_s) {
  route_rates r;
  r.workers = 4;
  r.link_mbit_s = mbit_s;
  r.product_s = [](const factor_shape& s) {
    return 2.0 * static_cast<double>(s.rows * s.outputs * s.inputs) / 2e10;
  };
  return r;
}

}  // namespace

TEST_CASE("decide_routes: low rank is taken where it saves time, and only where it is allowed") {
  const auto chosen = [](std::uint32_t rank, double mbit_s) {
    const auto d = decide_routes({matrix("conv", 512, 4608, rank)}, nodes_at(mbit_s));
    return d.empty() ? route::parameter_server : d.front().chosen;
  };
  CHECK(chosen(4, 100) == route::lowrank_4);
  CHECK(chosen(8, 100) == route::lowrank_8);
  CHECK(chosen(0, 100) == route::parameter_server);
  CHECK(chosen(4, 1e6) == route::parameter_server);
}

TEST_CASE(
    "decide_routes: factors, which keep the gradient, go before low rank where both are fast") {
  auto load = matrix("fc", 4096, 9216, 8);
  load.factors = {2, 4096, 9216};  // as many values as at rank 2
  CHECK(decide_routes({load}, nodes_at(100)).front().chosen == route::factor_broadcast);
  load.factors.rows = 256;
  CHECK(decide_routes({load}, nodes_at(100)).front().chosen == route::lowrank_8);
}

TEST_CASE("routes_table: a column of low rank where it was asked for, with its bytes and reason") {
  auto small = matrix("small", 20, 30, 0);
  small.lowrank_refusal = "at rank 4 its 20 x 30 matrix would save less than half of its values";
  const auto rates = nodes_at(100);
  const auto d = decide_routes({matrix("conv", 512, 4608, 4), small}, rates);
  REQUIRE(d.size() == 2);
  CHECK(d[0].lowrank.bytes == 4 * (512 + 4608) * 4 * 2 * 3 / 4.0);
  const auto table = routes_table(d, rates);
  CHECK(table.find("lowrank MB") != std::string::npos);
  CHECK(table.find("512 x 4608") != std::string::npos);
  CHECK(table.find("lowrank_4") != std::string::npos);
  CHECK(table.find("of making P, Q and their product") != std::string::npos);
  CHECK(table.find(small.lowrank_refusal) != std::string::npos);
  CHECK(routes_json(d, rates).text().find("\"rank\":4") != std::string::npos);
}
