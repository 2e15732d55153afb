// actors/node/leading.hpp
//
// What only the leader of several nodes does: it chooses routes, lets nodes join, splits the batch, tells the view, and says
// for all nodes what view_plan and protocol_selector are to hear. A part of `node`, which has one while it leads; a node
// that comes to lead makes one. `joining` is its counterpart.
//
//   choose -routes_chosen-> gathering -agree_on_first_view-> [-time_net-> every node (the leader, too) times its own net -net_timed->
//   shares] -> [links timed, routes chosen] -> the view is told, the node builds
//   Where a node goes before the view is told, it gathers again.
#pragma once
#include "actors/cluster/batch_split.hpp"
#include "actors/membership/view_plan.hpp"
#include "actors/node/change_schedule.hpp"
#include "actors/node/newcomers.hpp"
#include "actors/node/node_core.hpp"
#include "actors/node/witnesses.hpp"
#include "actors/routes/link_watch.hpp"
#include "actors/routes/protocol_selector.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon {

class leading {
 public:
  explicit leading(node_core& core) : core_(core) { planned_.plan_views(core.setup.choices.views); }

  /// Chooses routes, as far as they can be chosen, before a node can join: what the net cannot do is said while no
  /// other node waits. Errors as require_shares.
  void choose();
  /// Listens for other nodes.  Errors   socket_error.
  void gather();
  // True: all nodes have been told the view, and this one is to build, too.  Errors   spec_error.
  [[nodiscard]] bool on(const routes_chosen& m);
  [[nodiscard]] bool agree(const plan::agree_on_first_view& m);
  void on(const routes_proposed& m);
  void on(const factors_offered& m);
  /// Leads this view, which forms: another node has led before, or members are lost. Nodes that wait to join still do.
  void take_over(const frames::next_view& next);
  /// Why this node may not join; empty: it may.
  [[nodiscard]] std::optional<std::string> objection_to(const link_identity& joiner) const;
  /// A node has got a seat: while nodes gather it is one of them, later it gets ready for the next view. A witness waits in both cases.
  void joined(const frames::member& joiner);
  void witness_joined(const frames::member& joiner) { witnesses_.add(joiner); }
  /// A node that is no member is gone, or one that comes with a view that has not begun. True: nodes gather still, and another one may
  /// come in its place.
  bool gone(seat_id seat, const std::string& why);
  void leaves(seat_id seat, const std::string& why);
  /// All have been told to train.
  void began();

  void on(const frames::net_timed& f, seat_id from);
  void on(const frames::member_ready& f, seat_id from);
  void on(const frames::join_ready& f, seat_id from);
  void on(const frames::worker_done& f, seat_id from);
  // Of any node, the leader's own too.
  void ready(seat_id seat, std::uint64_t epoch);
  void done(seat_id seat, const frames::worker_done& m);
  void holds(seat_id seat, clock_id clock) { plan_->holds(seat, clock); }
  void drained(seat_id seat, clock_id clock) { plan_->drained(seat, clock); }
  void rate(worker_id from, link_watch::rate r);
  void probe_heard(worker_id from, std::uint32_t round);

  /// With equal shares no node has told the others how many replicas there are to be. Errors spec_error: a node has
  /// another number than this one.
  void check_replicas() const;
  /// The clock of the next change that a file given to --routes or --views asks for. All other nodes hear of it before they
  /// begin, so that none has begun that clock.
  [[nodiscard]] std::optional<clock_id> announce_next_change();
  /// Programs may come with the view that follows the one that drains, also those that get ready meanwhile.
  [[nodiscard]] bool for_newcomers() const { return core_.setup.run->takes_newcomers; }
  /// All have drained, or a newcomer of the view that forms is gone. Returns  what the members are to agree on.
  [[nodiscard]] frames::next_view next_view(const plan::propose_view& m);
  /// They have: tells newcomers what this node knows of the run.
  void tell_newcomers(const frames::next_view& next) { newcomers_.tell_next_view(next); }
  /// The run is to end: it waits for no node that --views wants.
  void ends();
  /// All train in the next view.
  void changed(std::chrono::milliseconds paused, bool other_members);

  /// What the plan of the view, or of the next one, asks for; one after the other.
  [[nodiscard]] std::optional<plan::action> take_action() {
    return plan_ ? plan_->take_action() : std::nullopt;
  }
  void leavers_collected(std::uint64_t epoch) { plan_->leavers_collected(epoch); }

  /// Why the first routes are as they are.
  [[nodiscard]] const std::vector<route_decision>& decisions() const { return decisions_; }
  void end();

 private:
  void measure_links_of_all();
  void give_to_newcomers(frames::next_view& next);
  void change_witnesses();
  void gather_again();
  void tell_who_gathers(seat_id newest);
  void choose_anew();
  void ask_speeds();
  void take_speed(seat_id from, const frames::net_timed& speed);
  void spawn_selector(const lossiness& lossy);
  void choose_again();
  void chosen_again(const routes_chosen& m);
  void plan_first_view();
  [[nodiscard]] bool is_alone() const;
  void split_batch();
  [[nodiscard]] bool tell_view_if_known();
  void tell_view();

  node_core& core_;
  std::optional<view_plan> plan_;  // from gather() or take_over() on
  handle<protocol_selector> selector_;
  bool routes_need_rate_ = false;
  bool gathers_ = false;            // until there is a first view
  std::vector<frames::member> in_;  // while nodes gather: this one, and those that have joined
  bool measures_ = false;           // the links, for the first view
  bool awaits_routes_ = false;      // they are chosen anew, because a node has gone meanwhile
  bool took_over_ = false;          // another node has led before
  std::uint64_t batch_ = 0;         // of the net, on one node
  std::vector<route_decision> decisions_;
  change_schedule planned_;
  std::vector<std::uint32_t> factor_rows_;  // that programs have offered
  bool no_factors_ = false;                 // a program has come later, which has offered none
  std::set<seat_id> leaving_;               // who has said so
  batch_split split_;
  newcomers newcomers_{core_};
  witnesses witnesses_{core_, newcomers_};
};

}  // namespace poseidon
