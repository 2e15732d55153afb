#include "gpu/reaper.hpp"

#include <chrono>
#include <utility>

namespace poseidon::gpu {
namespace {

/// The operating system sleeps somewhat longer, so these are some 7,500 looks a second. They take a sixth of a virtual machine's processor; with
/// 20 us it is a quarter.
constexpr std::chrono::microseconds look_again{50};

void wait_by_looking(const event& moment) {
  while (!has_passed(moment)) std::this_thread::sleep_for(look_again);
}

}  // namespace

reaper::reaper(int device) : device_(device), thread_([this] { run(); }) {}

reaper::~reaper() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

event reaper::take_event() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return event(device_);
  event e = std::move(free_.back());
  free_.pop_back();
  return e;
}

void reaper::after(stream& s, completion done) {
  event e = take_event();
  record(e, s);
  when(std::move(e), std::move(done));
}

void reaper::when(event moment, completion done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(moment), std::move(done)});
  changed_.notify_one();
}

void reaper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    watched next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::exception_ptr failed;
    try {
      wait_by_looking(next.moment);
    } catch (...) {
      failed = std::current_exception();
    }
    next.done(failed);
    next.done = nullptr;  // what it holds is let go before the lock is taken
    lock.lock();
    free_.push_back(std::move(next.moment));
  }
}

}  // namespace poseidon::gpu
