// actors/cluster/view.hpp
//
// What all nodes agree on: who takes part, who leads, and from which clock on which routes and shares hold. A value; pure
// functions lead from one view to the next. Nodes that join, leave or die while training will be further functions here.
#pragma once
#include "messages/frames.hpp"
#include "messages/wire/codec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

struct agreed_view {
  std::uint64_t epoch = 0;  ///< rises with every view; 0: this node has none yet
  worker_id self = no_worker;
  worker_id leader{0};
  std::vector<std::string> members;   ///< by worker: where that node accepts links
  clock_id first_clock{};             ///< the view holds from this clock on
  std::vector<std::uint8_t> routes;   ///< by parameter, as in frames::view
  std::vector<frames::share> shares;  ///< by worker, as in frames::view

  [[nodiscard]] bool leads() const { return self == leader; }
  [[nodiscard]] bool has(worker_id w) const { return value(w) < members.size(); }
  /// "worker 2 (10.0.0.7:7600)"; without the address while there are no members.
  [[nodiscard]] std::string name_of(worker_id w) const;
  /// The members that this node dials when it enters the view: those before it but the leader, which it has dialed.
  [[nodiscard]] std::vector<worker_id> to_dial() const;
  /// Whether a node that says it is `w` may open a link to this one: the members after this node dial it.
  [[nodiscard]] bool is_dialed_by(worker_id w) const;
  /// "view 1: worker 0 (a:7600), this node": a line for each member.
  [[nodiscard]] std::vector<std::string> lines() const;
};

/// The leader's, before it has members.
[[nodiscard]] agreed_view view_of_leader();
/// The leader's, when all nodes are in.
[[nodiscard]] agreed_view formed(agreed_view leaders, std::vector<std::string> members);
/// A joiner's, as the leader tells it.
[[nodiscard]] agreed_view view_told(const frames::view& v, worker_id leader);
/// The same members with other routes, from `change.clock` on.
[[nodiscard]] agreed_view with_routes(agreed_view before, const frames::change_routes& change);

}  // namespace poseidon
