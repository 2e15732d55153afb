#include "gpu/device_parameter.hpp"

#include <utility>

namespace poseidon::gpu {

device_parameter::device_parameter(int device, const parameter_values& source, std::size_t values)
    : source_(source),
      device_(device),
      memory_(device, values * sizeof(float)),
      arrived_(device),
      read_(device) {}

void device_parameter::bring(stream& copy_in) {
  const std::lock_guard lock(mutex_);
  bring_locked(copy_in);
}

void device_parameter::bring_locked(stream& copy_in) {
  if (updated_ || (leader_ != nullptr && leader_->hand_on(copy_in, *this))) return;
  const auto newest = source_.version.load(std::memory_order_acquire);
  if (arrivals_ > 0 && newest == version_) return;
  wait(copy_in, read_);
  copy_to_device(copy_in, memory_.bytes(), source_.values.load(std::memory_order_acquire),
                 memory_.size());
  record(arrived_, copy_in);
  version_ = newest;
  ++arrivals_;
}

/// Locks the leader after the follower, never the other way round. The leader's next update comes behind this copy: it
/// waits for a gradient of the follower's device, whose kernels have waited for the copy.
bool device_parameter::hand_on(stream& copy_in, device_parameter& follower) {
  const std::lock_guard lock(mutex_);
  if (!updated_) return false;
  if (follower.version_ == version_ && follower.arrivals_ > 0) return true;
  wait(copy_in, follower.read_);
  wait(copy_in, arrived_);
  copy_between_devices(copy_in, follower.memory_.bytes(), follower.device_, memory_.bytes(),
                       device_, memory_.size());
  record(follower.arrived_, copy_in);
  follower.version_ = version_;
  ++follower.arrivals_;
  return true;
}

void device_parameter::follow(std::shared_ptr<device_parameter> leader) {
  const std::lock_guard lock(mutex_);
  leader_ = std::move(leader);
}

float* device_parameter::begin_update(stream& on) {
  const std::lock_guard lock(mutex_);
  wait(on, read_);
  return memory_.floats();
}

void device_parameter::end_update(stream& on, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  record(arrived_, on);
  version_ = version;
  updated_ = true;
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
