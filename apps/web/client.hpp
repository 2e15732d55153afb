// apps/web/client.hpp - asks a node's page, from another program. Each call says in words what went wrong.
#pragma once
#include "apps/web/http.hpp"
#include "messages/wire/socket.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace poseidon::web {

/// The page of a node, as a program asks it. `token`: the first line of the node's --web-token-file; empty: it has none.
struct page_address {
  host_port at;
  std::string token;
};

/// What a GET of `target` (a path, with its query) brings, whatever its status; of the headers type and disposition.
/// `stop` ends it. Errors   std::runtime_error: nobody there, no answer within seconds, no page of ours.
[[nodiscard]] response get(const page_address& from, const std::string& target,
                           const wake_up* stop = nullptr);

/// The body of that where the status is 200. Errors   std::runtime_error: as get; a refusal with its text.
[[nodiscard]] std::string fetch(const page_address& from, const std::string& target);

/// Server-sent events as they come.
class event_stream {
 public:
  /// Errors   std::runtime_error, as fetch.
  event_stream(const page_address& from, const std::string& target, const wake_up* stop);
  /// The events that have come, whole ones; empty: none within a moment, or `stop` is set.
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
