// gpu/tuning.hpp
//
// --autotune: finds the fastest of the ways in which a library can compute a convolution, by trying them. The library
// (gpu/cuda/, gpu/simulated/) lists the ways and runs them; the device measures the time between two events.
#pragma once
#include "gpu/runtime/library.hpp"

#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace poseidon::gpu {

/// The choices for one device. Any thread; a thread that asks while another tries waits, so that trials do not disturb
/// each other.
class tuning {
 public:
  using product = std::pair<convolution_shape, convolution_direction>;

  /// The fastest of `ways`, which come in the order of the library's heuristics; of equal ones the first.
  /// `milliseconds(way)` is called for each way at the first call for a product. A way for which it throws gpu::error
  /// (memory, unsupported) is left out; if all are, the result is 0, and the product counts as not tried.
  [[nodiscard]] std::size_t choose(const product& p, std::size_t ways,
                                   const std::function<double(std::size_t)>& milliseconds);

  /// Sums over the products that were tried, each once.
  struct gain {
    std::size_t tried = 0, changed = 0, untried = 0;
    double first_ms = 0;   ///< time of the heuristics' first ways, where they could be timed
    double chosen_ms = 0;  ///< time of the chosen ways, for the same products
  };
  [[nodiscard]] gain gained() const;

 private:
  mutable std::mutex mutex_;
  std::map<product, std::size_t> ways_;
  gain gain_;
};

/// "12 products of convolutions tried, 7 of them computed in another way than ...: 1.234 ms instead of 2.345 ms"
[[nodiscard]] std::string to_string(const tuning::gain& g);

/// The device's milliseconds for the work that `enqueue` enqueues to `s`: once to warm up, then the least of `repetitions`,
/// since disturbances only add time. Waits for the device; not for the training loop.
/// Work that takes much longer than `to_beat` is not repeated.
[[nodiscard]] double least_ms(stream& s, int repetitions, const std::function<void()>& enqueue,
                              double to_beat = std::numeric_limits<double>::infinity());

/// Enqueues one product in one of its ways. Images, weights and results as gpu::convolution takes them.
using product_run = std::function<void(std::size_t way, values x, values w, values y)>;

/// The way for a product of `with`: its tuning's choice, tried in memory taken for the trials; 0 without a tuning or a choice.
[[nodiscard]] std::size_t fastest_way(library& with, const tuning::product& p, std::size_t ways,
                                      const product_run& run);

/// The number of ways of one product that are tried: heuristics list the good ones first.
inline constexpr std::size_t most_ways = 8;

}  // namespace poseidon::gpu
