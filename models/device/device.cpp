#include "models/device/device.hpp"

#include <stdexcept>

namespace poseidon {

void kernel::feed(const batch&) {
  throw std::logic_error(
      "kernel::feed: this layer is no data layer; it takes its bottoms from other layers");
}

void kernel::factors(std::span<float>, std::span<float>) {
  throw std::logic_error("kernel::factors: this layer is no InnerProduct, its gradient has none");
}

void replica::bring_gradients(std::size_t, completion done) {
  done(nullptr);
}

void replica::bring_parameters(std::size_t) {}

void replica::keep(std::shared_ptr<const void>) {}

std::shared_ptr<fetched_values> replica::fetch(std::span<const std::size_t>) {
  throw std::logic_error("replica::fetch: this device does not go on by itself; use read_data");
}

std::size_t device::join_gradients(std::span<const std::shared_ptr<replica>>) {
  return 1;
}

std::shared_ptr<device_updates> device::make_updates(std::span<const std::shared_ptr<replica>>,
                                                     const updates_wanted&) {
  return nullptr;
}

std::shared_ptr<std::pmr::memory_resource> device::host_memory() const {
  return {std::pmr::get_default_resource(), [](std::pmr::memory_resource*) {}};
}

}  // namespace poseidon
