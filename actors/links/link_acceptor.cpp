#include "actors/links/link_acceptor.hpp"

#include <caf/actor_cast.hpp>

#include <chrono>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
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
    refuse("", e.what());
    again = milliseconds{500};
  }
  if (auto line = refusals_.due(clock::now())) tell(refused_, peer_refused{std::move(*line)});
  tell_self(accept_more{}, again);
}

bool link_acceptor::refuse(const std::string& host, const std::string& text) {
  auto line = refusals_.add(host, text, clock::now());
  if (line) tell(refused_, peer_refused{std::move(*line)});
  return line.has_value();
}

/// Returns  whether one more handshake may begin.
bool link_acceptor::make_room() {
  if (guests_.size() < max_guests) return true;
  // Those that were asked to give way need a moment for it; a flood does not get a thread for each connection meanwhile.
  if (guests_.size() >= 2 * max_guests) return false;
  std::map<std::string, std::size_t> of_host;
  for (const auto& [id, g] : guests_) ++of_host[g.host];
  const guest* oldest = nullptr;
  for (const auto& [id, g] : guests_) {
    if (g.progress->proved || g.progress->give_way) continue;
    if (oldest == nullptr || of_host[g.host] > of_host[oldest->host]) oldest = &g;
  }
  if (oldest == nullptr) return false;
  oldest->progress->give_way = true;
  oldest->socket->shutdown_reading();
  return true;
}

void link_acceptor::welcome(std::shared_ptr<tcp_socket> socket) {
  const auto host = parse_host_port(socket->peer()).host;
  if (!make_room()) {
    refuse_busy(*socket, options_);
    refuse(host, socket->peer() + " was sent away: " + std::to_string(guests_.size()) +
                     " other connections have not finished their handshake");
    return;
  }
  const auto id = next_guest_++;
  auto& g = guests_[id];
  g.socket = socket;
  g.host = host;
  g.progress = std::make_shared<handshake_progress>();
  const handle<link_acceptor> self{caf::actor_cast<caf::actor>(caf::strong_actor_ptr{ctrl()})};
  auto options = options_;
  options.progress = g.progress;
  g.thread =
      std::thread([socket, id, self, options = std::move(options), listener = listener_]() mutable {
        handshake_ended m;
        m.guest = id;
        // Told only with how it ended: a flood of strangers is to leave one line, not many each.
        options.detail = [&m](const std::string& step) { m.details.push_back(step); };
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
  const auto host = g->second.host;
  guests_.erase(g);
  if (m.connection) tell(accepted_, link_accepted{*m.connection});
  if ((m.connection || refuse(host, m.error)) && options_.detail)
    for (const auto& step : m.details) options_.detail(step);
}

void link_acceptor::on(const stop_accepting&) {
  quit();
}

void link_acceptor::ended() {
  for (auto& [id, g] : guests_) g.socket->shutdown();
  for (auto& [id, g] : guests_) g.thread.join();
  guests_.clear();
  listener_.reset();  // no peer waits in the backlog of a socket that is not served
}

}  // namespace poseidon
