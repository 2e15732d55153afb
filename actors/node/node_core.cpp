#include "actors/node/node_core.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/links/link_spans.hpp"
#include "actors/node/node.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

node_core::node_core(node* of, node_setup told)
    : setup(std::move(told)), as_node(of), members(membership()), run(setup) {}

std::string node_core::newest_address(seat_id seat) const {
  for (const auto* const nodes : {&newest_members(), &newest_witnesses()})
    for (const auto& n : *nodes)
      if (n.seat == seat) return n.address;
  return "";
}

frames::next_view node_core::view_as_told() const {
  const auto& v = view();
  frames::next_view out;
  out.epoch = v.epoch;
  out.first_clock = v.first_clock;
  out.members = v.members;
  out.witnesses = v.witnesses;
  out.lost = v.lost;
  if (!setup.run) return out;  // a joiner is told
  out.routes = numbers_of(setup.run->routes);
  out.factor_rows = setup.run->factor_rows;
  for (const auto& s : setup.run->shares) out.shares.push_back({s.samples, s.replicas});
  return out;
}

member_setup node_core::membership() {
  member_setup m;
  m.network = setup.cluster.network;
  if (setup.around) m.as = link_identity::purpose::compute;
  auto traits = setup.around         ? setup.around->traits
                : setup.node.compute ? setup.node.compute->traits()
                                     : fingerprint();
  traits.push_back({std::string(trait_names::release), POSEIDON_VERSION});
  m.fingerprint = encode(traits);
  m.token = setup.cluster.token;
  m.tls = setup.cluster.tls;
  m.stop = setup.cluster.stop;
  m.display = setup.display;
  m.tell = [this](const port<send_frame>& link, send_frame f) {
    const auto bytes = f.data.bytes.size();
    as_node.tell(link, std::move(f), bytes);
  };
  m.equip = [this](seat_id seat, link_options& o) {
    o.binding.routes.control = as_node.self();
    o.binding.routes.lost = as_node.self();
    o.rate_mbit_s = setup.cluster.link_mbit_s;
    o.budget_mbit_s = setup.cluster.budget_mbit_s;
    o.silence_limit = setup.cluster.silence_limit;
    o.least_silence_limit = setup.cluster.least_silence_limit;
    o.stall_limit = std::max(o.stall_limit, o.silence_limit);
    setup.records.view->own().opened(value(seat), o.counters);
    // A joiner opens its first link before it knows whether the run is watched.
    if (setup.records.trace->enabled() || !setup.cluster.join.empty())
      o.trace = spans_of_link(setup.records.trace, link_name(value(seat)), run.chunk_layers(),
                              run.layer_names());
  };
  return m;
}

void node_core::close_link_to(seat_id peer, close_link says) const {
  const auto link = members.links().find(peer);
  if (link != members.links().end()) as_node.tell<close_link>(link->second, std::move(says));
}

member_context node_core::here() const {
  return {as_node.system(), *setup.edges, as_node.self(), as_node.self()};
}

}  // namespace poseidon
