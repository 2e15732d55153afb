// gpu/device_parameter.hpp - the values of one parameter in the memory of one device.
#pragma once
#include "gpu/runtime.hpp"
#include "models/device.hpp"

#include <cstdint>
#include <mutex>

namespace poseidon::gpu {

/// Refreshed by the copy-in stream. That one waits, on the device, for the last kernel that read the values before,
/// and the compute stream for the copy; no thread waits for either.
///
/// Threads: bring() is the copy-in actor's and the compute stream's, the rest the compute stream's.
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

 private:
  void bring_locked(stream& copy_in);

  const parameter_values& source_;
  device_memory memory_;
  std::mutex mutex_;
  event arrived_, read_;
  std::uint64_t version_ = 0;   // on the device or on its way
  std::uint64_t arrivals_ = 0;  // copies enqueued so far
  std::uint64_t awaited_ = 0;  // the last of them that the compute stream has been told to wait for
};

}  // namespace poseidon::gpu
