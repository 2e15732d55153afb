// gpu/simulated/control.hpp
//
// The settings of the simulated machine for tests, and its counters. One machine per process, as with a real one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon::gpu::simulated {

/// The streams that delay their work until a thread or stream waits for an event behind it. This is the latest order that
/// the waits permit, in which a missing wait shows in the values in every run.
enum class lateness { none, copy_streams, compute_streams, all };

struct device_options {
  std::size_t bytes = std::size_t{16} << 30;  ///< counted, not allocated
  /// The kernel at which the device is lost. None: it is not lost.
  std::optional<std::uint64_t> lost_at_kernel = std::nullopt;
  bool has_peers = true;  ///< copies directly to and from other devices with peers
};

/// The default is the machine of a program that opens the simulated plug-in: four good devices, the last of them without
/// peers, one with almost no memory, and one that is lost soon.
struct machine_options {
  std::vector<device_options> devices = {
      {}, {}, {}, {.has_peers = false}, {std::size_t{64} << 10}, {std::size_t{16} << 30, 100}};
  std::size_t pinned_bytes = std::size_t{16} << 30;
  lateness late = lateness::none;
  /// The ways of its library for each product of a convolution, by their time on the device's clock, in the order of the
  /// heuristics. All give the same bits. No other work takes time.
  std::vector<double> convolution_ms = {2, 1};
  /// Rate of matrix products on the device's clock; 0: they take no time.
  double product_flop_s = 0;
};

/// Makes a new machine; no object of the one before may be alive.
void configure(const machine_options& options);

enum class fault_kind {
  allocation,  ///< device memory: there is not enough
  kernel,      ///< while it executes: the device is lost
  copy         ///< likewise
};
/// The `after`-th (from 0) operation of this kind from now on fails.
void inject(fault_kind kind, std::uint64_t after = 0);

/// The time on the clock of a device, in ms.
[[nodiscard]] double clock_ms(int device);

/// Counters since configure().
struct counts {
  std::uint64_t kernels = 0;
  std::uint64_t copies_in = 0, copies_out = 0, copies_within = 0, copies_between = 0;
  std::uint64_t pageable_copies = 0;  ///< copies in and out with host memory that is not pinned
  std::uint64_t host_waits = 0;       ///< synchronise() and pageable copies
  std::uint64_t moments_seen = 0;     ///< has_passed() that said so
  std::uint64_t bytes_in = 0, bytes_out = 0, bytes_between = 0;
  std::size_t device_bytes = 0, pinned_bytes = 0;  ///< allocated now
  std::size_t streams = 0, events = 0;             ///< alive now
};
[[nodiscard]] counts counted();

}  // namespace poseidon::gpu::simulated
