// actors/routes/device_probe.hpp - how fast a device computes what the choice of a route depends on.
#pragma once
#include "models/device/device.hpp"
#include "models/device/factors.hpp"
#include "models/solver/solver_rule.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

namespace poseidon {

/// Answers each question by computing for some milliseconds in the calling thread, once.
class device_probe {
 public:
  explicit device_probe(std::shared_ptr<const device> d) : device_(std::move(d)) {}
  /// From now on products are timed on the host, even where the device has times of its own.
  void ask_host() { asks_host_ = true; }
  /// Seconds of this thread, or of the device's own; estimated from a part of the product where the whole product takes
  /// longer than milliseconds.
  [[nodiscard]] double product_s(const factor_shape& s);
  [[nodiscard]] double flop_s();  ///< of a product of typical shape
  [[nodiscard]] double update_s_value(const solver_rule& rule);
  [[nodiscard]] double add_s_value();

 private:
  std::shared_ptr<const device> device_;
  std::map<std::array<std::size_t, 4>, double> flop_s_;  // by shape
  std::optional<double> update_s_value_, add_s_value_;
  bool asks_host_ = false;
};

}  // namespace poseidon
