// gpu/reaper.hpp - the thread that waits for the device, so that no other thread has to.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "models/device/device.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace poseidon::gpu {

/// Looks for moments in streams of one device, in the order in which they were given, and calls the completion of each. It looks again and again
/// and does not wait for the device: a moment that a thread waits for interrupts the host. A training had some fifteen thousand of them a second,
/// and seconds in which kernels were issued half as fast (docs/measurements/gpu.md).
/// Its destructor waits for all of them.
class reaper {
 public:
  explicit reaper(int device);
  ~reaper();
  reaper(const reaper&) = delete;
  reaper& operator=(const reaper&) = delete;

  /// Calls `done` when all work enqueued to `s` so far has finished. Any thread.
  void after(stream& s, completion done);
  /// Calls `done` at a moment that has been recorded in an event from take_event(), which is given back.
  void when(event moment, completion done);
  [[nodiscard]] event take_event();

 private:
  struct watched {
    event moment;
    completion done;
  };
  void run();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<watched> waiting_;
  std::vector<event> free_;  // events are used again: making one may wait for the device
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace poseidon::gpu
