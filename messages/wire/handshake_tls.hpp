// messages/wire/handshake_tls.hpp
//
// What comes before the handshake where a node has TLS: TLS's own one, within the same limit. Each side is told in one line what is
// wrong, also where one of the two speaks no TLS: an acceptor answers a plain dialer in the plain protocol.
#pragma once
#include "messages/wire/handshake.hpp"

#include <chrono>

namespace poseidon {

/// Errors   handshake_error; socket_error, ECANCELED if options.stop is set.
void begin_tls(tcp_socket& s, handshake_role role, const handshake_options& options,
               std::chrono::steady_clock::time_point deadline);

/// The error of a handshake in which TLS failed.
[[nodiscard]] handshake_error in_handshake(const tls_error& e);

/// Whether a peer that has proved nothing has to make room for another connection.
[[nodiscard]] bool has_to_give_way(const handshake_options& options);
inline constexpr const char* gave_way =
    "had to give way: too many connections have not said who they are.";

/// For which a refused peer is given time to read why.
inline constexpr std::chrono::milliseconds last_words{200};

}  // namespace poseidon
