// actors/node/frame_desk.hpp
//
// What a node does with a frame of another node: asks whether it may be said now, and gives it to the part or actor that it
// is for. A part of `node`.
#pragma once
#include "actors/cluster/frame_turns.hpp"
#include "actors/node/assembly.hpp"
#include "actors/node/changing.hpp"
#include "actors/node/joining.hpp"
#include "actors/node/leader_line.hpp"
#include "actors/node/node_core.hpp"
#include "actors/node/rates.hpp"
#include "actors/node/run_end.hpp"
#include "messages/link.hpp"

#include <utility>
#include <vector>

namespace poseidon {

class frame_desk {
 public:
  frame_desk(node_core& core, joining& joiner, leader_line& leader, assembly& graph,
             changing& change, rates& speeds, run_end& end)
      : core_(core),
        joining_(joiner),
        leader_(leader),
        assembly_(graph),
        changing_(change),
        rates_(speeds),
        end_(end) {}

  /// What the node is to do next. `vote`: the frame is of a ballot. `follow`: it is the next view. `part`: the next view has begun without
  /// it. `lose`: the frame is a member's suspect of itself.
  enum class next { nothing, build, begin, resume, vote, follow, part, lose };
  /// A frame that its sender may not say ends that link.  Errors   as the parts.
  [[nodiscard]] next hear(const control_arrived& m);
  /// What is said once for a view may be said again.
  void next_view() { turns_.next_view(); }
  /// A node that joins has lost this link, and joins again.
  void forget(seat_id peer) { turns_.forget(peer); }
  /// What was said to this node before it knew the next view, by nodes that did; to be heard now.
  [[nodiscard]] std::vector<control_arrived> take_early() { return std::exchange(early_, {}); }

 private:
  struct sender {
    seat_id seat{};
    worker_id worker{};  ///< in this node's view
  };
  [[nodiscard]] written_in view_of(const control_arrived& m) const;
  [[nodiscard]] bool is_for_leader_to_be(const control_arrived& m);
  [[nodiscard]] bool is_early(const control_arrived& m);
  [[nodiscard]] bool is_too_early(const control_arrived& m);
  [[nodiscard]] bool is_too_late(const control_arrived& m);
  next to_trainer(frame_header f, const sender& from);
  // One per frame that reaches a node (messages/frame_table.hpp): a missing one does not compile.
  next on(const frames::view& f, const sender& from);
  next on(const frames::gathering& f, const sender& from);
  next on(const frames::time_net& f, const sender& from);
  next on(const frames::net_timed& f, const sender& from);
  next on(const frames::member_ready& f, const sender& from);
  next on(const frames::join_ready& f, const sender& from);
  next on(const frames::leave_wanted& f, const sender& from);
  next on(const frames::suspect& f, const sender& from);
  next on(const frames::worker_done& f, const sender& from);
  next on(const frames::worker_left& f, const sender& from) { return to_trainer(f, from); }
  next on(const frames::factor_offer& f, const sender& from) { return to_trainer(f, from); }
  next on(const frames::probe& f, const sender& from);
  next on(const frames::probe_heard& f, const sender& from);
  next on(const frames::watch& f, const sender& from);
  next on(const frames::start_training& f, const sender& from);
  next on(const frames::stop_requested& f, const sender& from);
  next on(const frames::snapshot_requested& f, const sender& from);
  next on(const frames::stop_after& f, const sender& from);
  next on(const frames::hold_training& f, const sender& from);
  next on(const frames::worker_paused& f, const sender& from);
  next on(const frames::drain& f, const sender& from);
  next on(const frames::next_view&, const sender&) { return next::follow; }
  next on(const frames::view_prepare&, const sender&) { return next::vote; }
  next on(const frames::view_promise&, const sender&) { return next::vote; }
  next on(const frames::view_accept&, const sender&) { return next::vote; }
  next on(const frames::view_accepted&, const sender&) { return next::vote; }
  next on(const frames::send_rate& f, const sender& from);
  next on(const frames::gather_history& f, const sender& from);
  next on(const frames::worker_report& f, const sender& from);

  node_core& core_;
  joining& joining_;
  leader_line& leader_;
  assembly& assembly_;
  changing& changing_;
  rates& rates_;
  run_end& end_;
  frame_turns turns_;
  std::vector<control_arrived> early_;  // at most one of each kind of each node
};

}  // namespace poseidon
