#include "gpu/device_parameter.hpp"

namespace poseidon::gpu {

device_parameter::device_parameter(int device, const parameter_values& source, std::size_t values)
    : source_(source), memory_(device, values * sizeof(float)), arrived_(device), read_(device) {}

void device_parameter::bring(stream& copy_in) {
  const std::lock_guard lock(mutex_);
  bring_locked(copy_in);
}

void device_parameter::bring_locked(stream& copy_in) {
  const auto newest = source_.version.load(std::memory_order_acquire);
  if (arrivals_ > 0 && newest == version_) return;
  wait(copy_in, read_);
  copy_to_device(copy_in, memory_.bytes(), source_.values.load(std::memory_order_acquire),
                 memory_.size());
  record(arrived_, copy_in);
  version_ = newest;
  ++arrivals_;
}

void device_parameter::require(stream& copy_in, stream& compute) {
  const std::lock_guard lock(mutex_);
  bring_locked(copy_in);
  if (awaited_ == arrivals_) return;
  wait(compute, arrived_);
  awaited_ = arrivals_;
}

void device_parameter::has_been_read(stream& compute) {
  const std::lock_guard lock(mutex_);
  record(read_, compute);
}

}  // namespace poseidon::gpu
