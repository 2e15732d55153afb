// actors/links/link_acceptor.hpp
//
// Owns a node's listening socket. A connection whose peer proves that it knows the token becomes a
// link_accepted for the node; any other is refused. Each handshake has a short-lived thread of its
// own, because a stranger may be silent for up to handshake_options.limit and must not delay the
// others. At most max_guests handshakes run at a time. When one more peer comes, the oldest that has not proved itself gives
// way, of the host that has most of them: so a host that opens many connections keeps no other one out. Who gives way is told
// that this node is busy, and dials again.
//
// Accepts  accept_more      from itself       waits for the next connection, at most 100 ms
//          handshake_ended  from its threads  once per connection
//          stop_accepting   from node         breaks off the handshakes in progress and ends
// Sends    link_accepted    to node           an authenticated connection: its link can be opened
//          peer_refused     to node           a line for the log, at most one in ten seconds
// State    the connections whose handshake is in progress. Detached: it blocks in accept.
// Fails    never by itself. When the system has no descriptors left it sends peer_refused and tries again.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/links/refusal_summary.hpp"
#include "messages/wire/handshake.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace poseidon {

struct link_accepted {
  link_connection connection;
};
struct peer_refused {
  std::string text;
};
struct stop_accepting {};

struct accept_more {};
struct handshake_ended {
  std::uint64_t guest = 0;
  std::optional<link_connection> connection;
  std::string error;                 ///< if there is no connection
  std::vector<std::string> details;  ///< its steps
};

class link_acceptor : public actor<link_acceptor> {
 public:
  static constexpr const char* type_name = "link_acceptor";
  using accepts = messages<accept_more, handshake_ended, stop_accepting>;
  using sends = messages<link_accepted, peer_refused>;
  static constexpr std::size_t max_guests = 32;

  link_acceptor(actor_context context, std::shared_ptr<tcp_listener> listener,
                handshake_options options, port<link_accepted> accepted,
                port<peer_refused> refused);
  void started();
  void ended();

  void on(const accept_more&);
  void on(const handshake_ended& m);
  void on(const stop_accepting&);

 private:
  struct guest {
    std::shared_ptr<tcp_socket> socket;
    std::string host;
    std::shared_ptr<handshake_progress> progress;
    std::thread thread;
  };
  void welcome(std::shared_ptr<tcp_socket> socket);
  [[nodiscard]] bool make_room();
  /// Returns  whether the line was told.
  bool refuse(const std::string& host, const std::string& text);

  std::shared_ptr<tcp_listener> listener_;
  handshake_options options_;
  port<link_accepted> accepted_;
  port<peer_refused> refused_;
  std::map<std::uint64_t, guest> guests_;
  std::uint64_t next_guest_ = 0;
  refusal_summary refusals_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::link_accepted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::peer_refused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::stop_accepting)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::accept_more)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::handshake_ended)
