// messages/wire/dial.cpp - how a node reaches another one that may not listen yet (messages/wire/handshake.hpp).
#include "messages/wire/handshake.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace poseidon {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// So often a dialer takes a closed connection for the end of an earlier run: for some four seconds, by its pauses.
constexpr int most_closed = 12;

}  // namespace

link_connection dial(const host_port& to, const handshake_options& options, milliseconds patience) {
  const auto deadline = clock::now() + patience;
  int closed = 0;
  const auto detail = [&](const std::string& text) {
    if (options.detail) options.detail("dial " + to_string(to) + ": " + text);
  };
  const auto stop = options.stop ? options.stop : std::make_shared<const wake_up>();
  auto told = options;
  for (auto pause = milliseconds{20};; pause = std::min(pause * 2, milliseconds{500})) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - clock::now());
    const bool last = left <= pause;
    try {
      auto s = connect_to(to, std::max(left, milliseconds{1}), stop.get());
      detail("connected to " + s->peer());
      if (told.introduce) told.introduce(s->local(), told.self);
      auto who = shake_hands(*s, handshake_role::dialer, told);
      return {std::move(s), std::move(who)};
    } catch (const socket_error& e) {
      // Who listened there may have ended before it looked at this connection.
      const bool ended = e.error == ECONNRESET && ++closed < most_closed;
      if (last || (!ended && e.error != ECONNREFUSED)) throw;
      detail("no program listens there yet, " + std::to_string(left.count()) + " ms left");
      if (options.unheard) options.unheard(left);
    } catch (const handshake_error& e) {
      // The end of a run that is over may still have listened there; the next one's first node does in a moment.
      const bool ended = e.why == refusal::closed && ++closed < most_closed;
      if (last || (!ended && e.why != refusal::busy)) throw;
      detail(std::string(ended ? "it closed the connection, " : "it is busy, ") +
             std::to_string(left.count()) + " ms left");
    }
    if (stop->wait(pause)) throw socket_error("stopped dialing " + to_string(to), ECANCELED);
  }
}

}  // namespace poseidon
