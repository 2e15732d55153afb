// gpu/device_parameter.hpp - the values of one parameter in the memory of one device.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "models/device/device.hpp"

#include <cstdint>
#include <memory>
#include <mutex>

namespace poseidon::gpu {

/// Refreshed by the copy-in stream, or updated here (gpu/device_updates.hpp). The copy-in stream waits, on the device, for the last kernel that read the values before,
/// and the compute stream for the copy; no thread waits for either.
///
/// Threads: bring() is the copy-in actor's and the compute stream's, updates are anybody's, the rest the compute
/// stream's. follow() before all of them.
class device_parameter {
 public:
  device_parameter(int device, const parameter_values& source, std::size_t values);

  [[nodiscard]] const float* values() const { return memory_.floats(); }

  /// Enqueues a copy of the newest values to `copy_in`, unless they are here or on their way.
  void bring(stream& copy_in);
  /// Before a kernel that reads them: they are the newest, and `compute` waits for them.
  void require(stream& copy_in, stream& compute);
  /// A kernel that reads them has been enqueued to `compute`.
  void has_been_read(stream& compute);

  /// Where an update finds them and, enqueued to `on`, writes the new ones: behind the kernels that have read the old
  /// ones. From the first update on nothing comes from the host any more.
  [[nodiscard]] float* begin_update(stream& on);
  void end_update(stream& on, std::uint64_t version);
  /// As soon as `leader`, on another device or another replica's here, has been updated, values come from there.
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
  std::uint64_t version_ = 0;   // on the device or on its way
  bool updated_ = false;        // here, at least once
  std::uint64_t arrivals_ = 0;  // copies and updates enqueued so far
  std::uint64_t awaited_ = 0;  // the last of them that the compute stream has been told to wait for
};

}  // namespace poseidon::gpu
