// actors/routes/device_probe.hpp - how fast a device computes what the choice of a route depends on.
#pragma once
#include "models/device/factors.hpp"
#include "models/device/host_arithmetic.hpp"
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
  explicit device_probe(std::shared_ptr<const host_arithmetic> a) : arithmetic_(std::move(a)) {}
  /// The rate of products, where it is known: product_s() measures nothing then.
  void set_rate(std::optional<double> flop_s) { known_flop_s_ = flop_s; }
  /// Seconds of this thread, or of the device's own; estimated from a part of the product where the whole product takes
  /// longer than milliseconds.
  [[nodiscard]] double product_s(const factor_shape& s);
  [[nodiscard]] double flop_s();  ///< of a product of typical shape
  [[nodiscard]] double update_s_value(const solver_rule& rule);
  [[nodiscard]] double add_s_value();
  /// To round a value that is sent, or to add one that came rounded: the mean of the two.
  [[nodiscard]] double round_s_value();

 private:
  std::shared_ptr<const host_arithmetic> arithmetic_;
  std::optional<double> known_flop_s_;
  std::map<std::array<std::size_t, 4>, double> flop_s_;  // by shape
  std::optional<double> update_s_value_, add_s_value_, round_s_value_;
};

}  // namespace poseidon
