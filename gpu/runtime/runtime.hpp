// gpu/runtime/runtime.hpp
//
// Our interface to a GPU's runtime. gpu/cuda/ implements it with CUDA; gpu/simulated/ with threads and ordinary memory, for
// tests on machines without a GPU. A program gets one of the two when it is linked; no other code depends on which.
//
// A stream executes its work in order, while the host continues; only events order the work of different streams. No
// function but synchronise() and synchronous copies waits for a device.
// Errors   All functions throw gpu::error, also for the failure of work enqueued earlier on that device.
// Threads  Any thread may use any object; two threads that enqueue to one stream have to agree on the order.
#pragma once
#include "gpu/runtime/error.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace poseidon::gpu {

struct device_properties {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::size_t total_bytes = 0, free_bytes = 0;  ///< memory, now
};

/// The runtime's versions: "CUDA 13.0, cuDNN 9.19.0, driver 13.0".
[[nodiscard]] std::string describe_runtime();
/// Errors   error_kind::absent, with the missing part and advice.
[[nodiscard]] int device_count();
[[nodiscard]] device_properties properties(int device);

/// The use of a stream: where the device has to choose, a compute stream goes before the others.
enum class stream_use { compute, copy_in, copy_out };

class stream {
 public:
  stream(int device, stream_use use);
  ~stream();  ///< waits until its work has finished
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;

  [[nodiscard]] int device() const;
  /// The runtime's own handle, for gpu/runtime/launch.hpp and the libraries.
  [[nodiscard]] void* native() const;

  struct state;
  [[nodiscard]] state& get() const { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

/// Most events only order work, or are looked at by has_passed(). A thread can wait for the others: each of their moments interrupts the
/// host, which takes time from whatever its processor does just then. Events for timing also record the time.
enum class event_use { order, waiting, timing };

/// A moment in a stream. Starts out as passed.
class event {
 public:
  explicit event(int device, event_use use = event_use::order);
  ~event();
  event(event&&) noexcept;
  event& operator=(event&&) noexcept;

  struct state;
  [[nodiscard]] state& get() const { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

/// From now on `e` is the moment when all work enqueued to `s` so far has finished. A thread or stream that already waits
/// for an older moment of `e` still waits for that one.
void record(event& e, stream& s);
/// Work enqueued to `s` from now on begins after the last recorded moment of `e`.
void wait(stream& s, const event& e);
/// Has `e` passed? Does not wait.   Errors   gpu::error if work before `e` in its stream has failed.
[[nodiscard]] bool has_passed(const event& e);
/// The calling thread waits for `e`, which is for waiting or for timing. Outside of the training loop, but for layers that run on the host.
/// Errors   gpu::error if work before `e` in its stream has failed.
void synchronise(const event& e);
/// Time between two moments of one device, by its own clock. Both events are for timing, have been recorded, and have
/// passed.   Errors   gpu::error (misused) otherwise.
[[nodiscard]] double milliseconds_between(const event& from, const event& to);

/// The calling thread waits for all work enqueued to `s` so far. Outside of the training loop.
inline void finish(stream& s) {
  event over(s.device(), event_use::waiting);
  record(over, s);
  synchronise(over);
}

/// Memory of a device. Allocating and freeing may wait for the device: only outside of the training loop, and when no
/// enqueued work uses the memory.
class device_memory {
 public:
  device_memory() = default;  ///< empty
  device_memory(int device, std::size_t bytes);
  ~device_memory();
  device_memory(device_memory&&) noexcept;
  device_memory& operator=(device_memory&&) noexcept;

  [[nodiscard]] std::byte* bytes() const { return bytes_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(bytes_); }
  [[nodiscard]] std::size_t size() const { return size_; }  ///< bytes

 private:
  int device_ = 0;
  std::byte* bytes_ = nullptr;  // aligned to 256
  std::size_t size_ = 0;
};

/// Pinned host memory, which every device copies to and from without the host's help.
class pinned_memory {
 public:
  pinned_memory() = default;
  explicit pinned_memory(std::size_t bytes);
  ~pinned_memory();
  pinned_memory(pinned_memory&&) noexcept;
  pinned_memory& operator=(pinned_memory&&) noexcept;

  [[nodiscard]] std::byte* bytes() const { return bytes_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(bytes_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
};

/// Enqueue a copy of `bytes`. Between pinned memory and a device, and within a device, they return immediately, and both
/// sides have to stay unchanged until the copy has finished. With other host memory they return when that has been read
/// or written, which may be after all other work in the stream.
void copy_to_device(stream& s, void* to, const void* from, std::size_t bytes);
void copy_to_host(stream& s, void* to, const void* from, std::size_t bytes);
void copy_within_device(stream& s, void* to, const void* from, std::size_t bytes);
/// Lets streams of `device` copy directly to memory of `other` from now on. Returns whether this machine can do that; within
/// one device it always can.
[[nodiscard]] bool enable_copies(int device, int other);
/// Copies from the memory of one device to that of another, enqueued to a stream of either. Without enable_copies() it goes
/// through the host.
void copy_between_devices(stream& s, void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes);
/// Enqueues to set bytes to zero.
void clear(stream& s, void* to, std::size_t bytes);

}  // namespace poseidon::gpu
