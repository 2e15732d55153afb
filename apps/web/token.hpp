// apps/web/token.hpp - the secret that a page may want of whoever looks: where it comes from, how it is asked for.
#pragma once
#include "apps/web/http.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace poseidon::web {

/// The first line of `file`, which `option` names.
/// Errors   spec_error naming both.
[[nodiscard]] std::string read_token(const std::string& option, const std::filesystem::path& file);

/// Lets in who knows the token: as ?token=T once, which a cookie then remembers, or as "Authorization: Bearer T".
class token_gate {
 public:
  /// `token` empty: anybody who can connect may look.
  explicit token_gate(std::string token) : token_(std::move(token)) {}
  /// What to answer instead; nothing: go on. Who tells the token is answered with the cookie and sent to the same path.
  [[nodiscard]] std::optional<response> refusal(const request& r) const;

 private:
  [[nodiscard]] bool knows(const request& r) const;
  std::string token_;
};

}  // namespace poseidon::web
