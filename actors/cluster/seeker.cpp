#include "actors/cluster/seeker.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

namespace poseidon {

seeker::seeker(actor_context context, std::shared_ptr<node_network> network,
               handshake_options options, port<sought> node)
    : actor<seeker>(context),
      network_(std::move(network)),
      options_(std::move(options)),
      node_(std::move(node)) {
  options_.patience = std::chrono::milliseconds{0};
  options_.limit = std::chrono::seconds{1};
}

void seeker::on(const seek& m) {
  sought out{m.seat, sought::answer::none, {}};
  try {
    options_.self = m.self;
    out.connection = network_->dial(parse_host_port(m.address), options_);
    const auto& peer = out.connection->peer;
    const bool is_another = peer.seat != m.seat || peer.run != m.self.run;
    out.is = is_another ? sought::answer::refused : sought::answer::there;
    if (is_another) out.connection.reset();
  } catch (const socket_error& e) {
    if (e.error == ECONNREFUSED) out.is = sought::answer::refused;
  } catch (const std::exception&) {  // it does not shake hands
  }
  tell(node_, std::move(out));
}

}  // namespace poseidon
