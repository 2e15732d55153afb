// actors/links/farewell.hpp - tells a peer that gets no link why, in words that reach its user.
#pragma once
#include "messages/frames.hpp"
#include "messages/ids.hpp"
#include "messages/wire/handshake.hpp"

#include <chrono>
#include <optional>

namespace poseidon {

/// Writes a goodbye on a connection after its handshake, and nothing after it. The peer reads it as any link's. Never throws;
/// a peer that does not read waits for nothing. The caller keeps the socket for a while: closed at once, the connection could
/// be reset before the peer has read.
void say_farewell(const link_connection& c, seat_id self, const frames::goodbye& says) noexcept;

/// Reads what say_farewell() has written. Empty: the peer closes without a word.  Errors   socket_error; bad_frame.
[[nodiscard]] std::optional<frames::goodbye> hear_farewell(const link_connection& c,
                                                           std::chrono::milliseconds limit);

}  // namespace poseidon
