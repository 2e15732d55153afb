// apps/web/http.hpp
//
// The part of HTTP/1.1 that a read-only page needs: the head of a GET request in, the head of a response out. No request
// bodies, no other method, one request after the other. Pure functions on text.
//
// Source   RFC 9110, RFC 9112.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::web {

inline constexpr std::size_t max_head_bytes = 8192;
inline constexpr std::string_view end_of_head = "\r\n\r\n";

struct request {
  std::string path;   ///< decoded, "/api/graph"
  std::string query;  ///< as it came, without the question mark
  std::string cookie, authorization;
  bool keep_alive = true;

  /// The value of `name` in the query, decoded; none if the query lacks it.
  [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const;
  /// The value of `name` as a number; `otherwise` if the query lacks it or it is no number.
  [[nodiscard]] std::size_t number(std::string_view name, std::size_t otherwise) const;
};

/// The host names that are answered. A page of another origin whose name was made to point here (DNS rebinding) has that
/// name in Host; an address never points elsewhere.
struct host_rule {
  std::vector<std::string> names;  ///< besides localhost: what --web says, the machine's name
  bool loopback_only = true;       ///< no addresses but those of this machine
  [[nodiscard]] bool allows(std::string_view host_header) const;
};

struct refusal {
  int status = 400;
  std::string text;  ///< one line
};

/// A head, up to and without its empty line.
struct parsed {
  std::optional<request> ok;
  refusal refused;  ///< if the head is refused
};
[[nodiscard]] parsed parse_head(std::string_view head, const host_rule& hosts);

struct response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string extra;  ///< further header lines, each with its line end
};

/// Status line and headers, with the empty line. A stream has no length and ends with its connection.
[[nodiscard]] std::string head_of(const response& r, bool keep_alive, bool stream);

/// Takes the same time for all pairs of one length.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);

}  // namespace poseidon::web
