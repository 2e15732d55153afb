// gpu/simulated/control.hpp
//
// What tests arrange on the simulated machine, and what they can count. One machine per process, as with a real one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon::gpu::simulated {

/// Which streams put off what is enqueued until somebody waits for an event behind it. The latest order that the
/// waits permit, and so the one in which a missing wait shows in the values, in every run.
enum class lateness { nobody, copy_streams, compute_streams, everybody };

struct device_options {
  std::size_t bytes = std::size_t{16} << 30;  ///< counted, not taken
  /// The kernel with which it is lost. None: it is not.
  std::optional<std::uint64_t> lost_at_kernel = std::nullopt;
  bool has_peers = true;  ///< copies to and from other devices that have some
};

/// Also what a program has that opens the simulated plug-in: four good devices, the last of them without peers, one
/// with next to no memory, and one that does not live long.
struct machine_options {
  std::vector<device_options> devices = {
      {}, {}, {}, {.has_peers = false}, {std::size_t{64} << 10}, {std::size_t{16} << 30, 100}};
  std::size_t pinned_bytes = std::size_t{16} << 30;
  lateness late = lateness::nobody;
  /// The ways that its library has for each product of a convolution, by what they take of the device's clock, in the
  /// order in which its heuristics like them. All give the same bits. But for these nothing takes time.
  std::vector<double> convolution_ms = {2, 1};
  double product_flop_s =
      0;  ///< how fast matrix products pass on the device's clock; 0: they take no time
};

/// A new machine; nothing of the one before may be alive.
void configure(const machine_options& options);

enum class fault_kind {
  allocation,  ///< of device memory: answers that there is not enough
  kernel,      ///< while it executes: the device is lost
  copy         ///< likewise
};
/// The `after`-th (from 0) such thing from now on fails.
void inject(fault_kind kind, std::uint64_t after = 0);

/// What has passed on the clock of a device, ms.
[[nodiscard]] double clock_ms(int device);

/// Since configure().
struct counts {
  std::uint64_t kernels = 0;
  std::uint64_t copies_in = 0, copies_out = 0, copies_within = 0, copies_between = 0;
  std::uint64_t pageable_copies = 0;  ///< of copies in and out: with host memory that is not pinned
  std::uint64_t host_waits = 0;       ///< synchronise() and pageable copies
  std::uint64_t bytes_in = 0, bytes_out = 0, bytes_between = 0;
  std::size_t device_bytes = 0, pinned_bytes = 0;  ///< allocated now
  std::size_t streams = 0, events = 0;             ///< alive now
};
[[nodiscard]] counts counted();

}  // namespace poseidon::gpu::simulated
