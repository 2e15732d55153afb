#include "messages/wire/handshake_tls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;

/// TLS's alert internal_error, as it stands before anything is encrypted: it means busy here.
void write_busy_alert(tcp_socket& s) {
  constexpr std::array<std::byte, 7> alert{std::byte{21}, std::byte{3}, std::byte{3}, std::byte{0},
                                           std::byte{2},  std::byte{2}, std::byte{80}};
  s.write(alert);
}

refusal refusal_for(tls_fault why) {
  switch (why) {
    case tls_fault::plain:
      return refusal::tls_differs;
    case tls_fault::http:
    case tls_fault::not_tls:
    case tls_fault::damaged:
      return refusal::not_poseidon;
    case tls_fault::certificate:
    case tls_fault::refused:
      return refusal::certificate;
    case tls_fault::busy:
      return refusal::busy;
    case tls_fault::silent:
      return refusal::silent;
    case tls_fault::closed:
      break;
  }
  return refusal::closed;
}

/// The peer has an alert of OpenSSL's by now, or is told here in what it understands.
void tell_why(tcp_socket& s, const tls_error& e, handshake_role role, bool gives_way) {
  const bool said_something = s.tls()->has_sent();
  try {
    if (e.why == tls_fault::plain && role == handshake_role::acceptor) {
      s.drop_tls();
      refuse_unheard(s, refusal::tls_differs);
    } else if (gives_way && !said_something) {
      s.drop_tls();
      write_busy_alert(s);
    }
  } catch (const socket_error&) {
    // The peer is gone; our own user is told all the same.
  }
}

}  // namespace

handshake_error in_handshake(const tls_error& e) {
  return {refusal_for(e.why), e.what()};
}

bool has_to_give_way(const handshake_options& options) {
  return options.progress && options.progress->give_way && !options.progress->proved;
}

void begin_tls(tcp_socket& s, handshake_role role, const handshake_options& options,
               clock::time_point deadline) {
  s.use_tls(*options.tls, role == handshake_role::dialer ? tls_side::dials : tls_side::accepts);
  try {
    s.shake_tls(deadline, options.stop.get());
  } catch (const tls_error& e) {
    const bool gives_way = e.why == tls_fault::closed && has_to_give_way(options);
    tell_why(s, e, role, gives_way);
    s.linger(std::min(deadline, clock::now() + last_words));
    if (gives_way) throw handshake_error(refusal::busy, s.peer() + " " + gave_way);
    const auto refused = in_handshake(e);
    const auto unused = options.tls->why_unused();
    if (refused.why != refusal::certificate || unused.empty()) throw refused;
    throw handshake_error(refusal::certificate,
                          std::string(e.what()) +
                              " This node's own files have changed and cannot be used, so it still "
                              "shows its former certificate: " +
                              unused);
  } catch (const socket_error& e) {
    if (e.error == ECANCELED) throw;
    throw handshake_error(refusal::closed, s.peer() + " broke off the TLS handshake: " +
                                               std::strerror(e.error) + ".");
  }
}

void refuse_busy(tcp_socket& s, const handshake_options& options) noexcept {
  if (!options.tls) return refuse_unheard(s, refusal::busy);
  try {
    write_busy_alert(s);
    s.shutdown_writing();
  } catch (const std::exception&) {
  }
}

}  // namespace poseidon
