// messages/wire/link_identity.hpp - who a node says it is in a handshake, and how that lies on the stream.
#pragma once
#include "messages/wire/codec.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace poseidon {

/// Trusted once the proof that goes with it is right.
struct link_identity {
  /// "host:port" where it accepts links. A node that listens on every address sends an empty host;
  /// the other side fills in the host that it sees.
  std::string listen_address;
  seat_id seat = no_seat;      ///< no_seat: joins now, has none yet
  std::uint64_t run = 0;       ///< drawn by the run's first leader; 0: it is in none yet
  std::uint64_t epoch = 0;     ///< of the view that it is in; 0: none yet
  std::uint32_t replicas = 0;  ///< that a joiner was told to have; 0: as many as the leader
  /// Why it dials. An acceptor's is what it has joined as: `train`, `witness` or `compute`.
  enum class purpose : std::uint8_t {
    train = 0,
    ask_to_leave = 1,  ///< no node: a program that asks the one that it dials to leave the run
    ask_to_go_on =
        2,  ///< no node: a program that asks it to go on without the members that it does not hear
    look = 3,     ///< a member that has lost its link to this one: is it there, and in which view?
    witness = 4,  ///< it joins, or has joined, as a witness: it votes on views, and trains nothing
    compute = 5   ///< it joins, or has joined, inside a program that computes its gradients itself
  };
  purpose wants = purpose::train;
  /// Of a node that does not lead: where the leader accepts links, so that a joiner may dial any member. Empty: it leads.
  std::string leader_address;
  /// By what its results may differ from another node's: models/fingerprint.hpp. Empty: it computes nothing.
  std::string fingerprint;
};

inline constexpr std::size_t max_address_bytes = 255;
// Seat 4, epoch 8, replicas 4, purpose 1, run 8, then two addresses, its own and the leader's, each of length 1 and 255 bytes (zeros
// behind it), then its fingerprint of length 2 and 1022 bytes (likewise): always whole, so that no length is read.
inline constexpr std::size_t identity_bytes =
    25 + 2 * (1 + max_address_bytes) + 2 + max_fingerprint_bytes;
using identity_block = std::array<std::byte, identity_bytes>;

/// Errors   std::invalid_argument: an address or the fingerprint is too long.
[[nodiscard]] identity_block encode(const link_identity& who);
/// `peer_host` stands for an empty host.
/// Errors   std::invalid_argument: an address is none, the purpose is unknown, or the fingerprint's length. The text continues "worker 2 ...".
[[nodiscard]] link_identity decode_identity(const identity_block& bytes,
                                            const std::string& peer_host);

/// "worker 2, which listens on 10.0.0.7:7600"
[[nodiscard]] std::string name_of(const link_identity& who);

}  // namespace poseidon
