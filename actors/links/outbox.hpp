// actors/links/outbox.hpp - one write of a network_link: pieces with their headers, laid out as the kernel takes them.
#pragma once
#include "actors/links/frame_queue.hpp"
#include "messages/wire/codec.hpp"
#include "messages/wire/frame_seal.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace poseidon {

/// Filled with add(), then written in one or more steps, then cleared.
class outbox {
 public:
  static constexpr std::size_t most_pieces = 16;  ///< small frames go together in one write
  struct slot {
    std::array<std::byte, preamble_bytes> preamble;
    std::vector<std::byte> header;
    frame_queue::piece piece;
    seal_tag tag;
    std::size_t bytes = 0;  ///< preamble, header, payload and tag
  };

  /// `keys`: of the link, for its seals; none: it has no token.
  explicit outbox(const std::optional<link_keys>& keys = {});
  outbox(const outbox&) = delete;  // parts_ point into it
  outbox& operator=(const outbox&) = delete;

  /// Not while it is full() or a write has begun.
  /// Errors   std::length_error if the header is larger than a peer would read; nothing is added.
  void add(frame_queue::piece p, const frame_writer& from);
  [[nodiscard]] bool empty() const { return pieces_ == 0; }
  [[nodiscard]] bool full() const {
    return pieces_ == most_pieces || payload_bytes_ >= piece_bytes;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<const slot> slots() const { return std::span(slots_).first(pieces_); }

  void begin_write(std::int64_t now_ns);
  [[nodiscard]] std::int64_t begin_ns() const { return begin_ns_; }
  /// What of the write the kernel has not yet taken; empty before begin_write().
  [[nodiscard]] std::span<iovec> unwritten() const { return unwritten_; }
  [[nodiscard]] std::size_t unwritten_bytes() const;
  void set_unwritten(std::span<iovec> rest) { unwritten_ = rest; }
  /// Lets go of the payloads.
  void clear();

 private:
  void put(std::span<const std::byte> b);

  std::array<slot, most_pieces> slots_;
  std::array<iovec, 4 * most_pieces> parts_;
  std::optional<frame_seal> seal_;
  std::size_t pieces_ = 0, used_parts_ = 0, bytes_ = 0, payload_bytes_ = 0;
  std::span<iovec> unwritten_;  // of parts_
  std::int64_t begin_ns_ = 0;
};

}  // namespace poseidon
