// actors/links/frame_queue.hpp - the frames that a network_link has yet to send, most urgent first.
#pragma once
#include "messages/link.hpp"
#include "messages/wire/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace poseidon {

/// Frames by priority (smaller first, first come first served among equals), given out in pieces. A
/// more urgent frame goes between two pieces of a less urgent one, so it waits for one piece at
/// most; the interrupted frame goes on when nothing more urgent waits. Begun frames thus form a
/// stack, which is why a continuing piece needs no name on the wire: it always belongs to the frame
/// begun last.
class frame_queue {
 public:
  struct entry {
    send_frame frame;
    std::size_t sent = 0;         ///< payload bytes given out so far
    std::int64_t started_ns = 0;  ///< set and read by network_link, for the trace
  };
  /// A run of bytes to write next.
  struct piece {
    std::shared_ptr<entry> of;
    std::span<const std::byte> bytes;  ///< of the payload; empty for a frame without one
    bool first = false;                ///< the header goes before it
    bool last = false;                 ///< the frame is complete after it
  };

  using shared_entry = std::shared_ptr<entry>;

  void push(send_frame f);
  /// The next piece, with at most piece_bytes of payload; nothing if no frame waits.
  [[nodiscard]] std::optional<piece> take();
  /// The next piece if it is a frame without a payload; else nothing.
  [[nodiscard]] std::optional<piece> take_without_payload();

  /// Forgets the frames that no piece has been taken of and that `gone` holds for.
  template <class Predicate>
  void drop(Predicate gone) {
    for (auto line = waiting_.begin(); line != waiting_.end();) {
      std::erase_if(line->second, [&](const shared_entry& e) {
        if (!gone(e->frame.header)) return false;
        --frames_;
        bytes_ -= e->frame.data.bytes.size();
        return true;
      });
      line = line->second.empty() ? waiting_.erase(line) : std::next(line);
    }
  }
  /// Whether a frame is written in part.
  [[nodiscard]] bool has_begun() const { return !begun_.empty(); }

  [[nodiscard]] bool empty() const { return waiting_.empty() && begun_.empty(); }
  [[nodiscard]] std::size_t frames() const { return frames_ + begun_.size(); }
  /// Payload bytes not yet given out.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  [[nodiscard]] bool starts_new() const;
  piece cut(const std::shared_ptr<entry>& e);

  std::map<std::uint64_t, std::deque<shared_entry>> waiting_;  // an empty line is erased
  std::vector<shared_entry> begun_;                            // priorities fall from bottom to top
  std::size_t frames_ = 0;                                     // in waiting_
  std::size_t bytes_ = 0;
};

}  // namespace poseidon
