#include "models/device.hpp"

#include <stdexcept>

namespace poseidon {

void kernel::feed(const batch&) {
  throw std::logic_error(
      "kernel::feed: this layer is no data layer; it takes its bottoms from other layers");
}

}  // namespace poseidon
