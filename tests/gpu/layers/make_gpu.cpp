#include "gpu/device.hpp"
#include "tests/gpu/layers/both_backends.hpp"

namespace poseidon::test {

std::shared_ptr<device> make_gpu(const plugin_choice& choice) {
  return gpu::make_device(choice, make_cpu_device());
}

}  // namespace poseidon::test
