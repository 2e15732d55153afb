// gpu/device_parameter.hpp - the values of one parameter in the memory of one device.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "models/device/device.hpp"

#include <cstdint>
#include <memory>
#include <mutex>

namespace poseidon::gpu {

/// The copy-in stream refreshes the values, or they are updated here (gpu/device_updates.hpp). On the device, the copy-in
/// stream waits for the last kernel that read the values before, and the compute stream waits for the copy; no thread
/// waits for either.
///
/// Threads: the copy-in actor and the compute stream call bring(); any thread updates; the compute stream calls the
/// rest. follow() comes before all of them.
class device_parameter {
 public:
  device_parameter(int device, const parameter_values& source, std::size_t values);

  [[nodiscard]] const float* values() const { return memory_.floats(); }

  /// Enqueues a copy of the newest values to `copy_in`, unless that has been done.
  void bring(stream& copy_in);
  /// Before a kernel that reads the values: they are the newest, and `compute` waits for them.
  void require(stream& copy_in, stream& compute);
  /// A kernel that reads the values has been enqueued to `compute`.
  void has_been_read(stream& compute);

  /// The memory in which an update, enqueued to `on`, reads the old values and writes the new ones, after the kernels that
  /// read the old ones. From the first update on no values are copied from the host.
  [[nodiscard]] float* begin_update(stream& on);
  void end_update(stream& on, std::uint64_t version);
  /// Once `leader`, on another device or of another replica on this one, has been updated, values are copied from it.
  void follow(std::shared_ptr<device_parameter> leader);

 private:
  void bring_locked(stream& copy_in);
  [[nodiscard]] bool hand_on(stream& copy_in, device_parameter& follower);

  const parameter_values& source_;
  const int device_;
  device_memory memory_;
  std::shared_ptr<device_parameter> leader_;
  std::mutex mutex_;
  event arrived_, read_;
  std::uint64_t version_ = 0;   // of the values on the device, or of the copy that is enqueued
  bool updated_ = false;        // on this device, at least once
  std::uint64_t arrivals_ = 0;  // copies and updates enqueued so far
  std::uint64_t awaited_ = 0;   // the last arrival that the compute stream waits for
};

}  // namespace poseidon::gpu
