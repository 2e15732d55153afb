#include "models/device.hpp"

#include <stdexcept>

namespace poseidon {

void kernel::feed(const batch&) {
  throw std::logic_error(
      "kernel::feed: this layer is no data layer; it takes its bottoms from other layers");
}

void kernel::factors(std::span<float>, std::span<float>) {
  throw std::logic_error("kernel::factors: this layer is no InnerProduct, its gradient has none");
}

}  // namespace poseidon
