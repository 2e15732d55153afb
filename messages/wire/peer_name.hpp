// messages/wire/peer_name.hpp - what users read of another node.
#pragma once
#include "messages/ids.hpp"

#include <cstdint>
#include <string>

namespace poseidon {

/// A witness votes on views, and trains nothing.
enum class peer_kind : std::uint8_t { worker, witness };

/// "worker 2 (10.0.0.7:7600)", "witness 3 (10.0.0.9:7600)", "a joining node (...)" for no_seat.
[[nodiscard]] std::string peer_name(seat_id peer, const std::string& address,
                                    peer_kind kind = peer_kind::worker);

}  // namespace poseidon
