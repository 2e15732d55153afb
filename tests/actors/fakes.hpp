// tests/actors/fakes.hpp - a device that only adds and subtracts, and a net of one parameter, for actor tests.
#pragma once
#include "actors/parameter_store.hpp"
#include "models/device.hpp"

#include <memory>

namespace poseidon::test {

/// update(): fresh = values - rate * scale * gradient; history counts the updates.
class plain_arithmetic : public device {
 public:
  std::string describe() const override { return "plain"; }
  std::unique_ptr<replica> make_replica(const net&, std::span<const parameter_values* const>,
                                        replica_options) override {
    return nullptr;
  }
  bool supports(std::string_view) const override { return false; }
  void enter_thread(int) override {}
  void add(std::span<float> into, std::span<const float> x) const override {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += x[i];
  }
  void update(const solver_rule&, const rule_step& step, std::span<const float> gradient,
              std::span<const float> values, std::span<float> fresh,
              std::span<const std::span<float>> history) const override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      fresh[i] = values[i] - step.rate * step.scale * gradient[i];
      history[0][i] += 1;
    }
  }
  void keep(float keeps, std::span<const float> change, std::span<const float> values,
            std::span<float> fresh) const override {
    for (std::size_t i = 0; i < values.size(); ++i) fresh[i] = keeps * values[i] + change[i];
  }
  void rebuild(const factor_shape& s, std::span<const float> u, std::span<const float> v,
               std::span<float> weights, std::span<float> bias) const override {
    for (std::size_t o = 0; o < s.outputs; ++o)
      for (std::size_t i = 0; i < s.inputs; ++i) {
        auto& sum = weights[s.transposed ? i * s.outputs + o : o * s.inputs + i] = 0;
        for (std::size_t r = 0; r < s.rows; ++r) sum += u[r * s.outputs + o] * v[r * s.inputs + i];
      }
    for (std::size_t o = 0; o < bias.size(); ++o) {
      bias[o] = 0;
      for (std::size_t r = 0; r < s.rows; ++r) bias[o] += u[r * s.outputs + o];
    }
  }
};

/// One parameter of `values` values, cut into chunks of at most `chunk`, dealt to `owners` in turn.
inline net one_parameter_net(std::int64_t values) {
  net n;
  n.layers.resize(1);
  n.layers[0].name = "fc7";
  n.layers[0].parameters = {0};
  n.parameters.push_back({0, 0, "fc7/0", {values}, 1, 1, {}});
  return n;
}

inline std::shared_ptr<parameter_store> one_parameter_store(std::int64_t values, std::size_t chunk,
                                                            std::size_t owners) {
  partition cut;
  cut.by_parameter.resize(1);
  cut.by_owner.resize(owners);
  for (std::size_t at = 0; at < static_cast<std::size_t>(values); at += chunk) {
    const auto id = cut.chunks.size();
    cut.chunks.push_back(
        {0, at, std::min(chunk, static_cast<std::size_t>(values) - at), id % owners});
    cut.by_parameter[0].push_back(id);
    cut.by_owner[id % owners].push_back(id);
  }
  return std::make_shared<parameter_store>(one_parameter_net(values), std::move(cut), 2);
}

inline payload payload_of(std::vector<float> values) {
  auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  return {owner, std::as_bytes(std::span<const float>(*owner))};
}

inline std::vector<float> values_of(const payload& p) {
  const auto* from = reinterpret_cast<const float*>(p.bytes.data());
  return {from, from + p.bytes.size() / sizeof(float)};
}

}  // namespace poseidon::test
