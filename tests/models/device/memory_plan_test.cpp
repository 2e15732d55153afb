// Planned memory is safe in every order in which a net's events may come, and worth planning.
#include "models/device/memory_plan.hpp"

#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace poseidon;

namespace {

/// Layers that take one or two of the blobs so far; some work in place.
std::string random_net(std::mt19937& dice) {
  std::string text = test::input("b0", {2, 8});
  std::vector<std::string> open{"b0"};
  for (int l = 1; l < 14; ++l) {
    const auto name = "b" + std::to_string(l);
    const auto bottom = open[dice() % open.size()];
    const auto other = open[dice() % open.size()];
    if (dice() % 3 == 0 && other != bottom) {
      text += "layer { name: 'l" + std::to_string(l) + "' type: 'Eltwise' bottom: '" + bottom +
              "' bottom: '" + other + "' top: '" + name + "' }\n";
    } else {
      text += test::layer("l" + std::to_string(l), "InnerProduct", bottom, name,
                          "inner_product_param { num_output: 8 }");
      if (dice() % 2 == 0) text += test::layer("r" + std::to_string(l), "ReLU", name, name);
    }
    open.push_back(name);
  }
  return text;
}

/// Data and diff of every blob, used by all layers that have it as bottom or top.
std::vector<planned_buffer> all_buffers(const net& n) {
  std::vector<planned_buffer> out(2 * n.blobs.size());
  for (std::size_t b = 0; b < n.blobs.size(); ++b)
    out[2 * b].floats = out[2 * b + 1].floats = 10 + 7 * b;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (const auto* list : {&n.layers[l].bottoms, &n.layers[l].tops})
      for (const auto b : *list) {
        out[2 * b].uses.push_back({l, false});
        out[2 * b].uses.push_back({l, true});
        out[2 * b + 1].uses.push_back({l, true});
      }
  return out;
}

/// One legal order of all events, drawn by the rules by which layers start their work.
std::vector<net_event> some_order(const net& n, std::mt19937& dice) {
  const auto layers = n.layers.size();
  std::vector<bool> forward(layers), backward(layers);
  std::vector<std::vector<std::size_t>> producers(layers), consumers(layers);
  for (std::size_t l = 0; l < layers; ++l)
    for (const auto b : n.layers[l].bottoms)
      if (const auto p = producer(n, b, l)) producers[l].push_back(*p), consumers[*p].push_back(l);
  const auto all = [](const std::vector<bool>& done, const std::vector<std::size_t>& which) {
    return std::all_of(which.begin(), which.end(), [&](std::size_t l) { return done[l]; });
  };
  std::vector<net_event> order;
  while (order.size() < 2 * layers) {
    const auto l = dice() % layers;
    if (!forward[l] && all(forward, producers[l])) {
      forward[l] = true;
      order.push_back({l, false});
    } else if (forward[l] && !backward[l] && all(backward, consumers[l])) {
      backward[l] = true;
      order.push_back({l, true});
    }
  }
  return order;
}

bool overlap(const memory_plan& plan, const std::vector<planned_buffer>& buffers, std::size_t a,
             std::size_t b) {
  return plan.offsets[a] < plan.offsets[b] + buffers[b].floats &&
         plan.offsets[b] < plan.offsets[a] + buffers[a].floats;
}

std::size_t sum(const std::vector<planned_buffer>& buffers) {
  std::size_t s = 0;
  for (const auto& b : buffers) s += b.floats;
  return s;
}

}  // namespace

TEST_CASE("memory: whatever the order of events, no two buffers that are in use share memory") {
  std::mt19937 dice(5);
  for (int round = 0; round < 30; ++round) {
    const auto n = test::build(random_net(dice));
    const auto buffers = all_buffers(n);
    const auto plan = plan_memory(event_order(n), buffers);
    CHECK(plan.floats < sum(buffers));
    for (int draw = 0; draw < 20; ++draw) {
      const auto order = some_order(n, dice);
      std::vector<std::size_t> first(buffers.size(), order.size()), last(buffers.size(), 0);
      for (std::size_t at = 0; at < order.size(); ++at)
        for (std::size_t b = 0; b < buffers.size(); ++b)
          for (const auto& u : buffers[b].uses)
            if (u.layer == order[at].layer && u.backward == order[at].backward) {
              first[b] = std::min(first[b], at);
              last[b] = at;
            }
      for (std::size_t a = 0; a < buffers.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          if (first[a] <= last[b] && first[b] <= last[a])
            REQUIRE_MESSAGE(!overlap(plan, buffers, a, b),
                            "round " << round << ": " << a << ", " << b);
    }
  }
}

TEST_CASE("memory: a chain's forward pass needs two buffers, however long it is") {
  std::string text = test::input("b0", {1, 160});
  for (int l = 1; l < 10; ++l)
    text += test::layer("l" + std::to_string(l), "InnerProduct", "b" + std::to_string(l - 1),
                        "b" + std::to_string(l), "inner_product_param { num_output: 160 }");
  const auto n = test::build(text, ::caffe::TEST);
  std::vector<planned_buffer> buffers(n.blobs.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (const auto* list : {&n.layers[l].bottoms, &n.layers[l].tops})
      for (const auto b : *list)
        buffers[b] = {160, std::move(buffers[b].uses)}, buffers[b].uses.push_back({l, false});
  CHECK(plan_memory(event_order(n), buffers).floats == 2 * 160);
}

TEST_CASE("memory: parallel branches have no order, a chain has") {
  const auto n = test::build(
      test::input("x", {1, 4}) +
      test::layer("a", "InnerProduct", "x", "a", "inner_product_param { num_output: 4 }") +
      test::layer("b", "InnerProduct", "x", "b", "inner_product_param { num_output: 4 }") +
      test::layer("a2", "ReLU", "a", "a2"));
  const event_order order(n);
  const auto at = [&](const std::string& name) {
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (n.layers[l].name == name) return l;
    return n.layers.size();
  };
  CHECK_FALSE(order.before({at("a"), false}, {at("b"), false}));
  CHECK_FALSE(order.before({at("b"), false}, {at("a"), false}));
  CHECK(order.before({at("a"), false}, {at("a2"), true}));
  CHECK(order.before({at("a2"), true}, {at("a"), true}));
  CHECK_FALSE(order.before({at("a"), true}, {at("a2"), true}));
  CHECK_FALSE(order.before({at("a"), false}, {at("a"), false}));
}

TEST_CASE("memory_plan: the work of planning grows with the pairs of layers, not faster") {
  const auto work = [](int layers) {
    std::string text = test::input("b0", {2, 8});
    for (int l = 0; l < layers; ++l)
      text += test::layer("l" + std::to_string(l), "ReLU", "b" + std::to_string(l),
                          "b" + std::to_string(l + 1));
    const auto n = test::build(text);
    return static_cast<double>(plan_memory(event_order(n), all_buffers(n)).compared);
  };
  const auto base = work(100), twice = work(200), four_times = work(400);
  CHECK(twice < 4.5 * base);
  CHECK(four_times < 4.5 * twice);
  CHECK(four_times < 20 * 400 * 400);
}
