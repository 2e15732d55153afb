#include "actors/links/farewell.hpp"

#include "actors/links/outbox.hpp"
#include "messages/wire/checksum.hpp"
#include "messages/wire/codec.hpp"

#include <vector>

namespace poseidon {

void say_farewell(const link_connection& c, seat_id self, const frames::goodbye& says) noexcept {
  try {
    outbox out(c.peer.keys);
    out.add({std::make_shared<frame_queue::entry>(frame_queue::entry{{says, {}, 0}, 0, 0}),
             {},
             true,
             true},
            {self});
    out.begin_write(0);
    (void)c.socket->write_some(out.unwritten());  // it fits the buffer of a fresh connection
    c.socket->shutdown_writing();
  } catch (const std::exception&) {
    // The peer is gone, and needs no reason.
  }
}

std::optional<frames::goodbye> hear_farewell(const link_connection& c,
                                             std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto read = [&](std::span<std::byte> into) {
    return c.socket->read_exactly(into, deadline).value_or(0) == into.size();
  };
  std::array<std::byte, preamble_bytes> start;
  if (!read(start)) return std::nullopt;
  const auto p = decode_preamble(start);
  std::vector<std::byte> header(p.header_words * std::size_t{8});
  if (!read(header)) return std::nullopt;
  if (const auto sum = crc32c(header); sum != p.checksum)
    throw bad_frame("goodbye", "header checksum", std::to_string(sum), std::to_string(p.checksum));
  if (c.peer.keys) {
    seal_tag tag;
    if (!read(tag)) return std::nullopt;
    const std::array<std::span<const std::byte>, 3> parts{start, header, {}};
    if (!same_tag(tag, frame_seal(c.peer.keys->in).next(parts)))
      throw bad_frame("goodbye", "seal", "wrong", "one made with this connection's key");
  }
  const auto h = decode_header(header);
  const auto* const bye = std::get_if<frames::goodbye>(&h.header);
  return bye != nullptr ? std::optional(*bye) : std::nullopt;
}

}  // namespace poseidon
