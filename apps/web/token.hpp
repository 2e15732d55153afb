// apps/web/token.hpp - the secret with which a page may be protected: where it comes from, how a request proves it.
#pragma once
#include "apps/web/http.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace poseidon::web {

/// The first line of `file`, which `option` names.
/// Errors   spec_error naming both.
[[nodiscard]] std::string read_token(const std::string& option, const std::filesystem::path& file);

/// A warning where every user of this machine may read the file of a secret, which `option` names; empty: not so.
[[nodiscard]] std::string warn_of_readers(const std::string& option,
                                          const std::filesystem::path& file);

/// Admits requests with the token: as ?token=T once, which a cookie then keeps, or as "Authorization: Bearer T".
class token_gate {
 public:
  /// `token` empty: every request is admitted. `tls`: browsers return the cookie on encrypted connections only.
  explicit token_gate(std::string token, bool tls = false) : token_(std::move(token)), tls_(tls) {}
  /// The answer to a request that is not admitted; none if it is. A request with ?token=T gets the cookie and is redirected
  /// to the same path without the token.
  [[nodiscard]] std::optional<response> refusal(const request& r) const;

 private:
  [[nodiscard]] bool knows(const request& r) const;
  std::string token_;
  bool tls_;
};

}  // namespace poseidon::web
