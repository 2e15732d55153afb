// How a node finds the leader of a run, and links the members that it is to dial.
#include "actors/cluster/member.hpp"
#include "actors/membership/view_rules.hpp"

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

namespace poseidon {

namespace {

// A newcomer listened before it got ready.
constexpr std::chrono::milliseconds one_of_several{3000}, for_a_newcomer{1000};
constexpr int most_hops = 4;

/// A function that is true at most once in each `interval`, the first time at once.
auto said_every(std::chrono::steady_clock::duration interval) {
  return [interval, last = std::optional<std::chrono::steady_clock::time_point>{}](
             std::chrono::steady_clock::time_point now) mutable {
    if (last && now - *last < interval) return false;
    last = now;
    return true;
  };
}

}  // namespace

/// Empty, and said: it cannot be reached, or does not answer.  Errors   ECANCELED; handshake_error: it answers, and refuses this node.
std::optional<link_connection> member::dial_if_there(const host_port& to,
                                                     handshake_options options) {
  options.patience = options.limit = one_of_several;
  try {
    return setup_.network->dial(to, options);
  } catch (const socket_error& e) {
    if (e.error == ECANCELED) throw;
    setup_.display->note(e.what());
  } catch (const handshake_error& e) {
    if (e.why != refusal::silent && e.why != refusal::closed) throw;
    setup_.display->note(e.what());
  }
  return std::nullopt;
}

/// The first of the addresses at which a leader answers, or a member that knows where the leader is. Only the last one is waited for,
/// and only where no member has answered: the leader that a member names may have been lost just then, so another one leads in a moment.
link_connection member::dial_leader(const std::vector<host_port>& to, handshake_options& options) {
  std::string error;
  bool some_answer = false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    auto at = to[i];
    for (int hops = 0; hops < most_hops; ++hops) {
      const bool is_last = !some_answer && i + 1 == to.size();
      auto c =
          is_last ? std::optional(setup_.network->dial(at, options)) : dial_if_there(at, options);
      if (!c) {
        error = "no leader answers at " + to_string(at);
        break;
      }
      if (c->peer.leader_address.empty()) {
        joined_at_ = to_string(at);
        return std::move(*c);
      }
      some_answer = true;
      error = "the nodes from " + to_string(to[i]) + " on name each other as the leader";
      setup_.display->note(to_string(at) + " is a member; the leader listens at " +
                           c->peer.leader_address);
      at = parse_host_port(c->peer.leader_address);
    }
  }
  throw leader_unsettled(error, EADDRNOTAVAIL);
}

void member::join(const std::vector<host_port>& to, std::uint32_t replicas,
                  const std::optional<host_port>& listen, const member_context& c) {
  setup_.display->note("joining " + to_string(to.front()));
  auto self = own_identity();
  self.replicas = replicas;
  auto options = shaking(std::move(self));
  // It listens before it shakes hands, because its address is part of what it says about itself.
  options.introduce = [this, &listen](const host_port& here, link_identity& me) {
    auto at = listen.value_or(host_port{});
    if (is_any_address(at)) at.host = here.host;
    if (address_.empty()) address_ = to_string(setup_.network->listen(at));
    me.listen_address = address_;
  };
  options.unheard = [this, to, every = said_every(std::chrono::seconds{10})](auto left) mutable {
    if (every(std::chrono::steady_clock::now()))
      setup_.display->note("nobody listens at " + to_string(to.front()) + " yet; trying for " +
                           std::to_string(left.count() / 1000) + " s more");
  };
  const auto leader = dial_leader(to, options);
  view_.first_leader = leader.peer.seat;
  if (!acceptor_) accept(c);
  identify();
  open(leader.peer.seat, leader, c);
  setup_.display->note("reached the first node, " + joined_at_ + "; waiting until all are there");
}

/// A newcomer dials the members, whatever their seats; of two nodes that come together the one with the higher seat dials. A witness
/// that votes dials nobody.
void member::dial_members(const member_context& c, std::vector<link_lost>* unreached) {
  dial(c, unreached, [&, gets_ready = !view_.has(view_.seat)](seat_id m) {
    return gets_ready || view_.had(m) || m < view_.seat || view_.has_witness(m);
  });
}

void member::dial_witnesses(const member_context& c, std::vector<link_lost>& unreached) {
  dial(c, &unreached, [&](seat_id m) { return view_.has_witness(m); });
}

/// Those that got ready before it was a member.
void member::dial_newcomers(const member_context& c) {
  dial(c, nullptr, [&](seat_id m) { return view_.brought(m); });
}

void member::dial(const member_context& c, std::vector<link_lost>* unreached,
                  const std::function<bool(seat_id)>& is_dialed) {
  const bool gets_ready = !view_.has(view_.seat);
  auto nodes = view_.members;
  nodes.insert(nodes.end(), view_.witnesses.begin(), view_.witnesses.end());
  for (const auto& m : nodes) {
    if (links_.contains(m.seat) || !is_dialed(m.seat)) continue;
    auto options = shaking(own_identity());
    const bool comes = view_.brought(m.seat);
    const bool may_miss = comes || (!gets_ready && view_.has_witness(m.seat));
    const auto miss = [&](const std::string& why, bool refused) {
      if (comes) return lost(m.seat, why);
      unreached->push_back({.peer = m.seat, .why = why, .fresh = refused});
    };
    if (gets_ready) options.patience = one_of_several;
    if (may_miss)
      options.patience = options.limit = view_.is_first() ? one_of_several : for_a_newcomer;
    try {
      open(m.seat, setup_.network->dial(parse_host_port(m.address), options), c);
    } catch (const socket_error& e) {
      const bool goes_on = may_miss || (unreached != nullptr && e.error == ECONNREFUSED);
      if (!goes_on || e.error == ECANCELED) throw;
      miss(e.what(), e.error == ECONNREFUSED);
    } catch (const handshake_error& e) {
      // It is frozen, or has just ended.
      if (!may_miss || (e.why != refusal::silent && e.why != refusal::closed)) throw;
      miss(e.what(), false);
    }
  }
}

}  // namespace poseidon
