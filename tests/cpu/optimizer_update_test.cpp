#include "cpu/optimizer_update.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

using namespace poseidon;

namespace {

/// A parameter that is stepped `steps` times with the same seeded gradients, in pieces of `piece` values.
struct stepped {
  std::vector<float> values, gradient;
  std::vector<std::vector<float>> history;

  stepped(optimizer_rule rule, optimizer_step step, int steps, std::size_t piece)
      : values(1003), gradient(1003), history(history_count(rule), std::vector<float>(1003)) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (auto& v : values) v = normal(random);
    for (step.number = 1; step.number <= static_cast<std::uint64_t>(steps); ++step.number) {
      for (auto& g : gradient) g = normal(random);
      for (std::size_t at = 0; at < values.size(); at += piece) {
        const auto n = std::min(piece, values.size() - at);
        std::vector<state_array> state;
        for (auto& h : history) state.push_back(std::span(h).subspan(at, n));
        const auto w = std::span(values).subspan(at, n);
        cpu::update(rule, step, 0.5f, std::span<const float>(gradient).subspan(at, n), w, w, state);
      }
    }
  }
};

optimizer_step adam_step() {
  optimizer_step s;
  s.rate = 0.01;
  s.weight_decay = 0.1;
  s.momentum = 0.9;
  s.beta2 = 0.999;
  s.epsilon = 1e-8;
  return s;
}

optimizer_step sgd_step() {
  optimizer_step s;
  s.rate = 0.1;
  s.weight_decay = 0.01;
  s.momentum = 0.9;
  s.dampening = 0.5;
  return s;
}

/// One value, one step, by the formulas of torch.optim, in double.
double stepped_once(optimizer_rule rule, const optimizer_step& s, double w, double gradient) {
  double g = 0.5 * gradient;
  if (rule != optimizer_rule::adamw) g += s.weight_decay * w;
  if (rule == optimizer_rule::sgd) return w - s.rate * (s.nesterov ? g + s.momentum * g : g);
  if (rule == optimizer_rule::adamw) w *= 1 - s.rate * s.weight_decay;
  const double m = (1 - s.momentum) * g / (1 - s.momentum),
               v = (1 - s.beta2) * g * g / (1 - s.beta2);
  return w - s.rate * m / (std::sqrt(v) + s.epsilon);
}

}  // namespace

TEST_CASE("optimizer step: the first one is that of the formulas") {
  auto nesterov = sgd_step();
  nesterov.nesterov = true;
  auto lerp = adam_step();
  lerp.lerp = true;
  const std::vector<std::pair<optimizer_rule, optimizer_step>> cases{
      {optimizer_rule::sgd, sgd_step()},
      {optimizer_rule::sgd, nesterov},
      {optimizer_rule::adam, adam_step()},
      {optimizer_rule::adam, lerp},
      {optimizer_rule::adamw, adam_step()}};
  for (const auto& [rule, step] : cases) {
    const stepped none(rule, step, 0, 1003), one(rule, step, 1, 1003);
    for (std::size_t i = 0; i < one.values.size(); ++i)
      CHECK(
          one.values[i] ==
          doctest::Approx(stepped_once(rule, step, none.values[i], one.gradient[i])).epsilon(1e-5));
  }
}

TEST_CASE("optimizer step: momentum is dampened from the second step on") {
  const float w = 0;
  float fresh = 0, momentum = 0;
  const float g = 2;
  auto step = sgd_step();
  step.weight_decay = 0;
  const std::vector<state_array> state{std::span(&momentum, 1)};
  const auto once = [&](std::uint64_t number) {
    step.number = number;
    cpu::update(optimizer_rule::sgd, step, 1, std::span(&g, 1), std::span(&w, 1),
                std::span(&fresh, 1), state);
  };
  once(1);
  CHECK(momentum == 2);
  once(2);
  CHECK(momentum == doctest::Approx(2 * 0.9 + 0.5 * 2));
}

TEST_CASE("optimizer step: where a parameter is cut does not change a bit") {
  for (const auto rule : {optimizer_rule::sgd, optimizer_rule::adam, optimizer_rule::adamw}) {
    const auto step = rule == optimizer_rule::sgd ? sgd_step() : adam_step();
    const stepped whole(rule, step, 4, 1003), cut(rule, step, 4, 7);
    CHECK(whole.values == cut.values);
    CHECK(whole.history == cut.history);
  }
}

TEST_CASE(
    "optimizer step: state beside the former one has the same bits, and the former one stays") {
  const std::vector<float> w{1, -2, 3}, g{0.5f, 0.25f, -1};
  for (const auto rule : {optimizer_rule::sgd, optimizer_rule::adam, optimizer_rule::adamw})
    for (const double momentum : {0.0, 0.9}) {
      CAPTURE(std::string(name_of(rule)));
      CAPTURE(momentum);
      auto step = rule == optimizer_rule::sgd ? sgd_step() : adam_step();
      step.momentum = momentum;
      step.number = 3;
      const std::vector<std::vector<float>> before(history_count(rule), {4, 5, 6});
      auto in_place = before, after = before;
      for (auto& slot : after) slot.assign(slot.size(), -7);
      std::vector<float> fresh(3), other(3);
      std::vector<state_array> same(in_place.begin(), in_place.end()), beside;
      for (std::size_t slot = 0; slot < before.size(); ++slot)
        beside.emplace_back(before[slot], after[slot]);
      cpu::update(rule, step, 0.5f, g, w, fresh, same);
      cpu::update(rule, step, 0.5f, g, w, other, beside);
      CHECK(other == fresh);
      CHECK(after == in_place);
    }
}

TEST_CASE("optimizer step: arrays of other sizes are refused, and nothing is written") {
  std::vector<float> w(3), g(3), m(3), few(2);
  const std::vector<state_array> one{std::span(m)}, two{std::span(m), std::span(few)}, none;
  const auto step = [&](optimizer_rule rule, std::span<const state_array> state) {
    cpu::update(rule, sgd_step(), 1, g, w, w, state);
  };
  CHECK_THROWS_WITH_AS(step(optimizer_rule::sgd, none),
                       "optimizer step: SGD keeps 1 arrays, it was given 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(step(optimizer_rule::adam, two),
                       "optimizer step: history has 2 values, the gradient has 3",
                       std::invalid_argument);
  CHECK_THROWS_AS(step(optimizer_rule::none, none), std::invalid_argument);
  step(optimizer_rule::sgd, one);
}

TEST_CASE("step_mark: every part of a step is in it, and the line names what differs") {
  const auto step = adam_step();
  const auto mark = mark_of(step);
  CHECK(mark == mark_of(step));
  const auto changed = [&](auto&& change) {
    auto other = step;
    change(other);
    return mark_of(other) != mark;
  };
  CHECK(changed([](auto& s) { s.rate = 0.02; }));
  CHECK(changed([](auto& s) { s.weight_decay = 0; }));
  CHECK(changed([](auto& s) { s.momentum = 0.8; }));
  CHECK(changed([](auto& s) { s.dampening = 0.1; }));
  CHECK(changed([](auto& s) { s.beta2 = 0.99; }));
  CHECK(changed([](auto& s) { s.epsilon = 1e-7; }));
  CHECK(changed([](auto& s) { s.nesterov = true; }));
  CHECK(changed([](auto& s) { s.lerp = true; }));
  CHECK(changed([](auto& s) { s.number = 2; }));
  CHECK(changed([](auto& s) { s.rest = 1; }));
  CHECK(mark_of(std::optional<optimizer_step>()).digest == 0);
  CHECK(difference_of_steps("fc.weight", 410, 2, {0.01, 5}, 0, {0.1, 6}) ==
        "clock 410, \"fc.weight\": worker 2 has the learning rate 0.01, worker 0 0.1. Was a "
        "checkpoint loaded on one worker alone? Load it on all workers, and give them the same "
        "schedule");
}

TEST_CASE("step_mark: gradients that travel otherwise are named with both formats") {
  const step_mark half{0, 0, wire_format::float16};
  CHECK(half != step_mark{});
  CHECK(
      difference_of_steps("fc.weight", 3, 1, half, 0, {}) ==
      "clock 3, \"fc.weight\": worker 1 sends float16, worker 0 float32. Was a communication hook "
      "registered on one worker alone? Register the same one on all workers, or give worker 0 "
      "the option wire");
}
