#include "models/plan/route_choice.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

route_load convolutions(double flop, double values = 2e6) {
  route_load l;
  l.name = "conv";
  l.values = values;
  l.backward_flop = flop;
  return l;
}

route_load product(const char* name, std::size_t rows, std::size_t outputs, std::size_t inputs) {
  route_load l;
  l.name = name;
  l.factors = {rows, outputs, inputs};
  l.values = static_cast<double>(outputs * inputs + outputs);
  l.backward_flop = 4.0 * static_cast<double>(rows * outputs * inputs);
  return l;
}

route_rates at(std::size_t workers, double mbit_s, double gflop_s) {
  route_rates r;
  r.workers = workers;
  r.link_mbit_s = mbit_s;
  r.flop_s = gflop_s * 1e9;
  r.product_s = [gflop_s](const factor_shape& s) {
    return 2.0 * static_cast<double>(s.rows * s.outputs * s.inputs) / (gflop_s * 1e9);
  };
  r.update_s_value = 1e-9;
  r.add_s_value = 5e-10;
  return r;
}

}  // namespace

TEST_CASE("decide_routes: bytes are those of the theory, for what one node sends") {
  const auto d = decide_routes({product("fc6", 32, 4096, 9216)}, at(4, 1000, 100)).at(0);
  const double values = 4096.0 * 9216 + 4096;
  CHECK(d.server.bytes == doctest::Approx(8 * values * 3 / 4));
  CHECK(d.factors.bytes == doctest::Approx(4.0 * 32 * (4096 + 9216) * 3));
  CHECK(d.server.wire_ms == doctest::Approx(d.server.bytes * 8 / 1e9 * 1e3));
}

TEST_CASE("decide_routes: a reduced format halves the bytes of the server's route alone") {
  auto load = product("fc6", 32, 4096, 9216);
  const auto exact = decide_routes({load}, at(4, 1000, 100)).at(0);
  load.value_bytes = 2;
  const auto half = decide_routes({load}, at(4, 1000, 100)).at(0);
  CHECK(half.server.bytes == doctest::Approx(exact.server.bytes / 2));
  CHECK(half.factors.bytes == exact.factors.bytes);
}

TEST_CASE("decide_routes: nodes that keep copies of solver state get float32 in any format") {
  auto load = product("fc6", 32, 4096, 9216);
  load.value_bytes = 2;
  const auto ratio = [&](std::size_t nodes, std::size_t keepers) {
    auto rates = at(nodes, 1000, 100);
    const auto without = decide_routes({load}, rates).at(0).server.bytes;
    rates.keepers = keepers;
    return decide_routes({load}, rates).at(0).server.bytes / without;
  };
  CHECK(ratio(2, 1) == doctest::Approx(1.5));
  CHECK(ratio(4, 1) == doctest::Approx(7.0 / 6));
  CHECK(ratio(2, 2) == doctest::Approx(1.5));  // there is one other node only
  load.value_bytes = 4;
  CHECK(ratio(4, 2) == doctest::Approx(1));
}

TEST_CASE("decide_routes: a big layer on a slow wire broadcasts, a small one does not") {
  const auto d = decide_routes(
      {convolutions(1e10), product("fc6", 32, 4096, 9216), product("fc8", 256, 10, 4096)},
      at(4, 1000, 100));
  REQUIRE(d.size() == 2);
  CHECK(d[0].load.name == "fc6");
  CHECK(d[0].chosen == route::factor_broadcast);
  CHECK(d[0].why.find("saves ") == 0);
  CHECK(d[1].chosen == route::parameter_server);
  CHECK(d[1].why == "factors are more bytes");
}

TEST_CASE("decide_routes: where the byte rule would lose by 20 % and more on CPU nodes, we stay") {
  // 10 Gbit/s, 8 nodes of 50 GFLOP/s: half the bytes, but 69 GFLOP of making the gradient again.
  const auto d =
      decide_routes({convolutions(1e10), product("fc7", 256, 4096, 4096)}, at(8, 10000, 50)).at(0);
  CHECK(d.byte_rule);
  CHECK(d.factors.bytes < d.server.bytes);
  CHECK(d.factors.total_ms() > 1.2 * d.server.total_ms());
  CHECK(d.chosen == route::parameter_server);
  CHECK(d.why.find("making the gradient again") != std::string::npos);
  // A device that is a hundred times as fast does as the byte rule says.
  CHECK(decide_routes({convolutions(1e10), product("fc7", 256, 4096, 4096)}, at(8, 1000, 5000))
            .at(0)
            .chosen == route::factor_broadcast);
}

TEST_CASE("decide_routes: what hides behind the rest of the backward pass costs nothing") {
  const auto alone = decide_routes({product("fc", 32, 1000, 1000)}, at(2, 1000, 100)).at(0);
  CHECK(alone.server.exposed_ms >= alone.server.wire_ms);
  const auto hidden =
      decide_routes({convolutions(1e12, 0), product("fc", 32, 1000, 1000)}, at(2, 1000, 100)).at(0);
  CHECK(hidden.server.exposed_ms == doctest::Approx(0));
  CHECK(hidden.factors.exposed_ms == doctest::Approx(0));
}

TEST_CASE("decide_routes: a layer waits for the wire that the layers above it have filled") {
  const auto busy = decide_routes(
      {convolutions(4e9, 0), product("low", 8, 500, 500), product("high", 2048, 8000, 8000)},
      at(2, 1000, 1000));
  const auto free =
      decide_routes({convolutions(4e9, 0), product("low", 8, 500, 500)}, at(2, 1000, 1000));
  CHECK(busy[0].server.exposed_ms > free[0].server.exposed_ms);
}

TEST_CASE(
    "decide_routes: a layer that could hide broadcasts if the layers below it need the wire") {
  // Alone "high" sends its gradient while "low" and the convolutions compute; but everything waits for the wire.
  const auto d = decide_routes(
      {convolutions(2e11, 0), product("low", 64, 4096, 9216), product("high", 64, 1000, 4096)},
      at(4, 100, 100));
  CHECK(d[1].load.name == "high");
  CHECK(d[1].server.exposed_ms < 0.1 * d[1].server.wire_ms);
  CHECK(d[1].chosen == route::factor_broadcast);
}

TEST_CASE("decide_routes: what nobody would notice in an iteration stays on the server") {
  const auto small = product("ip2", 8, 100, 500);
  const auto slow = at(2, 100, 100);
  CHECK(decide_routes({small}, slow).at(0).chosen == route::factor_broadcast);
  // The same layer below seconds of convolutions, whose own wire is long past.
  const auto d = decide_routes({small, convolutions(1e12, 0)}, slow).at(0);
  CHECK(d.factors.total_ms() < d.server.total_ms());
  CHECK(d.chosen == route::parameter_server);
  CHECK(d.why == "factors would save less than 5 % of that, or 5 % of the iteration");
}

TEST_CASE(
    "decide_routes: of many layers none of which anybody would notice only so many stay as nobody "
    "notices together") {
  std::vector<route_load> loads;
  for (int i = 0; i < 800; ++i) loads.push_back(product("fc", 4, 512, 512));
  const auto rates = at(4, 100, 100);
  const auto all = [&](route by) {
    return forecast(loads, rates, layer_routes(loads.size(), by)).iteration_ms;
  };
  const auto exact = all(route::parameter_server), best = all(route::factor_broadcast);
  REQUIRE(exact > 5 * best);
  layer_routes chosen;
  for (const auto& d : decide_routes(loads, rates)) chosen.push_back(d.chosen);
  CHECK(forecast(loads, rates, chosen).iteration_ms < 1.05 * best);
}

TEST_CASE("decide_routes: what cannot broadcast stays, and says why") {
  auto l = product("fc", 1, 4096, 4096);
  l.refusal = "lr_mult of its weights is 0: nothing is sent";
  const auto d = decide_routes({l}, at(4, 100, 100)).at(0);
  CHECK(d.chosen == route::parameter_server);
  CHECK(d.why == l.refusal);
}

TEST_CASE("routes_table and routes_json: every layer with both costs and the choice") {
  auto odd = product("fc \"6\"\n", 32, 4096, 9216);
  const auto rates = at(4, 1000, 100);
  const auto d = decide_routes({odd}, rates);
  const auto table = routes_table(d, rates);
  CHECK(table.find("4096 x 9216") != std::string::npos);
  CHECK(table.find("factor_broadcast") != std::string::npos);
  const auto json = routes_json(d, rates).text();
  CHECK(json.find(R"("layer":"fc \"6\"\u000a")") != std::string::npos);
  CHECK(json.find(R"("choice":"factor_broadcast")") != std::string::npos);
}

TEST_CASE(
    "decide_routes: with shares of the batch the largest one's factors travel, and all nodes' make "
    "the gradient") {
  // This node has 8 of 96 samples, another 72: a third of what all would send with equal shares is its own.
  auto r = at(3, 1000, 100);
  const auto equal = decide_routes({product("fc6", 32, 4096, 9216)}, r).at(0);
  r.largest_share = 72.0 / 8;
  r.all_shares = 96.0 / 8;
  const auto shared = decide_routes({product("fc6", 8, 4096, 9216)}, r).at(0);
  CHECK(shared.factors.bytes == doctest::Approx(4.0 * 72 * (4096 + 9216) * 2));
  CHECK(shared.factors.tail_ms == doctest::Approx(equal.factors.tail_ms));
  CHECK(shared.server.bytes == equal.server.bytes);
}

TEST_CASE(
    "forecast: lanes and wire that take as long wait for each other; where one takes much longer "
    "it decides") {
  const auto iteration_ms = [](double compute_s, double wire_s) {
    auto rates = at(2, 1000, 1);
    rates.update_s_value = rates.add_s_value = 0;
    const auto load = convolutions(1e9 * compute_s / 1.5, wire_s * 1e9 / 32);
    return forecast({load}, rates, layer_routes{route::parameter_server}).iteration_ms;
  };
  CHECK(iteration_ms(1, 1) == doctest::Approx(1189).epsilon(0.001));
  CHECK(iteration_ms(2.2, 1) == doctest::Approx(2200).epsilon(0.012));
  CHECK(iteration_ms(1, 2.2) == doctest::Approx(2200).epsilon(0.012));
  CHECK(iteration_ms(1, 0.8) < iteration_ms(1, 0.9));
}

TEST_CASE("take_pass_time: without a wire the forecast is the time of the pass") {
  for (const double pass_s : {0.001, 0.3, 20.0})
    for (const double lanes : {1.0, 2.0}) {
      CAPTURE(pass_s);
      auto rates = at(2, 1e12, 100);
      rates.lanes = lanes;
      rates.update_s_value = rates.add_s_value = 0;
      const std::vector<route_load> loads{convolutions(1e10), product("fc", 8, 100, 100),
                                          convolutions(3e9)};
      take_pass_time(rates, loads, pass_s);
      const auto seen = forecast(loads, rates, layer_routes(3, route::parameter_server));
      CHECK(seen.iteration_ms == doctest::Approx(1e3 * pass_s).epsilon(0.001));
    }
}

TEST_CASE(
    "take_pass_time: a product that took longer alone than the whole pass leaves the other layers "
    "a part of it") {
  auto rates = at(2, 1e12, 0.001);
  const std::vector<route_load> loads{product("fc", 8, 1000, 1000), convolutions(1e9)};
  take_pass_time(rates, loads, 0.3);
  CHECK(rates.flop_s == doctest::Approx((1e9 + 1.6e7) / 0.02).epsilon(0.001));
}

TEST_CASE(
    "decide_routes: rounding takes time of the host, on the server's route in a reduced format") {
  auto load = convolutions(1e9, 1e6);
  auto rates = at(4, 1000, 100);
  const auto tail_ms = [&] {
    load.lowrank_refusal = "so that it is listed";
    return decide_routes({load}, rates).at(0).server.tail_ms;
  };
  const auto exact = tail_ms();
  rates.round_s_value = 1e-9;
  CHECK(tail_ms() == exact);
  load.value_bytes = 2;
  CHECK(tail_ms() == doctest::Approx(exact + 3));
}
