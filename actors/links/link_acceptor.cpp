#include "actors/links/link_acceptor.hpp"

#include <caf/actor_cast.hpp>

#include <chrono>
#include <utility>

namespace poseidon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_up{100};  // the longest that stop_accepting waits in the mailbox

}  // namespace

link_acceptor::link_acceptor(actor_context context, std::shared_ptr<tcp_listener> listener,
                             handshake_options options, port<link_accepted> accepted,
                             port<peer_refused> refused)
    : actor<link_acceptor>(context),
      listener_(std::move(listener)),
      options_(std::move(options)),
      accepted_(std::move(accepted)),
      refused_(std::move(refused)) {}

void link_acceptor::started() {
  tell_self(accept_more{});
}

void link_acceptor::on(const accept_more&) {
  auto again = milliseconds{0};
  try {
    if (auto s = listener_->accept(look_up)) welcome(std::move(s));
  } catch (const socket_error& e) {
    tell(refused_, peer_refused{e.what()});
    again = milliseconds{500};
  }
  tell_self(accept_more{}, again);
}

void link_acceptor::welcome(std::shared_ptr<tcp_socket> socket) {
  if (guests_.size() >= max_guests) {
    refuse_busy(*socket);
    tell(refused_,
         peer_refused{socket->peer() + " was sent away: " + std::to_string(guests_.size()) +
                      " other connections have not finished their handshake"});
    return;
  }
  const auto id = next_guest_++;
  auto& g = guests_[id];
  g.socket = socket;
  const handle<link_acceptor> self{caf::actor_cast<caf::actor>(caf::strong_actor_ptr{ctrl()})};
  g.thread = std::thread([socket, id, self, options = options_, listener = listener_] {
    handshake_ended m;
    m.guest = id;
    try {
      m.connection =
          link_connection{socket, shake_hands(*socket, handshake_role::acceptor, options)};
    } catch (const std::exception& e) {
      m.error = e.what();
    }
    tell_from_outside(self, std::move(m));
    listener->wake();  // it may be waiting for the next connection
  });
}

void link_acceptor::on(const handshake_ended& m) {
  const auto g = guests_.find(m.guest);
  if (g == guests_.end()) return;
  g->second.thread.join();  // after that message the thread only wakes the listener
  guests_.erase(g);
  if (m.connection)
    tell(accepted_, link_accepted{*m.connection});
  else
    tell(refused_, peer_refused{m.error});
}

void link_acceptor::on(const stop_accepting&) {
  quit();
}

void link_acceptor::on_exit() {
  for (auto& [id, g] : guests_) g.socket->shutdown();
  for (auto& [id, g] : guests_) g.thread.join();
  guests_.clear();
  listener_.reset();  // no peer waits in the backlog of a socket that is not served
}

}  // namespace poseidon
