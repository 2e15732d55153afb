// actors/client/factor_places.hpp - where a program's factors go, in the clocks that may begin now.
#pragma once
#include "actors/parameters/factor_store.hpp"
#include "messages/ids.hpp"
#include "models/device/host_arithmetic.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace poseidon {

/// The program's threads ask, the node's thread moves it to another view.
class factor_places {
 public:
  struct place {
    std::shared_ptr<factor_store> store;  ///< null: the gradient goes as a whole
    worker_id self{};                     ///< whose place in it is the program's
  };
  /// To the stores of a view that begins with `clock`, in which this worker is `self`. What it has filled in of that clock moves, too: the
  /// others may not have got it.
  void move(factor_stores stores, worker_id self, clock_id clock);
  [[nodiscard]] place of(parameter_id parameter) const;

  /// Makes the mean of `clock` of the view before once more, for who lacks it: the program may have taken it to memory of its own, and
  /// have written to that. The calling thread has entered the arithmetic.  Returns  false: its gradient went as a whole.
  bool make_mean_again(parameter_id parameter, clock_id clock, const host_arithmetic& arithmetic,
                       std::span<float> to) const;
  /// All have it.
  void forget_former();

 private:
  mutable std::mutex mutex_;
  factor_stores stores_;
  std::optional<factor_stores> former_;  // of the view before, while another one is to begin
  worker_id self_{};
};

}  // namespace poseidon
