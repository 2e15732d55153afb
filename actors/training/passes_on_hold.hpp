// actors/training/passes_on_hold.hpp - which clock's passes a solver has the layers hold back. Bookkeeping only.
#pragma once
#include "messages/training.hpp"

#include <cstddef>
#include <optional>

namespace poseidon {

/// Layers are asked to hold back, answer one by one, and hold back until they are released.
class passes_on_hold {
 public:
  /// Passes of `clock` are held back from now on; so many layers are asked whether they have begun one.
  void ask(clock_id clock, std::size_t layers) {
    clock_ = clock;
    missing_ = layers;
    begun_ = false;
  }
  /// Returns  whether a pass of the clock has begun anywhere, when all layers have answered.
  [[nodiscard]] std::optional<bool> answered(const passes_held& m) {
    if (!asking() || m.from != *clock_) return std::nullopt;
    begun_ = begun_ || m.begun;
    return --missing_ == 0 ? std::optional(begun_) : std::nullopt;
  }
  [[nodiscard]] bool asking() const { return missing_ > 0; }
  /// All answers are in, and none has begun.
  [[nodiscard]] bool holding() const { return clock_.has_value() && !asking(); }
  void released() { *this = {}; }

 private:
  std::optional<clock_id> clock_;
  std::size_t missing_ = 0;
  bool begun_ = false;
};

}  // namespace poseidon
