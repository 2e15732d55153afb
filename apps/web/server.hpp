// apps/web/server.hpp
//
// Serves a site to a few browsers: one thread, one poll(2) loop, nothing shared with the actor system, so that it also
// answers when the actor system is stuck. No client can keep another one from being answered:
//
//   connections  at most `most_connections`, and from one address `most_per_address`; one more is told 503 and closed, and does
//                not count
//   TLS          its handshake runs in the loop, too, as bytes come; clients of http are told to use https
//   requests     a head of at most 8 KiB, within `patience`; an idle connection is closed after `patience`. In each turn of
//                the loop, each connection is read once, and has one request answered
//   streams      server-sent events. A client that reads slowly is skipped, nothing is queued for it: the next event
//                has what it has missed. A client that has read nothing for `stream_patience`, or that sends more than a
//                head of its own, is closed. When the server ends, all that wait get `goodbye_patience` to read the last event
//   memory       of answers that are not read at most `most_unread_bytes`; beyond, the client with the most is closed
//
// Why its own: docs/decisions/018-web-server.md.
#pragma once
#include "apps/web/http.hpp"
#include "messages/wire/socket.hpp"

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace poseidon::web {

/// What one client of a stream has got so far.
class feed {
 public:
  virtual ~feed() = default;
  /// Server-sent events with what is new, as text; empty: nothing new. Called once a tick, in the server's thread.
  [[nodiscard]] virtual std::string next() = 0;
};

class site {
 public:
  virtual ~site() = default;
  struct answer {
    response head;                  ///< with the body, unless
    std::unique_ptr<feed> streams;  ///< ... it is a stream
    /// Valid where another thread still has to get the answer; other requests are answered meanwhile. The promise is
    /// kept or broken; it holds a value, not an exception.
    std::future<response> later{};
  };
  [[nodiscard]] virtual answer get(const request& r) = 0;
  /// Called once a tick before the feeds are asked, with their number.
  virtual void tick(std::size_t streams) { (void)streams; }
};

struct server_options {
  host_port at;
  host_rule hosts;
  std::shared_ptr<const tls_context> tls;  ///< empty: http
  std::size_t most_connections = 64, most_per_address = 32;
  std::size_t most_unread_bytes = std::size_t{256} << 20;
  std::chrono::milliseconds patience{10000};
  std::chrono::milliseconds stream_patience{30000};
  std::chrono::milliseconds goodbye_patience{1000};
  std::chrono::milliseconds tick{200};
};

class server {
 public:
  /// Listens and starts the thread. Errors  std::invalid_argument: the address cannot be used, and why.
  server(server_options options, std::shared_ptr<site> shown);
  /// Gives clients their last events, slow ones at most `goodbye_patience` to read them, and ends the thread.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// The address, with the port that the system has chosen for port 0.
  [[nodiscard]] host_port address() const;
  /// "https://10.0.0.1:7680/"
  [[nodiscard]] std::string url() const;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
  std::thread thread_;
};

}  // namespace poseidon::web
