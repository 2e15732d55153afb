// messages/wire/handshake.hpp
//
// Who is on the other end? Both sides of a new connection prove that they know the cluster's token
// before anything else is read from it. Fixed sizes, no parser: this is all that a stranger can
// reach.
//
//   both      hello    magic "POSEIDON", wire version, whether a token is set, build, 32 random bytes
//   dialer    proof    who it is, HMAC-SHA256(token; "dialer" | both hellos | who it is)
//   acceptor  proof    the same with "acceptor", only after it has found the dialer's to be right
//   dialer    welcome  after it has found the acceptor's to be right; both may speak frames now
//
// Instead of its next part either side may say `refused` and why, without a word about the token.
// The hellos hold the random bytes of both sides and both versions, so an old proof is worth
// nothing, and the role in it keeps a stranger from handing a side its own. The dialer proves
// first, so a stranger who merely connects gets nothing that a token could be guessed from. An
// attacker whom we dial does, so a token should be long and random. With a token all frames that follow are
// sealed (frame_seal.hpp); they are encrypted only by TLS.
//
// With TLS (tls_channel.hpp) all of this is said inside of it, and both sides have checked each other's certificates before. A stranger
// reaches OpenSSL's parser then, within the same limit of time.
//
// The first 12 bytes of a hello keep their meaning in all versions, so that any two can name each other's.
#pragma once
#include "messages/wire/frame_seal.hpp"
#include "messages/wire/link_identity.hpp"
#include "messages/wire/socket.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace poseidon {

/// Of one handshake of an acceptor; its atomics belong to any thread.
struct handshake_progress {
  std::atomic<bool> proved{false};  ///< the peer knows the token
  /// Asks a handshake whose peer has proved nothing to refuse it as busy. Its socket's reads have to be ended, too.
  std::atomic<bool> give_way{false};
};

struct handshake_options {
  std::string token;                       ///< the cluster's secret; empty: none is configured here
  std::shared_ptr<const tls_context> tls;  ///< empty: connections are not encrypted
  std::string build;                       ///< this program's release, for error texts: "0.1.0"
  link_identity self;
  /// An acceptor's, in place of `self`: what is true when a connection comes. Called by any thread; may be empty.
  std::function<link_identity()> identify;
  std::chrono::milliseconds limit{5000};  ///< for the whole of it
  /// Of who dials through a node_network; empty: a minute.
  std::optional<std::chrono::milliseconds> patience;
  std::uint32_t version = wire_version;            ///< tests set another
  std::shared_ptr<const wake_up> stop;             ///< ends waits of the dialing side; may be empty
  std::function<void(const std::string&)> detail;  ///< told each step, by any thread; may be empty
  /// dial(): completes `self` when the connection is there. `here`: this end's address.  May throw; may be empty.
  std::function<void(const host_port& here, link_identity& self)> introduce;
  /// dial(): nobody listens yet; it tries again for so long. May be empty.
  std::function<void(std::chrono::milliseconds left)> unheard;
  /// An acceptor's: shared with who may ask it to give way to another connection.
  std::shared_ptr<handshake_progress> progress;
};

enum class refusal : std::uint8_t {
  wrong_token = 1,
  token_missing = 2,  ///< one side has a token, the other none
  other_version = 3,
  not_poseidon = 4,  ///< what came is no hello
  silent = 5,
  closed = 6,
  bad_identity = 7,
  busy = 8,         ///< too many connections are being checked already
  tls_differs = 9,  ///< one side has TLS, the other none
  certificate = 10  ///< a certificate was refused; never sent, because TLS's own alert says so
};

/// Errors of a handshake: one line that names the peer, what it sent, what was expected, what to
/// do.
struct handshake_error : std::runtime_error {
  handshake_error(refusal why, const std::string& text) : std::runtime_error(text), why(why) {}
  refusal why;
};

enum class handshake_role { dialer, acceptor };

/// Who the peer is, and the keys with which frames are sealed from now on; none without a token.
struct proved_peer : link_identity {
  std::optional<link_keys> keys;
};

/// Runs the handshake on a fresh connection, blocking up to options.limit. On return both sides
/// have proved themselves and the stream stands at its first frame. Errors   handshake_error. The
/// peer has been told (refused) where it could understand it; the caller closes.
[[nodiscard]] proved_peer shake_hands(tcp_socket& s, handshake_role role,
                                      const handshake_options& options);

/// Tells a peer why it is refused, before anything has been read from it. Never throws, never blocks for long.
void refuse_unheard(tcp_socket& s, refusal why) noexcept;
/// Tells a peer that this node checks too many connections (refusal::busy), in TLS if that is what this node speaks.
void refuse_busy(tcp_socket& s, const handshake_options& options) noexcept;

/// An authenticated connection.
struct link_connection {
  std::shared_ptr<tcp_socket> socket;
  proved_peer peer;
};

/// Connects and shakes hands, blocking. While the other side does not listen yet, or is busy, it
/// tries again until `patience` has passed, and for some seconds where it closes the connection (an
/// earlier run that has just ended); an error that waiting cannot mend (wrong token, other version)
/// ends it immediately.
/// Errors   socket_error (ECANCELED: options.stop was set), handshake_error.
[[nodiscard]] link_connection dial(const host_port& to, const handshake_options& options,
                                   std::chrono::milliseconds patience);

}  // namespace poseidon
