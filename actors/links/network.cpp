#include "actors/links/network.hpp"

#include "actors/links/farewell.hpp"

#include <chrono>

namespace poseidon {

namespace {
constexpr std::chrono::minutes dial_patience{1};
}  // namespace

host_port node_network::listen(const host_port& at) {
  listener_ = std::make_shared<tcp_listener>(at);
  bound_ = listener_->bound();
  return {at.host, listener_->port()};
}

handle<link_acceptor> node_network::accept(caf::actor_system& system, edge_book& book,
                                           handshake_options options, port<link_accepted> accepted,
                                           port<peer_refused> refused) {
  return spawn<link_acceptor>(system, book, thread_kind::own, "link_acceptor",
                              std::exchange(listener_, nullptr), std::move(options),
                              std::move(accepted), std::move(refused));
}

link_connection node_network::dial(const host_port& to, const handshake_options& options) {
  return poseidon::dial(to, options, options.patience.value_or(dial_patience));
}

handle<network_link> node_network::open(caf::actor_system& system, edge_book& book,
                                        const std::string& name, link_options options) {
  return open_link(system, book, name, std::move(options));
}

void node_network::say_farewell(const link_connection& c, seat_id self,
                                const frames::goodbye& says) noexcept {
  poseidon::say_farewell(c, self, says);
}

}  // namespace poseidon
