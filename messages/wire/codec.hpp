// messages/wire/codec.hpp
//
// frames.hpp to bytes and back. wire.capnp says what lies on the stream. Everything that a peer can get
// wrong becomes a bad_frame: what is wrong in any run is found here, what is wrong in this run in
// actors/links/frame_check.hpp, what is wrong at this time in actors/parameters/peer_window.hpp.
#pragma once
#include "messages/frames.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

inline constexpr std::uint32_t wire_version = 27;  ///< see wire.capnp, Evolution
inline constexpr worker_id no_worker{0xffffffff};  ///< a node that is in no view
inline constexpr seat_id no_seat{0xffffffff};      ///< Frame.from of a node that has no seat yet

inline constexpr std::size_t piece_bytes = 256u << 10;  ///< payload in one piece
inline constexpr std::size_t max_open_frames = 8;       ///< begun and not complete, per direction
inline constexpr std::size_t max_payload_bytes = 64u << 20;  ///< chunks are <= 2 MiB
inline constexpr std::size_t max_view_bytes = 24u << 20;    ///< header of a frame that carries nets
inline constexpr std::size_t max_header_bytes = 64u << 10;  ///< header of every other kind
inline constexpr std::size_t max_members = 4096;
inline constexpr std::size_t max_replicas = 4096;  ///< of a node
inline constexpr std::uint32_t max_survive = 2;    ///< lost nodes
inline constexpr std::uint64_t max_share_samples = 0x7fffffff;
inline constexpr std::size_t max_test_nets = 64;
inline constexpr std::size_t max_report_values = 4096;
inline constexpr std::size_t max_parameters = 65536;  ///< whose routes and formats a view can tell
inline constexpr std::size_t max_data_sets = 65536;   ///< data layers of a view's nets
inline constexpr std::size_t max_shared = 65536;      ///< entries of view.shared
inline constexpr std::uint64_t max_shared_bytes = std::uint64_t{1} << 48;  ///< of one
inline constexpr std::size_t shared_piece_bytes = 2u << 20;  ///< payload of a shared_state
inline constexpr std::size_t max_dims = 64;                  ///< of a declared parameter
inline constexpr std::uint64_t max_parameter_values = std::uint64_t{1} << 36;
inline constexpr std::uint32_t min_report_ms = 50, max_report_ms = 10000;  ///< a watch's interval
inline constexpr std::size_t max_text_bytes = 4096;  ///< reasons and addresses; longer ones are cut

/// What a peer sent cannot be right. what() reads "push_gradient: chunk is 77, at most 11 is
/// possible".
struct bad_frame : std::runtime_error {
  bad_frame(std::string_view kind, std::string_view field, std::string_view got,
            std::string_view wanted);
  std::string kind, field, got, wanted;
};

/// "push_gradient", as in messages, logs and traces.
[[nodiscard]] std::string_view kind_name(const frame_header& h);
/// Whether frames of this kind carry values.
[[nodiscard]] bool has_payload(const frame_header& h);
/// Whether a header of this kind may have max_view_bytes: those that carry nets, or a whole view.
[[nodiscard]] bool carries_nets(const frame_header& h);

inline constexpr std::size_t preamble_bytes = 8;
struct preamble {
  std::uint32_t header_words = 0;  ///< 0: the piece continues the frame begun last
  std::uint32_t checksum = 0;  ///< crc32c of the header; without one, of the payload in this piece
};
[[nodiscard]] std::array<std::byte, preamble_bytes> encode_preamble(const preamble& p);
/// Errors   bad_frame if this is no preamble or announces a header beyond max_view_bytes.
[[nodiscard]] preamble decode_preamble(std::span<const std::byte, preamble_bytes> bytes);

/// Who writes a frame.
struct frame_writer {
  seat_id seat = no_seat;
  std::uint64_t epoch = 0;  ///< of the view that its link is bound to; 0: none yet
};

/// What goes into the header beside the frame itself.
struct envelope {
  frame_writer from;
  std::size_t payload_bytes = 0;       ///< of the whole frame
  std::uint32_t payload_checksum = 0;  ///< crc32c of the payload in the frame's first piece
};

/// The header as it lies on the stream, whole words, into `out` (replaced; keep it to save
/// allocations). Errors   std::length_error if a view is larger than a peer would read: says by how
/// much.
void encode_header(const frame_header& h, const envelope& e, std::vector<std::byte>& out);

struct decoded_header : envelope {
  frame_header header;
};
/// Errors   bad_frame for anything that encode_header would not have written: damaged or truncated
///          messages, unknown kinds, lists and texts beyond the limits above, a payload where none
///          belongs.
[[nodiscard]] decoded_header decode_header(std::span<const std::byte> bytes);

}  // namespace poseidon
