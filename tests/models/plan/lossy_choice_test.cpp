#include "models/plan/lossy_choice.hpp"

#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace poseidon;

namespace {

/// Five convolutions over 16 x 16, of 36,864 values each where they have 64 channels, and a classifier.
std::string deep_net(int classes = 10, int channels = 64) {
  std::string text = test::input("x", {8, channels, 16, 16}) + test::input("label", {8});
  std::string below = "x";
  for (int i = 1; i <= 5; ++i) {
    const auto name = "conv" + std::to_string(i);
    text += test::layer(
        name, "Convolution", below, name,
        "convolution_param { num_output: " + std::to_string(channels) + " kernel_size: 3 pad: 1 }");
    below = name;
  }
  text += test::layer("ip", "InnerProduct", below, "ip",
                      "inner_product_param { num_output: " + std::to_string(classes) + " }");
  return text + test::layer("loss", "SoftmaxWithLoss", "ip", "loss", "bottom: \"label\"");
}

route_rates at(double mbit_s, double gflop_s = 100, std::size_t workers = 4) {
  route_rates r;
  r.workers = workers;
  r.link_mbit_s = mbit_s;
  r.flop_s = gflop_s * 1e9;
  r.product_s = [gflop_s](const factor_shape& s) {
    return 2.0 * static_cast<double>(s.rows * s.outputs * s.inputs) / (gflop_s * 1e9);
  };
  return r;
}

layer_routes on_the_server_all(const std::vector<route_load>& loads) {
  return layer_routes(loads.size(), route::parameter_server);
}

std::vector<route_load> loads_in(const net& n, const parameter_formats& formats, bool lowrank) {
  return route_loads(n, 1, {}, formats,
                     std::vector<std::uint32_t>(n.layers.size(), lowrank ? rank_of_ladder : 0));
}

loads_by_rung loads_of(const net& n) {
  return [&n](const parameter_formats& formats, bool lowrank) {
    return loads_in(n, formats, lowrank);
  };
}

const lossiness in_int4{wire_format::int4}, with_lowrank{wire_format::int4, true};

lossy_choice choose(const net& n, const route_rates& r, const lossiness& harshest = in_int4) {
  return choose_lossy(n, loads_of(n), r, harshest, on_the_server_all);
}

/// Low rank wherever it is allowed.
layer_routes lowrank_all(const std::vector<route_load>& loads) {
  layer_routes out;
  for (const auto& l : loads)
    out.push_back(l.lowrank.rank > 0 ? route::lowrank_8 : route::parameter_server);
  return out;
}

double predicted_ms(const net& n, const route_rates& r, const parameter_formats& formats) {
  const auto loads = route_loads(n, 1, {}, formats);
  return forecast(loads, r, on_the_server_all(loads)).iteration_ms;
}

}  // namespace

TEST_CASE("lossy_choice: a fast wire rounds nothing") {
  const auto c = choose(test::build(deep_net()), at(100000));
  CHECK(c.rungs.size() == 4);
  CHECK(c.rung == 0);
  CHECK(c.formats.empty());
  CHECK(c.iteration_ms == c.rungs[0].iteration_ms);
  CHECK(lossy_note(c, in_int4).find("Nothing is rounded") != std::string::npos);
}

TEST_CASE(
    "lossy_choice: a slow wire takes the roughest rung that is allowed, and small parameters stay "
    "float32") {
  const auto n = test::build(deep_net());
  for (const auto harshest : {wire_format::bfloat16, wire_format::int8, wire_format::int4}) {
    const auto c = choose(n, at(1), {harshest});
    CHECK(c.rungs.back().is == lossiness{harshest});
    CHECK(c.rung == c.rungs.size() - 1);
    REQUIRE(c.formats.size() == n.parameters.size());
    for (const auto p : c.formats.ids()) {
      CAPTURE(n.parameters[value(p)].name);
      const bool is_small = count(n.parameters[value(p)].shape) < 4096;
      CHECK(c.formats[p] == (is_small ? wire_format::float32 : harshest));
    }
    CHECK(lossy_note(c, {harshest}).find("no longer that of one machine") != std::string::npos);
  }
}

TEST_CASE("lossy_choice: what hides behind the pass is rounded less than what does not") {
  const auto n = test::build(deep_net());
  const auto rates = at(700);
  const auto c = choose(n, rates);
  std::map<wire_format, int> layers;
  for (const auto p : c.formats.ids())
    if (n.parameters[value(p)].slot == 0) ++layers[c.formats[p]];
  CHECK(layers.size() > 1);
  double best = c.rungs[0].iteration_ms;
  for (const auto& r : c.rungs) best = std::min(best, r.iteration_ms);
  CHECK(c.iteration_ms <= 1.02 * best);
  CHECK(c.iteration_ms == doctest::Approx(predicted_ms(n, rates, c.formats)));
}

TEST_CASE(
    "lossy_choice: in 300 random settings the choice is within 2 % of the best rung, and no rung "
    "milder than the one taken is") {
  const auto n = test::build(deep_net(2000));
  std::mt19937 random(7);
  std::uniform_real_distribution<double> log_rate(0, 5), log_flops(0, 4);
  for (int i = 0; i < 300; ++i) {
    const auto rates =
        at(std::pow(10, log_rate(random)), std::pow(10, log_flops(random)), 2 + random() % 15);
    CAPTURE(rates.link_mbit_s);
    CAPTURE(rates.flop_s);
    const auto c = choose(n, rates);
    double best = c.rungs[0].iteration_ms;
    for (const auto& r : c.rungs) best = std::min(best, r.iteration_ms);
    for (std::size_t k = 0; k < c.rung; ++k) CHECK(c.rungs[k].iteration_ms > 1.02 * best);
    CHECK(c.iteration_ms <= 1.02 * best);
    CHECK(c.iteration_ms <= 1.01 * c.rungs[c.rung].iteration_ms);
    CHECK(c.iteration_ms == doctest::Approx(predicted_ms(n, rates, c.formats)));
    if (c.rung == 0) CHECK(c.formats.empty());
  }
}

TEST_CASE("lossy_choice: nothing is rounded where that takes the host longer than the wire saves") {
  const auto n = test::build(deep_net());
  auto rates = at(700);
  REQUIRE(choose(n, rates).rung > 0);
  rates.round_s_value = 1e-7;
  CHECK(choose(n, rates).rung == 0);
}

TEST_CASE("lossy_choice: shared parameters have one format") {
  const auto share = [](const char* name, const char* bottom) {
    return test::layer(
        name, "InnerProduct", bottom, name,
        "param { name: \"w\" } inner_product_param { num_output: 1024 bias_term: false }");
  };
  const auto n = test::build(
      test::input("x", {8, 1024}) + test::input("label", {8}) + share("a", "x") + share("b", "a") +
      test::layer("loss", "SoftmaxWithLoss", "b", "loss", "bottom: \"label\""));
  const auto c = choose(n, at(1));
  CHECK(c.formats == parameter_formats{wire_format::int4});
}

TEST_CASE("lossy_choice: a layer on the factor route is left out of the reckoning") {
  const auto n = test::build(deep_net(4096));
  const auto factors = [](const std::vector<route_load>& loads) {
    layer_routes out;
    for (const auto& l : loads)
      out.push_back(l.name == "ip" ? route::factor_broadcast : route::parameter_server);
    return out;
  };
  const auto c = choose_lossy(n, loads_of(n), at(100), in_int4, factors);
  CHECK(c.rungs[0].iteration_ms < choose(n, at(100)).rungs[0].iteration_ms);
  // In any format its factors are the same bytes, so it gets none.
  CHECK(format_of(c.formats, as_id<parameter_id>(n.layers[n.layers.size() - 2].parameters[0])) ==
        wire_format::float32);
}

TEST_CASE(
    "lossy_choice: low rank where int4 still waits for the wire, and no further than needed") {
  const auto n = test::build(deep_net(10, 256));
  const auto on = [&](double mbit_s) {
    return choose_lossy(n, loads_of(n), at(mbit_s), with_lowrank, lowrank_all);
  };
  const auto slow = on(1);
  REQUIRE(slow.rungs.size() == 5);
  CHECK(slow.rungs.back().is == with_lowrank);
  CHECK(slow.rung == 4);
  CHECK(slow.rungs[4].bytes < slow.rungs[3].bytes / 2);
  for (std::size_t l = 0; l < slow.loads.size(); ++l)
    CHECK((slow.loads[l].lowrank.rank > 0) == (n.layers[l].type == "Convolution"));
  CHECK(on(1e5).rung == 0);
  // Between the two there is a rate at which some layers hide, and go by the server.
  bool some_hide = false;
  for (double mbit_s = 1; mbit_s < 1e4; mbit_s *= 1.2) {
    const auto c = on(mbit_s);
    if (c.rung < 4) continue;
    const auto by_lowrank = std::count_if(c.loads.begin(), c.loads.end(),
                                          [](const auto& l) { return l.lowrank.rank > 0; });
    some_hide = some_hide || (by_lowrank > 0 && by_lowrank < 5);
  }
  CHECK(some_hide);
}

TEST_CASE("lossy_choice: where no matrix is large enough for a format, low rank is no exact run") {
  std::string text = test::input("x", {8, 60}) + test::input("label", {8});
  std::string below = "x";
  for (const std::string name : {"ip1", "ip2"}) {
    text +=
        test::layer(name, "InnerProduct", below, name, "inner_product_param { num_output: 60 }");
    below = name;
  }
  const auto n = test::build(
      text + test::layer("loss", "SoftmaxWithLoss", below, "loss", "bottom: \"label\""));
  const auto c = choose_lossy(n, loads_of(n), at(0.01), with_lowrank, lowrank_all);
  CHECK(c.rung == 4);
  CHECK(c.formats.empty());
  CHECK(c.by_lowrank);
  CHECK(lossy_note(c, with_lowrank).find("no longer that of one machine") != std::string::npos);
  CHECK_FALSE(choose_lossy(n, loads_of(n), at(1e5), with_lowrank, lowrank_all).by_lowrank);
}

TEST_CASE("lossy_choice: with low rank, too, the choice is within 2 % of the best rung") {
  const auto n = test::build(deep_net(2000));
  std::mt19937 random(11);
  std::uniform_real_distribution<double> log_rate(0, 5), log_flops(0, 4);
  int by_lowrank = 0, on_other_rungs = 0;
  for (int i = 0; i < 200; ++i) {
    const auto rates =
        at(std::pow(10, log_rate(random)), std::pow(10, log_flops(random)), 2 + random() % 15);
    CAPTURE(rates.link_mbit_s);
    CAPTURE(rates.flop_s);
    const auto c = choose_lossy(n, loads_of(n), rates, with_lowrank, lowrank_all);
    double best = c.rungs[0].iteration_ms;
    for (const auto& r : c.rungs) best = std::min(best, r.iteration_ms);
    for (std::size_t k = 0; k < c.rung; ++k) CHECK(c.rungs[k].iteration_ms > 1.02 * best);
    CHECK(c.iteration_ms <= 1.02 * best);
    CHECK(c.iteration_ms <= 1.01 * c.rungs[c.rung].iteration_ms);
    CHECK(c.iteration_ms ==
          doctest::Approx(forecast(c.loads, rates, lowrank_all(c.loads)).iteration_ms));
    (c.by_lowrank ? by_lowrank : on_other_rungs) += 1;
  }
  CHECK(by_lowrank > 20);
  CHECK(on_other_rungs > 20);
}

TEST_CASE("lossy_choice: the rungs by name") {
  CHECK(parse_lossy("none").is_none());
  CHECK(parse_lossy("int4") == in_int4);
  CHECK(parse_lossy("lowrank") == with_lowrank);
  for (const auto* word : {"", "float32", "float16", "int2", "outer"})
    CHECK_THROWS_WITH_AS(parse_lossy(word),
                         doctest::Contains("none, bfloat16, int8, int4 and lowrank"), spec_error);
}

TEST_CASE("lossy_choice: the table has every rung and what is chosen") {
  const auto rates = at(100);
  const auto c = choose(test::build(deep_net()), rates);
  const auto table = ladder_table(c, rates);
  for (const auto* word : {"none", "bfloat16", "int8", "int4", "chosen"})
    CHECK(table.find(std::string("\n") + word + " ") != std::string::npos);
  const auto json = ladder_json(c).text();
  CHECK(json.find("\"lossy\":\"int8\"") != std::string::npos);
  CHECK(json.find("\"taken\":\"int4\"") != std::string::npos);
}
