// messages/wire/tls_context.hpp
//
// What a node proves itself with in TLS: its certificate, the key of that certificate, and the authority that has to have signed
// the peer's. Read and checked at the start, so that a wrong file is an error of the command line and not of a peer, and again before
// a connection where the files have changed: certificates are renewed more often than runs end.
//
// TLS 1.3 only, AES-128-GCM, no tickets. Names in certificates are not compared with addresses: nodes are dialled by address, and
// every certificate of the cluster's authority may be any node's.
#pragma once
#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

struct ssl_ctx_st;  // OpenSSL's

namespace poseidon {

/// PEM files. A program that only reads pages needs no certificate of its own.
struct tls_files {
  std::filesystem::path certificate;  ///< --tls-cert; intermediate certificates may follow in it
  std::filesystem::path key;          ///< --tls-key, without a passphrase
  std::filesystem::path authority;    ///< --tls-ca, one certificate or several

  [[nodiscard]] bool none() const {
    return certificate.empty() && key.empty() && authority.empty();
  }
};

class tls_context {
 public:
  /// `now` takes the place of the clock, in tests.
  /// Errors   std::invalid_argument with option, file and reason: a file cannot be read, holds something else, or has expired; the
  ///          key does not fit the certificate; the authority has not signed the certificate.
  explicit tls_context(const tls_files& files, std::optional<std::time_t> now = std::nullopt);
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  /// Whether it has a certificate, without which nothing can be accepted.
  [[nodiscard]] bool has_certificate() const { return !files_.certificate.empty(); }
  /// For a new connection, with the files as they are now. Where they cannot be used, as while they are being replaced one after the
  /// other, those that were read before are. Any thread.
  [[nodiscard]] std::shared_ptr<ssl_ctx_st> newest() const;
  /// What is wrong with the files as they are now; empty: they are in use.
  [[nodiscard]] std::string why_unused() const;

 private:
  using stamp = std::array<std::int64_t, 3>;  // which file it is, and when it was written
  [[nodiscard]] std::array<stamp, 3> stamps() const;

  const tls_files files_;
  const std::optional<std::time_t> now_;
  mutable std::mutex mutex_;
  mutable std::array<stamp, 3> seen_;
  mutable std::shared_ptr<ssl_ctx_st> context_;
  mutable std::string why_unused_;
};

/// For links, which are mutual: all three files, or none (null).
/// Errors   std::invalid_argument: some of them are missing, or as tls_context.
[[nodiscard]] std::shared_ptr<const tls_context> tls_of_links(const tls_files& files);

/// For a program that reads the page of a node: the authority is enough, because a page asks its readers for no certificate.
/// Errors   std::invalid_argument, as tls_of_links.
[[nodiscard]] std::shared_ptr<const tls_context> tls_of_reader(const tls_files& files);

}  // namespace poseidon
