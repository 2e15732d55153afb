// actors/parameters/forward_places.hpp
//
// The order in which the next forward pass needs fresh parameters, by the layer that reads them first: what is needed first is
// sent first. A net's layers stand in it already; a program that computes its gradients itself says it once it knows.
#pragma once
#include "messages/ids.hpp"
#include "models/indexed.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace poseidon {

/// Any thread may read and write it.
class forward_places {
 public:
  /// Each layer has its own number.
  explicit forward_places(std::size_t layers) : of_(layers) {
    for (const auto layer : of_.ids()) set(layer, layer);
  }
  void set(layer_id layer, layer_id place) {
    of_[layer].store(static_cast<std::uint32_t>(value(place)), std::memory_order_relaxed);
  }
  [[nodiscard]] layer_id of(layer_id layer) const {
    return layer_id{of_[layer].load(std::memory_order_relaxed)};
  }

  /// The program waits for all parameters of a version together, whose first it needs no sooner than its last. So gradients go before
  /// the parameters that come back: the last of these then needs not wait for the last gradient.
  void want_all_together() { together_.store(true, std::memory_order_relaxed); }
  /// Of a fresh parameter of this layer.
  [[nodiscard]] layer_id of_fresh(layer_id layer) const {
    const auto place = of(layer);
    return together_.load(std::memory_order_relaxed)
               ? layer_id{static_cast<std::uint32_t>(value(place) + of_.size())}
               : place;
  }

 private:
  std::atomic<bool> together_{false};
  by_id<layer_id, std::atomic<std::uint32_t>> of_;
};

/// Where there is no such list, a layer stands at its own number.
[[nodiscard]] inline layer_id place_of(const forward_places* places, layer_id layer) {
  return places == nullptr ? layer : places->of(layer);
}

}  // namespace poseidon
