#include "apps/web/link_traffic.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/routes/protocol_selector.hpp"

#include <algorithm>
#include <string>

namespace poseidon {

namespace {

/// What this worker's protocol_selector has given to the link `name`; to all links, if it is empty.
std::uint64_t probes_over(const worker_graph& g, const std::string& name) {
  std::uint64_t bytes = 0;
  for (const auto& e : g.edges)
    if (g.actors[e.from].type == protocol_selector::type_name && e.message == "send_frame" &&
        (name.empty() || g.actors[e.to].name == name))
      bytes += e.bytes;
  return bytes;
}

}  // namespace

link_traffic traffic_of(const cluster_view::state& s, std::uint32_t worker) {
  link_traffic t;
  const auto at = s.workers.find(worker);
  if (at == s.workers.end()) return t;
  for (const auto& l : at->second.links) t.out += l.bytes_out, t.in += l.bytes_in;
  // They are counted when the link gets them, so for a moment there may be more of them than bytes that the link has carried.
  t.probes_out = std::min(t.out, probes_over(at->second.graph, ""));
  for (const auto& [id, other] : s.workers)
    if (id != worker) t.probes_in += probes_over(other.graph, link_name(worker));
  t.probes_in = std::min(t.in, t.probes_in);
  t.out -= t.probes_out;
  t.in -= t.probes_in;
  return t;
}

}  // namespace poseidon
