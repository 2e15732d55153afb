// messages/wire/tls_error.hpp - what can be wrong between two ends of TLS, in words for users.
#pragma once
#include "messages/wire/wake_up.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

struct x509_store_ctx_st;  // OpenSSL's

namespace poseidon {

enum class tls_fault {
  plain,        ///< the peer speaks Poseidon's protocol without TLS
  http,         ///< it speaks HTTP without TLS
  not_tls,      ///< it speaks something else
  certificate,  ///< its certificate is refused here
  refused,      ///< it refused this node's certificate, or TLS as this node speaks it
  busy,         ///< it checks too many connections
  silent,       ///< it said nothing for as long as a handshake may take
  closed,       ///< it closed the connection during the handshake
  damaged       ///< what came is not what was sent
};

/// One line for the user that names the peer and what to do.
struct tls_error : socket_error {
  tls_error(tls_fault why, const std::string& text);
  tls_fault why;
};

/// Why a certificate is refused, when its check has failed. `authority` names what it should chain to.
/// The text continues "has a certificate that".
[[nodiscard]] std::string refusal_of(x509_store_ctx_st* check, const std::string& authority);
/// What is wrong with a peer with which OpenSSL has failed. Takes OpenSSL's error of this thread. `certificate`: why the peer's was
/// refused. `first`: the first bytes that the peer has sent.
[[nodiscard]] tls_error fault_of(const std::string& peer,
                                 const std::optional<std::string>& certificate,
                                 std::span<const std::byte> first);

/// OpenSSL's last error of this thread in its own words.
[[nodiscard]] std::string last_tls_words();

}  // namespace poseidon
