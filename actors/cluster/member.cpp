#include "actors/cluster/member.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/links/link_counters.hpp"
#include "actors/membership/view_rules.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>
#include <utility>

namespace poseidon {

namespace {

constexpr std::chrono::milliseconds first_word{5000};
constexpr std::size_t most_early = max_members, most_turned_away = 16, most_newcomers = 64;

}  // namespace

/// Read by the threads that shake hands.
class member::known_identity {
 public:
  void set(link_identity now) {
    const std::lock_guard lock(mutex_);
    now_ = std::move(now);
  }
  [[nodiscard]] link_identity get() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  link_identity now_;
};

handshake_options member::shaking(link_identity self) const {
  handshake_options o;
  o.token = setup_.token;
  o.tls = setup_.tls;
  o.build = POSEIDON_VERSION;
  o.self = std::move(self);
  o.stop = setup_.stop;
  o.detail = [display = setup_.display](const std::string& step) { display->detail(step); };
  return o;
}

member::member(member_setup setup)
    : setup_(std::move(setup)), identity_(std::make_shared<known_identity>()) {}

void member::enter(agreed_view next) {
  for (const auto& m : without(view_.members, next.members)) gone_.insert(m.seat);
  for (const auto& w : without(view_.witnesses, next.witnesses)) gone_.insert(w.seat);
  if (view_.epoch > 0) led_.insert(view_.leader());
  for (auto* const of : {&gone_, &led_})
    while (of->size() > max_members) of->erase(of->begin());
  view_ = std::move(next);
  next_leader_.reset();
  for (const auto* const nodes : {&view_.members, &view_.witnesses})
    for (const auto& m : *nodes) {
      gone_.erase(m.seat);
      next_seat_ = std::max(next_seat_, seat_id{value(m.seat) + 1});
    }
  identify();
}

void member::expect_leader(frames::member leader) {
  next_leader_ = std::move(leader);
  identify();
}

link_identity member::own_identity() const {
  link_identity self;
  self.listen_address = address_;
  self.seat = view_.seat;
  self.run = view_.run;
  self.epoch = view_.epoch;
  self.wants = setup_.as;
  self.fingerprint = setup_.fingerprint;
  return self;
}

/// Whoever dials a member hears who leads.
void member::identify() {
  auto self = own_identity();
  if (next_leader_) {
    if (next_leader_->seat != view_.seat) self.leader_address = next_leader_->address;
  } else if (!view_.leads()) {
    self.leader_address = view_.members.empty() ? joined_at_ : view_.members.front().address;
  }
  identity_->set(std::move(self));
}

void member::accept(const member_context& c) {
  identify();
  auto options = shaking({});
  options.identify = [known = identity_] { return known->get(); };
  options.stop = nullptr;  // its guests are not waited for by the node
  acceptor_ = setup_.network->accept(c.system, c.edges, std::move(options), c.accepted, c.refused);
}

std::string member::lead(const host_port& at, const member_context& c) {
  view_ = view_of_leader();
  std::random_device dice;
  view_.run = std::uint64_t{dice()} << 32 | dice() | 1;
  address_ = to_string(setup_.network->listen(at));
  accept(c);
  return address_;
}

void member::lost(seat_id peer, const std::string& why) {
  links_.erase(peer);
  lost_[peer] = why;
  if (lost_.size() > most_newcomers) lost_.erase(lost_.begin());
}

std::map<seat_id, std::string> member::missing() const {
  std::map<seat_id, std::string> out;
  for (const auto& [seat, why] : lost_)
    if (view_.brought(seat) && !links_.contains(seat)) out.emplace(seat, why);
  return out;
}

/// A link works from the moment the hands are shaken (heartbeats); it is bound to the run later.
void member::open(seat_id seat, const link_connection& c, const member_context& context) {
  link_options o;
  o.socket = c.socket;
  o.address = c.peer.listen_address;
  if (c.peer.wants == link_identity::purpose::witness || view_.has_witness(seat))
    o.kind = peer_kind::witness;
  o.keys = c.peer.keys;
  o.binding.self.seat = view_.seat;
  o.binding.peer = seat;
  if (counters_.size() >= most_newcomers)  // nodes come and go for as long as the run lasts
    std::erase_if(counters_, [&](const auto& c) { return !links_.contains(c.first); });
  counters_[seat] = o.counters;
  setup_.equip(seat, o);
  // A joiner and the leader both open their halves when they have shaken hands; two other members as each gets its view.
  if (view_.leads() || seat == view_.leader()) o.first_word_limit = first_word + o.silence_limit;
  links_[seat] =
      setup_.network->open(context.system, context.edges, link_name(value(seat)), std::move(o));
}

member::admission member::admit(const link_connection& c, bool room,
                                const member_context& context) {
  const auto seat = c.peer.seat;
  if (view_.leads() && seat == no_seat && room) {
    newest_ = {next_seat_, c.peer.listen_address, c.peer.fingerprint};
    next_seat_ = seat_id{value(next_seat_) + 1};
    const bool votes = c.peer.wants == link_identity::purpose::witness;
    setup_.display->note((votes ? "witness " : "worker ") + std::to_string(value(newest_.seat)) +
                         " joined from " + c.socket->peer());
    open(newest_.seat, c, context);
    return admission::joined;
  }
  const bool early = seat == no_seat ? next_leader_ && next_leader_->seat == view_.seat
                                     : !view_.leads() && view_.seat == no_seat;
  if (early && early_.size() < most_early) {
    early_.push_back(c);
    return admission::kept;
  }
  const bool leaves = view_.had(seat) && !has_seat(view_.lost, seat);
  if (seat != no_seat && !view_.members.empty() && c.peer.run != view_.run) {
    turn_away(c, "it is a node of another run");
    return admission::dropped;
  }
  if (gone_.contains(seat) && !leaves) {
    // It has heard in which view this node is, so it knows; the connection ends.
    setup_.display->note("refused " + c.socket->peer() + ": the other nodes go on without it");
    return admission::dropped;
  }
  const auto strangers = links_.size() - std::min(links_.size(), view_.members.size());
  if (view_.seat != no_seat && seat != no_seat && seat != view_.seat && !links_.contains(seat) &&
      strangers < most_newcomers) {
    setup_.display->detail("membership: " + view_.name_of(seat) + " has dialed this node");
    next_seat_ = std::max(next_seat_, seat_id{value(seat) + 1});
    open(seat, c, context);
    return admission::linked;
  }
  if (seat == no_seat) {  // it has heard where the leader is, or hears it when it dials again
    dismiss(c);
    return admission::dropped;
  }
  turn_away(c, view_.members.empty() ? "too many connections wait until all nodes are there"
                                     : "this node knows another node by that number");
  return admission::dropped;
}

void member::link_again(seat_id seat, const link_connection& c, const member_context& context) {
  lost_.erase(seat);
  open(seat, c, context);
}

void member::turn_away(const link_connection& c, const std::string& why,
                       frames::goodbye::cause of) {
  setup_.display->note("refused " + c.socket->peer() + ": " + why);
  setup_.network->say_farewell(c, view_.seat, {why, of});
  keep_for_reading(c.socket);
}

void member::dismiss(const link_connection& c) {
  setup_.network->say_farewell(c, view_.seat, {});
  keep_for_reading(c.socket);
}

/// The peer may still read: closed at once, the connection could be reset before.
void member::keep_for_reading(std::shared_ptr<tcp_socket> socket) {
  turned_away_.push_back(std::move(socket));
  if (turned_away_.size() > most_turned_away) turned_away_.pop_front();
}

bool member::is_complete() const {
  const auto is_linked = [&](seat_id s) { return s == view_.seat || links_.contains(s); };
  const auto is_linked_or_lost = [&](seat_id s) { return is_linked(s) || has_seat(view_.lost, s); };
  const auto others = view_.others();
  return std::all_of(others.begin(), others.end(), is_linked) &&
         std::all_of(view_.witnesses.begin(), view_.witnesses.end(),
                     [&](const auto& w) { return is_linked(w.seat); }) &&
         std::all_of(view_.before.begin(), view_.before.end(), is_linked_or_lost);
}

std::vector<port<send_frame>> member::ports() const {
  std::vector<port<send_frame>> out(std::max<std::size_t>(1, view_.members.size()));
  for (const auto& [seat, link] : links_)
    if (view_.has(seat)) out[value(view_.worker_of(seat))] = link;
  return out;
}

void member::send(seat_id to, send_frame m) const {
  const auto link = links_.find(to);
  if (link != links_.end()) setup_.tell(link->second, std::move(m));
}

void member::broadcast(const send_frame& m) const {
  for (const auto& [seat, link] : links_)
    if (view_.members.empty() || view_.has(seat)) setup_.tell(link, m);
}

void member::describe_traffic() const {
  for (const auto& [seat, counters] : counters_)
    setup_.display->detail(poseidon::describe_traffic(view_.name_of(seat), *counters));
}

std::vector<std::string> member::quiet_since(std::chrono::steady_clock::time_point now) const {
  using clock = std::chrono::steady_clock;
  std::vector<std::string> out;
  for (const auto& [seat, link] : links_) {
    if (!view_.has(seat)) continue;
    const auto at = counters_.at(seat)->values_in_at.load();
    out.push_back(view_.name_of(seat) +
                  (at == 0 ? " has sent no values yet"
                           : " has sent none for " +
                                 seconds_text(now - clock::time_point(clock::duration(at)))));
  }
  return out;
}

void member::drop() {
  links_.clear();
  early_.clear();
  turned_away_.clear();
  acceptor_ = {};
}

}  // namespace poseidon
