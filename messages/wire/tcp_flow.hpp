// messages/wire/tcp_flow.hpp - what the kernel knows of how a connection has been sending.
#pragma once
#include <cstdint>
#include <optional>

namespace poseidon {

/// Since the connection is there.
struct tcp_flow {
  std::uint64_t acked_bytes = 0;
  /// While there was something that the peer's kernel had not confirmed. A sender that comes late is not in it: with
  /// nothing to send a connection is not busy.
  std::uint64_t busy_us = 0;
  /// Of that: while the receiver's process had not read enough, so that its window, not the line, was the limit.
  std::uint64_t hindered_us = 0;
};

/// Empty where the kernel does not say.
[[nodiscard]] std::optional<tcp_flow> flow_of(int descriptor);

}  // namespace poseidon
