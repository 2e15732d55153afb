// actors/cluster/frame_rules.hpp
//
// Which frame a node may hear from which other node, and in which of its stages, as messages/frame_table.hpp has it. The node
// asks before it handles a frame. Frames that the link itself consumes, or hands to the actors that train, are the link's matter
// (links, peer_window); a row says so, and none may reach the node.
#pragma once
#include "messages/frames.hpp"
#include "messages/node_stage.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace poseidon {

/// The view in which a node has written a frame, compared with the newest one that its reader knows.
enum class written_in : std::uint8_t { same_view, earlier_view, later_view };

/// The node that hears a frame.
struct frame_listener {
  seat_id self{};
  seat_id leader{};
  node_stage stage = node_stage::starting;
  bool has_led = false;  ///< an earlier view
};
struct frame_sender {
  seat_id seat{};
  /// Of the listener's view; while nodes gather all are.
  bool is_member = true;
  written_in wrote = written_in::same_view;
  bool has_led = false;  ///< an earlier view that the listener was in
};

/// Why `from` may not say this to that node now, with what it did and what it may; empty: it may.
[[nodiscard]] std::optional<std::string> refusal_of(const frame_header& h, const frame_sender& from,
                                                    const frame_listener& to);

/// Whether a frame that `to` may not hear was right in the view in which its sender wrote it: one of the two has not heard yet of a
/// change of the view that the other one knows. It counts for nothing, and is no fault.
[[nodiscard]] bool is_of_another_view(const frame_header& h, const frame_sender& from,
                                      const frame_listener& to);

}  // namespace poseidon
