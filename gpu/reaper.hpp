// gpu/reaper.hpp - the thread that waits for the device so that nobody else has to.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "models/device/device.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace poseidon::gpu {

/// Waits for moments in streams of one device, one after the other in the order in which it was given them, and calls
/// what belongs to each. Ends when it has no more to wait for.
class reaper {
 public:
  explicit reaper(int device);
  ~reaper();
  reaper(const reaper&) = delete;
  reaper& operator=(const reaper&) = delete;

  /// Calls `done` when everything enqueued to `s` so far is over. Any thread.
  void after(stream& s, completion done);
  /// The same for a moment that has been recorded, of an event from here, which comes back.
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
  std::vector<event> free_;  // events go round: making one may wait for the device
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace poseidon::gpu
