// gpu/simulated/machine.hpp - the simulated machine: the owners of memory, failures, counters.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/simulated/control.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon::gpu::simulated {

class machine {
 public:
  explicit machine(const machine_options& options);

  [[nodiscard]] const machine_options& options() const { return options_; }
  [[nodiscard]] int devices() const { return static_cast<int>(options_.devices.size()); }
  /// Errors   gpu::error (misused): there is no such device.
  void check_device(int device) const;
  /// Throws the error of the device, if it has failed.
  void check_alive(int device) const;

  [[nodiscard]] std::byte* allocate(int device, std::size_t bytes);
  void free(int device, std::byte* memory, std::size_t bytes) noexcept;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes);
  void free_pinned(std::byte* memory, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t free_bytes(int device) const;

  /// Errors   gpu::error (misused), with `what`: the bytes are not all in one allocation of the device.
  void check_on_device(int device, const void* from, std::size_t bytes, const char* what) const;
  /// Errors   gpu::error (misused): they are a device's.
  [[nodiscard]] bool is_pinned(const void* from, std::size_t bytes, const char* what) const;

  /// See enable_copies().
  [[nodiscard]] bool enable_copies(int device, int other);
  /// Errors   gpu::error (misused): they are not enabled.
  void check_enabled(int device, int other) const;

  void inject(fault_kind kind, std::uint64_t after);
  /// Counts one operation of this kind on the device; true for the one that has to fail.
  [[nodiscard]] bool fails(fault_kind kind, int device);
  void lose(int device, const std::string& why);

  /// Work on the device takes this time.
  void spend(int device, double ms);
  [[nodiscard]] double clock_ms(int device) const;

  // Relaxed: only totals are read, when all work has finished.
  std::atomic<std::uint64_t> kernels{0}, copies_in{0}, copies_out{0}, copies_within{0},
      copies_between{0}, pageable_copies{0}, host_waits{0}, moments_seen{0}, bytes_in{0},
      bytes_out{0}, bytes_between{0};
  std::atomic<std::size_t> streams{0}, events{0};
  [[nodiscard]] std::size_t device_bytes() const;
  [[nodiscard]] std::size_t pinned_bytes() const;

 private:
  struct block {
    std::size_t bytes = 0;
    int device = 0;  // -1: pinned
  };
  [[nodiscard]] const std::pair<const std::byte* const, block>* find(const void* p) const;

  const machine_options options_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, block> blocks_;
  std::vector<std::size_t> used_;       // by device
  std::vector<std::uint64_t> kernels_;  // by device, executed
  std::vector<double> clocks_ms_;       // by device
  std::size_t pinned_ = 0;
  std::vector<std::string> lost_;  // by device; empty: it works
  std::map<fault_kind, std::uint64_t> faults_;
  std::set<std::pair<int, int>> enabled_;  // copies from one device to another
};

/// The process's.
[[nodiscard]] machine& the_machine();

}  // namespace poseidon::gpu::simulated
