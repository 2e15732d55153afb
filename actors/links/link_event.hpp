// actors/links/link_event.hpp - one frame written or read, for the trace.
#pragma once
#include "messages/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace poseidon {

/// Times are steady_clock nanoseconds. Where several frames go in one write, each has a part of the write's time, in
/// proportion to its bytes. So the events of one direction follow each other, or a more urgent one lies within the one
/// that it interrupted.
struct link_event {
  bool sent = false;
  seat_id peer{};
  std::string_view kind;
  std::optional<chunk_id> chunk;
  std::optional<layer_id> layer;  ///< of factors
  std::uint64_t number = 0;       ///< clock or version; 0 where there is none
  std::int64_t start_ns = 0;      ///< before the first byte is written, after the header is read
  std::int64_t end_ns = 0;        ///< after the last byte is in the kernel, or is read and verified
  std::size_t bytes = 0;          ///< payload
};
/// Called by the link's two threads, also at the same time.
using link_trace = std::function<void(const link_event&)>;

/// An event with the frame's kind, chunk, layer and number filled in.
[[nodiscard]] link_event describe(const frame_header& h);

}  // namespace poseidon
