// actors/unsent_limit.hpp - how much of a link's traffic may be out of the reach of priorities.
#pragma once
#include <cstddef>

namespace poseidon {

/// What lies unsent in the kernel, and the piece that is being written, goes before anything urgent that comes now. So
/// both are some milliseconds of what the line carries: on a line of 100 Mbit/s the half megabyte that feeds a fast one
/// evenly would hold up each direction of each layer's exchange for 40 ms.
///
/// The rate is the best of the last second or two, as the kernel measured it from confirmations (tcp_flow): a writer that
/// comes late, on a busy machine, sends less for a while but does not find the line slower, which would give it even
/// less time to be late.
class unsent_limit {
 public:
  struct bytes {
    std::size_t unsent, piece;
  };
  static constexpr bytes most{512u << 10, 256u << 10}, least{48u << 10, 16u << 10};

  /// A few times a second. `delivered_bytes_s`: the kernel's last measurement; 0: there is none yet.
  [[nodiscard]] bytes heard(double delivered_bytes_s);

 private:
  double best_bytes_s_ = 0;
};

}  // namespace poseidon
