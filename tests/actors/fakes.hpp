// tests/actors/fakes.hpp - a net of one parameter, and what payloads hold, for actor tests.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "messages/float_payload.hpp"
#include "tests/plain_arithmetic.hpp"

#include <memory>

namespace poseidon::test {

using poseidon::payload_of;

inline constexpr parameter_id only_parameter{0};  ///< of the net below

/// One parameter of `values` values, cut into chunks of at most `chunk`, dealt to `owners` in turn.
inline net one_parameter_net(std::int64_t values) {
  net n;
  n.layers.resize(1);
  n.layers[0].name = "fc7";
  n.layers[0].parameters = {0};
  n.parameters.push_back({0, 0, "fc7/0", {values}, 1, 1, {}});
  return n;
}

inline std::shared_ptr<parameter_store> one_parameter_store(
    std::int64_t values, std::size_t chunk, std::size_t owners, std::uint64_t staleness = 0,
    wire_format format = wire_format::float32) {
  partition cut;
  cut.by_parameter.resize(1);
  cut.by_owner.resize(owners);
  for (std::size_t at = 0; at < static_cast<std::size_t>(values); at += chunk) {
    const auto owner = as_id<worker_id>(cut.chunks.size() % owners);
    const auto size = std::min(chunk, static_cast<std::size_t>(values) - at);
    const auto id = cut.chunks.push_back({only_parameter, at, size, owner, format});
    cut.by_parameter[only_parameter].push_back(id);
    cut.by_owner[owner].push_back(id);
  }
  return std::make_shared<parameter_store>(one_parameter_net(values).parameters, std::move(cut), 2,
                                           staleness);
}

inline std::vector<float> values_of(const payload& p) {
  const auto values = floats(p);
  return {values.begin(), values.end()};
}

}  // namespace poseidon::test
