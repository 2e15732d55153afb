// actors/node/assembly.hpp
//
// Puts a node's graph together: compiles the run, spawns its actors, binds each link to them, and tells all of them their
// neighbours; at the start, and again for each view that follows. A part of `node`.
//
//   build or rebuild -> bind_if_complete, until there is a link to every member -> bound, by each link -> the graph stands
#pragma once
#include "actors/node/link_bindings.hpp"
#include "actors/node/node_core.hpp"
#include "actors/telemetry/telemetry.hpp"
#include "models/plan/route_choice.hpp"

#include <cstddef>
#include <set>
#include <vector>

namespace poseidon {

class assembly {
 public:
  explicit assembly(node_core& core) : core_(core) {}

  /// The run's first graph. `decisions`: why the routes are as they are; empty where nobody chose.  Errors   as compile_run.
  void build(const std::vector<route_decision>& decisions);
  /// The graph of the next view, whose run has been compiled.
  void rebuild();

  /// True: the graph stands, because there was no link to bind.
  [[nodiscard]] bool bind_if_complete();
  /// A link is bound. True: it was the last one, and the graph stands. No peer hears that this node is ready before: then
  /// all peers may send.
  [[nodiscard]] bool bound(seat_id peer, std::uint64_t epoch);
  /// The next view has begun without this node: its links are bound to it, to give solver state away.
  void part();
  /// Where members are lost: nothing of the view that holds is sent or taken any more. Returns  the peers whose links will say so
  /// (link_bound).
  [[nodiscard]] std::set<seat_id> silence();

  [[nodiscard]] const handle<telemetry>& the_telemetry() const { return telemetry_; }
  void end();

 private:
  void note_batch() const;
  /// Of the view, where nodes do not all take the net's batch.
  [[nodiscard]] std::vector<std::string> describe_shares() const;
  void spawn_graph();
  void connect();
  [[nodiscard]] bool is_building() const;
  void bind_witnesses();
  [[nodiscard]] std::shared_ptr<const link_binding> control_binding(seat_id peer) const;
  [[nodiscard]] std::set<seat_id> peers() const;
  [[nodiscard]] binding_context context() const;

  node_core& core_;
  std::set<seat_id> binding_;  // links that are to be bound
  handle<telemetry> telemetry_;
};

}  // namespace poseidon
