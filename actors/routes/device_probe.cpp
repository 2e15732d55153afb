#include "actors/routes/device_probe.hpp"

#include "models/device/wire_format.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <vector>

namespace poseidon {

namespace {

constexpr int repetitions = 3;
constexpr double most_flop = 2e8;  // a timed product takes a few milliseconds

template <class F>
double best_seconds(F&& run) {
  run();  // fills caches
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return std::max(best, 1e-9);
}

double flop_of(const factor_shape& s) {
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.outputs) *
         static_cast<double>(s.inputs);
}

}  // namespace

double device_probe::product_s(const factor_shape& wanted) {
  if (known_flop_s_) return flop_of(wanted) / *known_flop_s_;
  auto s = wanted;
  while (flop_of(s) > most_flop) {
    auto& largest =
        std::max({std::ref(s.rows), std::ref(s.outputs), std::ref(s.inputs)}, [](auto a, auto b) {
          return a.get() < b.get();
        }).get();
    largest = (largest + 1) / 2;
  }
  const auto key = std::array{s.rows, s.outputs, s.inputs, std::size_t{s.transposed}};
  auto known = flop_s_.find(key);
  if (known == flop_s_.end()) {
    const std::vector<float> u(s.u_values(), 0.5f), v(s.rows * s.inputs, 0.25f);
    std::vector<float> gradient(s.outputs * s.inputs);
    const auto seconds =
        best_seconds([&] { arithmetic_->reconstruct_gradient(s, u, v, gradient, {}); });
    known = flop_s_.emplace(key, flop_of(s) / seconds).first;
  }
  return flop_of(wanted) / known->second;
}

double device_probe::flop_s() {
  constexpr factor_shape typical{128, 1024, 1024};
  return flop_of(typical) / product_s(typical);
}

double device_probe::update_s_value(const solver_rule& rule) {
  if (update_s_value_) return *update_s_value_;
  constexpr std::size_t values = std::size_t{1} << 18;  // no cache holds all of it
  const std::vector<float> gradient(values, 1.0f), now(values, 1.0f);
  std::vector<float> fresh(values);
  std::vector<std::vector<float>> slots(history_count(rule.kind), std::vector<float>(values, 1.0f));
  const std::vector<state_array> history(slots.begin(), slots.end());
  update_s_value_ =
      best_seconds([&] { arithmetic_->update(rule, {}, gradient, now, fresh, history); }) /
      static_cast<double>(values);
  return *update_s_value_;
}

double device_probe::add_s_value() {
  if (add_s_value_) return *add_s_value_;
  std::vector<float> into(std::size_t{1} << 18);
  const std::vector<float> x(into.size(), 1.0f);
  add_s_value_ =
      best_seconds([&] { arithmetic_->add(into, x); }) / static_cast<double>(into.size());
  return *add_s_value_;
}

double device_probe::round_s_value() {
  if (round_s_value_) return *round_s_value_;
  constexpr auto format = wire_format::int8;
  const std::vector<float> x(std::size_t{1} << 18, 1.0f);
  std::vector<float> kept(x.size()), into(x.size());
  std::vector<std::byte> bytes(wire_bytes(format, x.size()));
  round_s_value_ = best_seconds([&] {
                     encode_with_feedback(format, x, kept, bytes);
                     add_decoded(format, bytes, into, into);
                   }) /
                   static_cast<double>(2 * x.size());
  return *round_s_value_;
}

}  // namespace poseidon
