#include "actors/cluster/member.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/links/link_counters.hpp"
#include "models/words.hpp"

#include <utility>

namespace poseidon {

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

void member::join(const host_port& to, const member_context& c) {
  // It listens before it dials, because its address is part of what it says about itself.
  address_ = to_string(setup_.network->listen({"", 0}));
  setup_.display->note("joining " + to_string(to));
  const auto leader = setup_.network->dial(to, shaking({address_, no_worker, 0}));
  accept(c, {address_, no_worker, 0});
  open(view_.leader, leader, c);
  setup_.display->note("joined; waiting for the other nodes");
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
  o.binding.self = view_.self;
  o.binding.peer = worker;
  counters_[worker] = o.counters;
  setup_.equip(worker, o);
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
  if (!view_.leads() && view_.members.empty()) {
    early_.push_back(c);
    return admission::kept;
  }
  if (view_.is_dialed_by(peer.worker) && !links_.contains(peer.worker)) {
    setup_.display->detail("membership: " + view_.name_of(peer.worker) + " has dialed this node");
    open(peer.worker, c, context);
    return admission::linked;
  }
  // Joining a run that trains is a later matter: the stranger sees the connection close.
  setup_.display->note("refused " + c.socket->peer() + ": training runs already with " +
                       plural(view_.members.size(), "node"));
  c.socket->shutdown();
  return admission::stranger;
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

void member::drop() {
  links_.clear();
  early_.clear();
  acceptor_ = {};
}

}  // namespace poseidon
