// gpu/simulated/runtime.cpp - gpu/runtime/runtime.hpp with a thread per stream.
#include "gpu/runtime/runtime.hpp"

#include "gpu/runtime/launch_simulated.hpp"
#include "gpu/simulated/machine.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

namespace poseidon::gpu {

using simulated::the_machine;

namespace {

/// A place in a stream's queue that others can wait for. An event points at the one where it was recorded last.
class moment {
 public:
  explicit moment(std::function<void()> demand) : demand_(std::move(demand)) {}
  void pass(double now_ms) {
    const std::lock_guard lock(mutex_);
    passed_at_ms_ = now_ms;
    changed_.notify_all();
  }
  /// Passed already? If not, it may not be put off any longer.
  bool has_passed() {
    if (passed_at_ms()) return true;
    demand_();
    return false;
  }
  void wait_for() {
    demand_();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_at_ms_.has_value(); });
  }
  /// By the device's clock; nothing if it is still to come.
  [[nodiscard]] std::optional<double> passed_at_ms() const {
    const std::lock_guard lock(mutex_);
    return passed_at_ms_;
  }

 private:
  std::function<void()> demand_;  // tells a late stream that this is waited for
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<double> passed_at_ms_;
};

/// The state that a stream shares with its moments, so that a moment can outlive its stream.
struct queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> items;
  std::uint64_t enqueued = 0, executed = 0, demanded = 0;
  bool late = false, ending = false;

  /// Everything up to the n-th item may not be put off any longer.
  void demand(std::uint64_t n) {
    const std::lock_guard lock(mutex);
    demanded = std::max(demanded, n);
    changed.notify_all();
  }
  [[nodiscard]] bool may_go_on() const {
    return !items.empty() && (!late || ending || executed < demanded);
  }
};

bool is_late(stream_use use) {
  switch (the_machine().options().late) {
    case simulated::lateness::copy_streams:
      return use != stream_use::compute;
    case simulated::lateness::compute_streams:
      return use == stream_use::compute;
    case simulated::lateness::all:
      return true;
    case simulated::lateness::none:
      break;
  }
  return false;
}

}  // namespace

struct stream::state {
  state(int on, stream_use use) : device(on) {
    shared->late = is_late(use);
    thread = std::thread([q = shared] { execute(*q); });
    ++the_machine().streams;
  }
  ~state() {
    {
      const std::lock_guard lock(shared->mutex);
      shared->ending = true;
      shared->changed.notify_all();
    }
    thread.join();
    --the_machine().streams;
  }

  static void execute(queue& q) {
    std::unique_lock lock(q.mutex);
    for (;;) {
      q.changed.wait(lock, [&] { return q.may_go_on() || (q.ending && q.items.empty()); });
      if (q.items.empty()) return;
      const auto item = std::move(q.items.front());
      q.items.pop_front();
      lock.unlock();
      item();
      lock.lock();
      ++q.executed;
    }
  }

  void enqueue(std::function<void()> item) {
    const std::lock_guard lock(shared->mutex);
    shared->items.push_back(std::move(item));
    ++shared->enqueued;
    shared->changed.notify_all();
  }
  /// Work that may fail, and is not done on a device that has failed.
  void enqueue_work(simulated::fault_kind kind, std::function<void()> work) {
    the_machine().check_alive(device);
    enqueue([on = device, kind, work = std::move(work)] {
      auto& m = the_machine();
      try {
        m.check_alive(on);
        if (m.fails(kind, on))
          throw error(error_kind::lost, 700, "an illegal memory access (injected)");
        work();
      } catch (const std::exception& e) {
        m.lose(on, e.what());
      }
    });
  }
  [[nodiscard]] std::shared_ptr<moment> enqueue_moment() {
    const std::lock_guard lock(shared->mutex);
    const auto place = ++shared->enqueued;
    auto here = std::make_shared<moment>([q = shared, place] { q->demand(place); });
    shared->items.push_back([here, on = device] { here->pass(the_machine().clock_ms(on)); });
    shared->changed.notify_all();
    return here;
  }

  const int device;
  const std::shared_ptr<queue> shared = std::make_shared<queue>();
  std::thread thread;
};

struct event::state {
  state(int on, event_use of) : device(on), use(of) { ++the_machine().events; }
  ~state() { --the_machine().events; }
  [[nodiscard]] std::shared_ptr<moment> last() const {
    const std::lock_guard lock(mutex);
    return recorded;
  }
  const int device;
  const event_use use;
  mutable std::mutex mutex;
  std::shared_ptr<moment> recorded;
};

std::string describe_runtime() {
  return "simulated: threads and host memory, for tests";
}

int device_count() {
  return the_machine().devices();
}

device_properties properties(int device) {
  const auto& m = the_machine();
  m.check_device(device);
  return {"simulated",         0, 0, 1, m.options().devices[static_cast<std::size_t>(device)].bytes,
          m.free_bytes(device)};
}

stream::stream(int device, stream_use use) {
  the_machine().check_device(device);
  state_ = std::make_unique<state>(device, use);
}
stream::~stream() = default;
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&&) noexcept = default;
int stream::device() const {
  return state_->device;
}
void* stream::native() const {
  return state_.get();
}

event::event(int device, event_use use) {
  the_machine().check_device(device);
  state_ = std::make_unique<state>(device, use);
}
event::~event() = default;
event::event(event&&) noexcept = default;
event& event::operator=(event&&) noexcept = default;

void record(event& e, stream& s) {
  if (e.get().device != s.device())
    throw error(error_kind::misused, 400, "an event is recorded on another device than its own");
  auto here = s.get().enqueue_moment();
  const std::lock_guard lock(e.get().mutex);
  e.get().recorded = std::move(here);
}

void wait(stream& s, const event& e) {
  if (auto moment = e.get().last()) s.get().enqueue([moment] { moment->wait_for(); });
}

bool has_passed(const event& e) {
  const auto moment = e.get().last();
  if (moment && !moment->has_passed()) return false;
  ++the_machine().moments_seen;
  the_machine().check_alive(e.get().device);
  return true;
}

void synchronise(const event& e) {
  if (e.get().use == event_use::order)
    throw error(error_kind::misused, 400, "a thread waits for an event that only orders work");
  ++the_machine().host_waits;
  if (const auto moment = e.get().last()) moment->wait_for();
  the_machine().check_alive(e.get().device);
}

double milliseconds_between(const event& from, const event& to) {
  const auto when = [](const event& e) {
    const auto moment = e.get().last();
    const auto at = moment ? moment->passed_at_ms() : std::nullopt;
    if (e.get().use != event_use::timing || !at)
      throw error(error_kind::misused, 400,
                  "the time is asked of an event that is not for timing, or has not passed");
    return *at;
  };
  if (from.get().device != to.get().device)
    throw error(error_kind::misused, 400, "the time is asked between events of two devices");
  return when(to) - when(from);
}

device_memory::device_memory(int device, std::size_t bytes)
    : device_(device), bytes_(the_machine().allocate(device, bytes)), size_(bytes) {}
device_memory::~device_memory() {
  if (bytes_ != nullptr) the_machine().free(device_, bytes_, size_);
}
device_memory::device_memory(device_memory&& o) noexcept
    : device_(o.device_),
      bytes_(std::exchange(o.bytes_, nullptr)),
      size_(std::exchange(o.size_, 0)) {}
device_memory& device_memory::operator=(device_memory&& o) noexcept {
  std::swap(device_, o.device_);
  std::swap(bytes_, o.bytes_);
  std::swap(size_, o.size_);
  return *this;
}

pinned_memory::pinned_memory(std::size_t bytes)
    : bytes_(the_machine().allocate_pinned(bytes)), size_(bytes) {}
pinned_memory::~pinned_memory() {
  if (bytes_ != nullptr) the_machine().free_pinned(bytes_, size_);
}
pinned_memory::pinned_memory(pinned_memory&& o) noexcept
    : bytes_(std::exchange(o.bytes_, nullptr)), size_(std::exchange(o.size_, 0)) {}
pinned_memory& pinned_memory::operator=(pinned_memory&& o) noexcept {
  std::swap(bytes_, o.bytes_);
  std::swap(size_, o.size_);
  return *this;
}

namespace {

/// Copies, and waits where the host's memory is not pinned.
void copy_with_host(stream& s, void* to, const void* from, std::size_t bytes, bool pinned) {
  s.get().enqueue_work(simulated::fault_kind::copy, [=] { std::memcpy(to, from, bytes); });
  if (pinned) return;
  auto& m = the_machine();
  ++m.pageable_copies;
  ++m.host_waits;
  s.get().enqueue_moment()->wait_for();
  m.check_alive(s.device());
}

}  // namespace

void copy_to_device(stream& s, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto& m = the_machine();
  m.check_on_device(s.device(), to, bytes, "copy to the device");
  const bool pinned = m.is_pinned(from, bytes, "copy to the device");
  ++m.copies_in;
  m.bytes_in += bytes;
  copy_with_host(s, to, from, bytes, pinned);
}

void copy_to_host(stream& s, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto& m = the_machine();
  m.check_on_device(s.device(), from, bytes, "copy to the host");
  const bool pinned = m.is_pinned(to, bytes, "copy to the host");
  ++m.copies_out;
  m.bytes_out += bytes;
  copy_with_host(s, to, from, bytes, pinned);
}

void copy_within_device(stream& s, void* to, const void* from, std::size_t bytes) {
  copy_between_devices(s, to, s.device(), from, s.device(), bytes);
}

bool enable_copies(int device, int other) {
  return the_machine().enable_copies(device, other);
}

void copy_between_devices(stream& s, void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes) {
  if (bytes == 0) return;
  auto& m = the_machine();
  m.check_on_device(to_device, to, bytes, "copy between devices, target");
  m.check_on_device(from_device, from, bytes, "copy between devices, source");
  if (from_device == to_device) {
    ++m.copies_within;
  } else {
    m.check_enabled(from_device, to_device);
    ++m.copies_between;
    m.bytes_between += bytes;
  }
  s.get().enqueue_work(simulated::fault_kind::copy, [=] { std::memcpy(to, from, bytes); });
}

void clear(stream& s, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  the_machine().check_on_device(s.device(), to, bytes, "clear");
  s.get().enqueue_work(simulated::fault_kind::kernel, [=] { std::memset(to, 0, bytes); });
}

namespace simulated {

void enqueue_kernel(stream& s, std::function<void()> work) {
  ++the_machine().kernels;
  s.get().enqueue_work(fault_kind::kernel, std::move(work));
}

}  // namespace simulated

}  // namespace poseidon::gpu
