// tests/cpu/finite_difference.hpp - is backward() the derivative of forward()? Central differences
// of the weighted sum of one blob, for every value of another blob and of every parameter.
#pragma once
#include "tests/cpu/hand_net.hpp"

namespace poseidon::test {

/// Deviation between backward and central differences with step h; `tops` are weighted with noise
/// (a loss top with its own weight). The net must keep all diffs.
inline double worst_gradient(running_net& r, const std::string& bottom, const std::string& top,
                             float h) {
  const std::size_t x = r.index(bottom), y = r.index(top);
  const auto loss_weight = [&]() -> float {
    for (const net_layer& l : r.n.layers) {
      if (!l.tops.empty() && l.tops[0] == y && l.loss_weights[0] != 0) return l.loss_weights[0];
    }
    return 0;
  }();
  std::vector<float> weights = noise(r.size(y), 77);
  if (loss_weight != 0) weights.assign(weights.size(), loss_weight);
  const std::vector<float> start = r.data(bottom);
  const auto value = [&] {
    r.forward();
    double sum = 0;
    const auto v = r.data(top);
    for (std::size_t i = 0; i < v.size(); ++i) sum += double{v[i]} * double{weights[i]};
    return sum;
  };
  value();
  r.r->write_diff(y, weights);
  r.backward();
  const std::vector<float> dx = r.diff(bottom);
  std::vector<std::vector<float>> gradients;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) gradients.push_back(r.gradient(p));
  std::vector<double> numeric;
  std::vector<float> analytic;
  const auto probe = [&](float& v, float derivative, auto apply) {
    const float before = v;
    v = before + h;
    apply();
    const double up = value();
    v = before - h;
    apply();
    const double down = value();
    v = before;
    apply();
    numeric.push_back((up - down) / (2.0 * double{h}));
    analytic.push_back(derivative);
  };
  std::vector<float> moving = start;
  for (std::size_t i = 0; i < moving.size(); ++i)
    probe(moving[i], dx[i], [&] { r.r->write_data(x, moving); });
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    for (std::size_t i = 0; i < r.parameters[p].size(); ++i) {
      probe(r.parameters[p][i], gradients[p][i], [&] { r.touch(); });
    }
  }
  return deviation(analytic, numeric);
}

}  // namespace poseidon::test
