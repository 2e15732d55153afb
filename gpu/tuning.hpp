// gpu/tuning.hpp
//
// --autotune: of the ways in which a library can compute a convolution the one that takes a device the least time, found by
// trying. Which ways there are and how one is run is the library's business (gpu/cuda/, gpu/simulated/); the time is the
// device's own, between two events.
#pragma once
#include "gpu/runtime/library.hpp"

#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace poseidon::gpu {

/// What was found on one device. Any thread; who asks while another tries waits, so that trials do not disturb each other.
class tuning {
 public:
  using product = std::pair<convolution_shape, convolution_direction>;

  /// The way, of `ways` in the order in which the library's heuristics like them, that took the least time; the earlier of
  /// equals. `milliseconds(way)` is called for each of them when a product is asked for the first time. A way for which it
  /// throws gpu::error (memory, unsupported) is none; if all do, it is 0, and the product counts as not tried.
  [[nodiscard]] std::size_t choose(const product& p, std::size_t ways,
                                   const std::function<double(std::size_t)>& milliseconds);

  /// Sums over the products that were tried, each once.
  struct gain {
    std::size_t tried = 0, changed = 0, untried = 0;
    double first_ms = 0;   ///< of the ways that the heuristics like best, where they could be timed
    double chosen_ms = 0;  ///< of those that were chosen, for the same products
  };
  [[nodiscard]] gain gained() const;

 private:
  mutable std::mutex mutex_;
  std::map<product, std::size_t> ways_;
  gain gain_;
};

/// "12 products of convolutions tried, 7 of them computed in another way than ...: 1.234 ms instead of 2.345 ms"
[[nodiscard]] std::string to_string(const tuning::gain& g);

/// The device's milliseconds for what `enqueue` enqueues to `s`: once to warm up, then the least of `repetitions`, since
/// whatever disturbs only adds. Waits for the device; not for the training loop.
/// What takes much longer than `to_beat` is not repeated.
[[nodiscard]] double least_ms(stream& s, int repetitions, const std::function<void()>& enqueue,
                              double to_beat = std::numeric_limits<double>::infinity());

/// Enqueues one product in one of its ways. Images, weights and results as gpu::convolution takes them.
using product_run = std::function<void(std::size_t way, values x, values w, values y)>;

/// The way for a product of `with`: its tuning's choice, tried in memory taken for that; 0 without a tuning or a choice.
[[nodiscard]] std::size_t fastest_way(library& with, const tuning::product& p, std::size_t ways,
                                      const product_run& run);

/// How many ways of one product are worth trying: heuristics put the good ones in front.
inline constexpr std::size_t most_ways = 8;

}  // namespace poseidon::gpu
