#include "gpu/device.hpp"
#include "tests/gpu/both_backends.hpp"

namespace poseidon::test {

std::shared_ptr<device> strict_gpu() {
  return gpu::make_device(strict_choice(), make_cpu_device());
}

}  // namespace poseidon::test
