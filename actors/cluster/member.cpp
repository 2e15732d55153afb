#include "actors/cluster/member.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/links/farewell.hpp"
#include "actors/links/link_counters.hpp"
#include "models/words.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace poseidon {

namespace {

constexpr std::chrono::seconds first_word{5};
constexpr std::size_t most_early = max_members, most_turned_away = 16;

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

handshake_options member::shaking(link_identity self) const {
  handshake_options o;
  o.token = setup_.token;
  o.build = POSEIDON_VERSION;
  o.self = std::move(self);
  o.stop = setup_.stop;
  o.detail = [display = setup_.display](const std::string& step) { display->detail(step); };
  return o;
}

void member::accept(const member_context& c, link_identity self) {
  auto options = shaking(std::move(self));
  options.stop = nullptr;  // its guests are not waited for by the node
  acceptor_ = setup_.network->accept(c.system, c.edges, std::move(options), c.accepted, c.refused);
}

std::string member::lead(const host_port& at, const member_context& c) {
  view_ = view_of_leader();
  address_ = to_string(setup_.network->listen(at));
  accept(c, {address_, view_.self, 1});
  return address_;
}

void member::join(const host_port& to, std::uint32_t replicas, const member_context& c) {
  setup_.display->note("joining " + to_string(to));
  auto options = shaking({"", no_worker, 0, replicas});
  // It listens before it shakes hands, because its address is part of what it says about itself.
  options.introduce = [this](const host_port& here, link_identity& self) {
    address_ = to_string(setup_.network->listen({here.host, 0}));
    self.listen_address = address_;
  };
  options.unheard = [this, to, every = said_every(std::chrono::seconds{10})](auto left) mutable {
    if (every(std::chrono::steady_clock::now()))
      setup_.display->note("nobody listens at " + to_string(to) + " yet; trying for " +
                           std::to_string(left.count() / 1000) + " s more");
  };
  const auto leader = setup_.network->dial(to, options);
  accept(c, {address_, no_worker});
  open(view_.leader, leader, c);
  setup_.display->note("reached the first node; waiting until all are there");
}

void member::dial_members(const member_context& c) {
  for (const auto w : view_.to_dial())
    open(w,
         setup_.network->dial(parse_host_port(view_.members[value(w)]),
                              shaking({address_, view_.self, view_.epoch})),
         c);
}

/// A link works from the moment the hands are shaken (heartbeats); it is bound to the run later.
void member::open(worker_id worker, const link_connection& c, const member_context& context) {
  link_options o;
  o.socket = c.socket;
  o.address = c.peer.listen_address;
  o.keys = c.peer.keys;
  o.binding.self = view_.self;
  o.binding.peer = worker;
  counters_[worker] = o.counters;
  setup_.equip(worker, o);
  // A joiner and the leader both open their halves when they have shaken hands; two other members as each gets its view.
  if (view_.leads() || worker == view_.leader) o.first_word_limit = first_word + o.silence_limit;
  links_[worker] =
      setup_.network->open(context.system, context.edges, link_name(value(worker)), std::move(o));
}

member::admission member::admit(const link_connection& c, std::size_t room,
                                const member_context& context) {
  const auto& peer = c.peer;
  if (view_.leads() && room > 0) {
    const worker_id worker{static_cast<std::uint32_t>(links_.size() + 1)};
    setup_.display->note(view_.name_of(worker) + " joined from " + c.socket->peer());
    open(worker, c, context);
    return admission::joined;
  }
  if (!view_.leads() && view_.members.empty() && early_.size() < most_early) {
    early_.push_back(c);
    return admission::kept;
  }
  if (view_.is_dialed_by(peer.worker) && !links_.contains(peer.worker)) {
    setup_.display->detail("membership: " + view_.name_of(peer.worker) + " has dialed this node");
    open(peer.worker, c, context);
    return admission::linked;
  }
  // Joining a run that trains is a later matter.
  turn_away(c, view_.members.empty()
                   ? "too many connections wait until all nodes are there"
                   : "training runs already with " + plural(view_.members.size(), "node"));
  return admission::stranger;
}

void member::turn_away(const link_connection& c, const std::string& why) {
  setup_.display->note("refused " + c.socket->peer() + ": " + why);
  say_farewell(c, view_.self, why);
  turned_away_.push_back(c.socket);
  if (turned_away_.size() > most_turned_away) turned_away_.pop_front();
}

std::vector<port<send_frame>> member::ports(std::size_t workers) const {
  std::vector<port<send_frame>> out(workers);
  for (const auto& [worker, link] : links_) out[value(worker)] = link;
  return out;
}

void member::send(worker_id to, send_frame m) const {
  const auto link = links_.find(to);
  if (link != links_.end()) setup_.tell(link->second, std::move(m));
}

void member::broadcast(const send_frame& m) const {
  for (const auto& [worker, link] : links_) setup_.tell(link, m);
}

void member::describe_traffic() const {
  for (const auto& [worker, counters] : counters_)
    setup_.display->detail(poseidon::describe_traffic(view_.name_of(worker), *counters));
}

std::vector<std::string> member::quiet_since(std::chrono::steady_clock::time_point now) const {
  using clock = std::chrono::steady_clock;
  std::vector<std::string> out;
  for (const auto& [worker, link] : links_) {
    const auto at = counters_.at(worker)->values_in_at.load();
    out.push_back(view_.name_of(worker) +
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
