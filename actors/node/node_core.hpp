// actors/node/node_core.hpp
//
// What the parts of a node share: what it was told, what it is doing, the cluster around it, what it trains, and its voice.
// Each part (leading, joining, assembly, changing, ...) answers one question and has state of its own; none knows the node.
#pragma once
#include "actors/cluster/frame_rules.hpp"
#include "actors/cluster/member.hpp"
#include "actors/core/actor.hpp"
#include "actors/membership/view_change.hpp"
#include "actors/node/kept_state.hpp"
#include "actors/node/local_run.hpp"
#include "actors/node/node_setup.hpp"

#include <map>

namespace poseidon {

class node;

struct node_core {
  node_core(node* of, node_setup told);
  node_core(const node_core&) = delete;
  node_core& operator=(const node_core&) = delete;

  node_setup setup;
  voice<node> as_node;
  member members;
  local_run run;
  view_change change;
  kept_state kept;
  bool watched = false;  ///< the leader shows the run
  bool begun = false;    ///< this node's solver or caller has begun, in this view or before
  bool done = false;     ///< this node has trained its last clock, and has told the leader

  /// The leader's: what each other node has said last.
  std::map<seat_id, frames::member_ready> ready;

  [[nodiscard]] const agreed_view& view() const { return members.view(); }
  /// Of the newest view that this node knows, built or not.
  [[nodiscard]] const std::vector<frames::member>& newest_members() const {
    return change.knows_next() ? change.next().members : view().members;
  }
  [[nodiscard]] const std::vector<frames::member>& newest_witnesses() const {
    return change.knows_next() ? change.next().witnesses : view().witnesses;
  }
  /// Of the view that holds, or of the newest one.
  [[nodiscard]] bool is_witness(seat_id seat) const {
    return view().has_witness(seat) || is_among(newest_witnesses(), seat);
  }
  /// Where a member or a witness of the newest view listens; empty: it is neither.
  [[nodiscard]] std::string newest_address(seat_id seat) const;
  /// The view that holds, as those have been told that were there.
  [[nodiscard]] frames::next_view view_as_told() const;
  /// Its solver or caller is still to begin, or begins anew: this node comes with the view.
  [[nodiscard]] bool begins() const { return !begun || !view().had(view().seat); }
  [[nodiscard]] bool trains() const { return change.is_in(stages::running); }
  /// ... and computes, as far as it was not asked to drain.
  [[nodiscard]] bool computes() const { return change.is_in(stages::computing); }
  /// Whether the node with this seat is a newcomer of a view that has not begun: another view without it can replace that one.
  [[nodiscard]] bool comes(seat_id seat) const { return change.is_to_come(seat, view()); }
  /// The number of the newest view that this node knows, built or not.
  [[nodiscard]] std::uint64_t newest_epoch() const { return change.epoch(view()); }
  [[nodiscard]] bool has_ended() const {
    return change.is_in(during(node_stage::failing, node_stage::ended));
  }
  /// Where there is a link to that node: its last words.
  void close_link_to(seat_id peer, close_link says) const;
  /// The actors of the node as the network needs them.
  [[nodiscard]] member_context here() const;

 private:
  [[nodiscard]] member_setup membership();
};

}  // namespace poseidon
