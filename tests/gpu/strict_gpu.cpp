#include "gpu/device.hpp"
#include "tests/gpu/both_backends.hpp"

namespace poseidon::test {

std::shared_ptr<device> strict_gpu(device_layout layout) {
  return gpu::make_device(strict_choice(layout), make_cpu_device());
}

}  // namespace poseidon::test
