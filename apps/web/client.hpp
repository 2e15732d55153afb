// apps/web/client.hpp - asks a node's page, from another program. Errors are sentences for people.
#pragma once
#include "apps/web/http.hpp"
#include "messages/wire/socket.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace poseidon::web {

/// The page of a node, as a program asks it.
struct page_address {
  host_port at;
  std::string token;                            ///< first line of its --web-token-file; empty: none
  std::shared_ptr<const tls_context> tls = {};  ///< empty: the page is not encrypted
};

/// The answer to a GET of `target` (a path with its query), with any status; of the headers only type and disposition.
/// `stop` ends the call. Errors   std::runtime_error: no server, no answer within seconds, no page of ours.
[[nodiscard]] response get(const page_address& from, const std::string& target,
                           const wake_up* stop = nullptr);

/// The body of such an answer of status 200. Errors   std::runtime_error: as get; another status, with its text.
[[nodiscard]] std::string fetch(const page_address& from, const std::string& target);

/// Server-sent events as they come.
class event_stream {
 public:
  /// Errors   std::runtime_error, as fetch.
  event_stream(const page_address& from, const std::string& target, const wake_up* stop);
  /// The whole events that have come; empty: none within a moment, or `stop` is set.
  /// Errors   std::runtime_error: the stream has ended, or nothing has come for seconds.
  [[nodiscard]] std::string next();

 private:
  std::string name_;
  const wake_up* stop_;
  std::shared_ptr<tcp_socket> socket_;
  std::string come_;  // the beginning of an event
  std::chrono::steady_clock::time_point heard_;
};

}  // namespace poseidon::web
