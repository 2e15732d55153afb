#include "messages/wire/tls_error.hpp"

#include "messages/wire/little_endian.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>

namespace poseidon {
namespace {

constexpr const char* own_flags = "--tls-cert, --tls-key and --tls-ca";

/// A name from a peer's certificate as it may be shown to a user.
std::string shown(const X509_NAME* name) {
  char line[256] = {};
  X509_NAME_oneline(name, line, sizeof line);
  return printable(std::as_bytes(std::span(line)));
}

std::string shown(const ASN1_TIME* time) {
  std::tm t{};
  char text[32] = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &t) != 1) return "an unreadable date";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &t);
  return text;
}

/// As far as the peer's bytes are known: OpenSSL reads five of them before it gives up.
bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  const auto known = std::min(bytes.size(), text.size());
  return known >= 4 && printable(bytes.first(known)) == text.substr(0, known);
}

bool is_tls(std::span<const std::byte> first) {
  constexpr std::byte alert{21}, handshake{22};
  return !first.empty() && (first[0] == alert || first[0] == handshake);
}

/// What a peer's alert means, by its number in RFC 8446, section 6.
tls_error refused_with(int alert, const std::string& peer) {
  const auto number = " (TLS alert " + std::to_string(alert) + ")";
  switch (alert) {
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_DECRYPT_ERROR:  // another authority of the same name
      return {tls_fault::refused,
              peer + " refused this node's certificate: it does not chain to its --tls-ca" +
                  number +
                  ". Give all nodes certificates that one authority has signed, and the same "
                  "--tls-ca."};
    case SSL_AD_CERTIFICATE_EXPIRED:
      return {tls_fault::refused,
              peer + " refused this node's certificate as expired" + number +
                  ". Make a new one with the cluster's authority; if it is still valid, set that "
                  "machine's clock."};
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_UNKNOWN:
      return {tls_fault::refused, peer + " refused this node's certificate" + number +
                                      ". Its log says why; it may be of another use than TLS, or "
                                      "not valid yet."};
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return {tls_fault::refused, peer +
                                      " wants a certificate of this node. Give it the cluster's " +
                                      own_flags + number + "."};
    case SSL_AD_BAD_RECORD_MAC:
      return {tls_fault::damaged, peer + " got something else than this node sent" + number +
                                      ": something on the way changes it."};
    case SSL_AD_INTERNAL_ERROR:
      return {tls_fault::busy, peer + " is checking too many connections at once" + number +
                                   ". Try again in a few seconds."};
    default:
      return {tls_fault::refused,
              peer + " refused TLS" + number +
                  ". Run the same release of Poseidon on every node; its log says more."};
  }
}

tls_error not_tls(const std::string& peer, std::span<const std::byte> first) {
  if (begins_with(first, "POSEIDON"))
    return {tls_fault::plain, peer +
                                  " speaks Poseidon's protocol without TLS, and this node has TLS. "
                                  "Give it the cluster's " +
                                  own_flags + ", or give them to no node."};
  if (begins_with(first, "HTTP/"))
    return {tls_fault::http,
            peer + " serves its page without TLS. Leave out --tls-ca, or give that node " +
                own_flags + "."};
  if (begins_with(first, "GET ") || begins_with(first, "HEAD") || begins_with(first, "POST"))
    return {tls_fault::http, peer + " asks by http where TLS is spoken. Use https."};
  return {tls_fault::not_tls, peer + " does not speak TLS: it began with \"" + printable(first) +
                                  "\". Check that it is a poseidon-node with --tls-cert."};
}

}  // namespace

tls_error::tls_error(tls_fault why, const std::string& text)
    : socket_error(text, EPROTO), why(why) {}

std::string last_tls_words() {
  const auto code = ERR_peek_last_error();
  const auto* words = ERR_reason_error_string(code);
  return words != nullptr ? words : "error " + std::to_string(code);
}

std::string refusal_of(x509_store_ctx_st* check, const std::string& authority) {
  const int error = X509_STORE_CTX_get_error(check);
  const auto* at = X509_STORE_CTX_get_current_cert(check);  // maybe one that has signed it
  const auto* whole = X509_STORE_CTX_get0_cert(check);
  if (error == X509_V_ERR_CERT_HAS_EXPIRED && at != nullptr)
    return "has expired: it was valid until " + shown(X509_get0_notAfter(at)) +
           ". Make a new one with the cluster's authority; if it should be valid, set this "
           "machine's clock.";
  if (error == X509_V_ERR_CERT_NOT_YET_VALID && at != nullptr)
    return "is not valid yet: it will be from " + shown(X509_get0_notBefore(at)) +
           " on. Set this machine's clock, or make a new one with the cluster's authority.";
  std::string who;
  if (whole != nullptr)
    who = "(of " + shown(X509_get_subject_name(whole)) + ", by " +
          shown(X509_get_issuer_name(whole)) + ") ";
  return who + "does not chain to " + authority + ": " + X509_verify_cert_error_string(error) +
         ". Give all nodes certificates that one authority has signed, and the same --tls-ca.";
}

tls_error fault_of(const std::string& peer, const std::optional<std::string>& certificate,
                   std::span<const std::byte> first) {
  if (certificate)
    return {tls_fault::certificate, peer + " has a certificate that " + *certificate};
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
      if (!is_tls(first)) return not_tls(peer, first);
      break;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return {tls_fault::certificate,
              peer + " has shown no certificate. Give it the cluster's " + own_flags + "."};
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
      return {tls_fault::not_tls, peer + " speaks an older version of TLS, this node speaks 1.3."};
    default:
      break;
  }
  if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
    return refused_with(reason - SSL_AD_REASON_OFFSET, peer);
  return {tls_fault::damaged, peer + " broke TLS: " + last_tls_words() +
                                  ". It is no poseidon-node, or something on the way has changed "
                                  "what it sent."};
}

}  // namespace poseidon
