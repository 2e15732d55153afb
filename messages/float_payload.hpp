// messages/float_payload.hpp - payloads that are float32 values, as everything but squares is.
#pragma once
#include "messages/frames.hpp"

#include <utility>

namespace poseidon {

[[nodiscard]] inline payload payload_of(std::vector<float> values) {
  auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  const auto bytes = std::as_bytes(std::span(*owner));
  return {std::move(owner), bytes};
}

/// Valid as long as the payload's owner.
[[nodiscard]] inline std::span<const float> floats(const payload& p) {
  return {reinterpret_cast<const float*>(p.bytes.data()), p.bytes.size() / sizeof(float)};
}

}  // namespace poseidon
