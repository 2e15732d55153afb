// actors/cluster/view_change.hpp
//
// One node's part in a change from one view to the next, while it trains: what has been agreed, how far this node is, and
// what it still waits for. A state machine without a mailbox: the node tells it what it hears, and does what it answers.
// Other routes and other members are its causes. A node that is no member of the next view goes the same way, but builds no graph.
//
//   none -agree-> draining -paused-> paused -release-> releasing -released, by all-> leaving -left, by all-> rebuilding
//                     the solver trains up to the clock     solver state is given away     the old graph ends
//   rebuilding -resume-> none
//   releasing, leaving, rebuilding -replace-> the same (rebuilding: leaving), with another next view of the same clock
//   none, draining -freeze-> freezing -left, by all that compute, and silent, by all links-> frozen -release-> releasing     a member is lost
//   none -enter-> rebuilding     a newcomer, which has no old graph
//
// All nodes drain before one rebuilds, so nothing of the old view is under way then, and every node has all parameters of
// the clock's version. Where a member is lost nobody can drain: a node that has frozen sends no gradients any more, and keeps its
// solver state until the members that are left have agreed on the version that all go back to.
//
// If that is the version which the view began with, the state that it began with goes to the next one: what has been handed over
// may have been on its way. So that state is kept here until the next change.
#pragma once
#include "messages/frames.hpp"
#include "messages/training.hpp"
#include "models/plan/partition.hpp"

#include <caf/actor_addr.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace poseidon {

class view_change {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class step { none, draining, paused, freezing, frozen, releasing, leaving, rebuilding };

  [[nodiscard]] step at() const { return at_; }
  [[nodiscard]] bool under_way() const { return at_ != step::none; }
  /// The first clock of the next view.
  [[nodiscard]] clock_id clock() const { return clock_; }
  /// From release() on.
  [[nodiscard]] const frames::next_view& next() const { return next_; }
  /// It has been agreed on another view, and which one is not known here.
  [[nodiscard]] bool awaits_next() const {
    return at_ == step::draining || at_ == step::paused || has_frozen();
  }
  /// Or is about to.
  [[nodiscard]] bool has_frozen() const { return at_ == step::freezing || at_ == step::frozen; }
  /// The next view is known here, and has not begun.
  [[nodiscard]] bool knows_next() const {
    return at_ == step::releasing || at_ == step::leaving || at_ == step::rebuilding;
  }
  /// Whether this node is a member of the next view, where that is known.
  [[nodiscard]] bool brings(seat_id seat) const;
  [[nodiscard]] bool brings_witness(seat_id seat) const;
  /// Who leads from now on, where that is known before the next view has begun here.
  [[nodiscard]] std::optional<seat_id> leader() const {
    return next_.members.empty() ? std::nullopt : std::optional(next_.members.front().seat);
  }

  /// Another view holds from `clock` on. True: this node begins to drain. False: it does not train yet, or another change is under
  /// way; then the clock waits for take_early().
  [[nodiscard]] bool agree(clock_id clock, bool trains);
  /// The clock that was agreed on before this node could begin to drain.
  [[nodiscard]] std::optional<clock_id> take_early();

  /// The solver has paused before the clock. False: it was not asked to.
  [[nodiscard]] bool paused(std::uint64_t test_phases, time_point now);
  /// A member is lost: `actors`, which compute, are to end, or to give their work up, and these links to fall silent. False: this node trains no clock, or
  /// does so already.
  [[nodiscard]] bool freeze(std::vector<caf::actor_addr> actors, std::set<seat_id> links,
                            time_point now);
  /// One of the links has fallen silent, or has ended. True: nothing is left that this node has to wait for before it has frozen.
  [[nodiscard]] bool silent(seat_id link);
  /// All nodes have drained or frozen, and this is the next view; `keepers` actors are asked for their solver state. False: this
  /// node has done neither.
  [[nodiscard]] bool release(frames::next_view next, std::size_t keepers);
  /// One of them has given its state away. True: it was the last one, and the old graph is to end.
  [[nodiscard]] bool released(const history_released& m);
  void leave(std::vector<caf::actor_addr> actors);
  /// The next view begins with the version that this one began with: the state from before it goes there. False: it is not kept here.
  [[nodiscard]] bool release_former(const frames::next_view& next);
  /// An actor has ended, or has given its work up. True: it was the last one that had to, so this node has frozen, or the next graph is to be built.
  [[nodiscard]] bool left(const caf::actor_addr& actor);
  /// A newcomer has entered this view, which may still be replaced.
  void enter(clock_id clock, std::uint64_t test_phases, frames::next_view next);
  /// The first node has what training begins with, as the only member of a view before would: `state` was cut like this.
  void begin_with(std::shared_ptr<const partition> cut,
                  std::shared_ptr<const chunk_histories> state);
  /// A newcomer of the next view has died before that could begin, and this view takes its place. True: this node rebuilds for it,
  /// now or when its graph has ended; false: this node knows of no next view.
  [[nodiscard]] bool replace(frames::next_view next);
  /// Parameters were cut like this in the view that all have drained. Where state from before that view is released, that is known.
  void rebuild(std::shared_ptr<const partition> before);
  /// Whether this node has entered the next view, or one that it replaces.
  [[nodiscard]] bool has_entered() const { return has_entered_; }
  /// All nodes have rebuilt. `keeps`: the state that the view began with may be needed again. Returns  how long this node has paused.
  [[nodiscard]] std::chrono::milliseconds resume(time_point now, bool keeps = false);

  [[nodiscard]] std::uint64_t test_phases() const { return test_phases_; }
  /// The partition of the old view; null before it is rebuilt, and at a newcomer.
  [[nodiscard]] const std::shared_ptr<const partition>& before() const { return kept_.cut; }
  /// How parameters were cut where the state of the next view comes from; null: as they are cut now. `former`: it comes from before the
  /// view that holds.
  [[nodiscard]] std::shared_ptr<const partition> kept_cut(bool former) const {
    return kept_.cut ? kept_.cut : former ? former_.cut : nullptr;
  }
  /// The solver state that this node kept.
  [[nodiscard]] const std::vector<std::shared_ptr<const chunk_histories>>& histories() const {
    return kept_.histories;
  }
  /// Its copies of the solver state that another worker of the old view owned; null: it kept none of it.
  [[nodiscard]] std::shared_ptr<const chunk_histories> copies_of(worker_id owner) const;

 private:
  step at_ = step::none;
  clock_id clock_{};
  frames::next_view next_;
  std::optional<clock_id> early_;
  std::uint64_t test_phases_ = 0;
  time_point paused_since_;
  std::size_t histories_missing_ = 0;
  /// What a view began with.
  struct kept_state {
    std::vector<std::shared_ptr<const chunk_histories>> histories;
    std::map<worker_id, std::shared_ptr<const chunk_histories>> copies;
    std::shared_ptr<const partition> cut;
    bool nothing = false;  // this node came with that view
  };
  kept_state kept_, former_;
  std::vector<caf::actor_addr> leaving_;
  std::set<seat_id> speaking_;  // links that this node has to wait for until it has frozen
  bool has_entered_ = false;
};

}  // namespace poseidon
