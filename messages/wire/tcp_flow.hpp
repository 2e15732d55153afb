// messages/wire/tcp_flow.hpp - what the kernel knows of how a connection has been sending.
#pragma once
#include <cstdint>
#include <optional>

namespace poseidon {

/// Since the connection was made.
struct tcp_flow {
  std::uint64_t acked_bytes = 0;
  /// Time with data that the peer's kernel had not confirmed. A sender that comes late does not count: with nothing to
  /// send a connection is not busy.
  std::uint64_t busy_us = 0;
  /// Part of that time in which the receiver's process had not read enough, so that its window, not the line, was the
  /// limit.
  std::uint64_t hindered_us = 0;
  /// Time in which the sending thread had no core, so that the machine, not the line, was the limit. Not the kernel's, but
  /// the link's to say.
  std::uint64_t waited_us = 0;
};

/// Empty where the kernel does not tell.
[[nodiscard]] std::optional<tcp_flow> flow_of(int descriptor);

}  // namespace poseidon
