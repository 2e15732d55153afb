// actors/links/network.hpp - how a node reaches the others: by sockets, unless a test puts something in its place.
#pragma once
#include "actors/links/link_acceptor.hpp"
#include "actors/links/network_link.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace poseidon {

class node_network {
 public:
  virtual ~node_network() = default;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::now();
  }

  /// Takes an address; nodes that dial it from now on wait. Returns  the address, with its real port.
  /// Errors   socket_error.
  virtual host_port listen(const host_port& at);
  /// "10.0.0.7:7600": what listen() has bound; empty: nothing yet, or not known.
  [[nodiscard]] virtual std::string bound() const { return bound_; }
  /// Lets in the nodes that wait at the address of listen().
  virtual handle<link_acceptor> accept(caf::actor_system& system, edge_book& book,
                                       handshake_options options, port<link_accepted> accepted,
                                       port<peer_refused> refused);
  /// Blocks. Errors   socket_error (ECANCELED: options.stop was set), handshake_error.
  virtual link_connection dial(const host_port& to, const handshake_options& options);
  virtual handle<network_link> open(caf::actor_system& system, edge_book& book,
                                    const std::string& name, link_options options);
  /// Tells the peer of a fresh connection, which gets no link, why (actors/links/farewell.hpp).
  virtual void say_farewell(const link_connection& c, seat_id self,
                            const frames::goodbye& says) noexcept;

 private:
  std::shared_ptr<tcp_listener> listener_;
  std::string bound_;
};

}  // namespace poseidon
