// actors/links/link_counters.hpp - what one link has carried.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace poseidon {

/// Written by the link's two threads; any thread may read them at any time.
struct link_counters {
  std::atomic<std::uint64_t> bytes_out{0}, bytes_in{0};  ///< on the socket, headers included
  std::atomic<std::uint64_t> frames_out{0}, frames_in{0};
  /// When the last frame with values came, as steady_clock counts; 0: none has.
  std::atomic<std::int64_t> values_in_at{0};
  /// When the link was last read after half of the silence limit without a read, likewise: the peer was quiet, or this process slept.
  std::atomic<std::int64_t> gap_ended_at{0};
};

/// Ten seconds ago or less. The others may have gone on without this node while it did not hear them, and have ended since: what
/// their machines say is no news then.
[[nodiscard]] bool heard_after_a_gap(const link_counters& counters,
                                     std::chrono::steady_clock::time_point now);

/// "link to worker 1 (10.0.0.7:7600): 12.5 MB in 310 frames out, 12.4 MB in 305 frames in"
[[nodiscard]] std::string describe_traffic(const std::string& peer, const link_counters& counters);

}  // namespace poseidon
