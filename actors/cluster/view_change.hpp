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
//   none -enter-> rebuilding     a newcomer, which has no old graph
//
// All nodes drain before one rebuilds, so nothing of the old view is under way then, and every node has all parameters of
// the clock's version.
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
#include <vector>

namespace poseidon {

class view_change {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class step { none, draining, paused, releasing, leaving, rebuilding };

  [[nodiscard]] step at() const { return at_; }
  [[nodiscard]] bool under_way() const { return at_ != step::none; }
  /// The first clock of the next view.
  [[nodiscard]] clock_id clock() const { return clock_; }
  /// From release() on.
  [[nodiscard]] const frames::next_view& next() const { return next_; }
  /// It has been agreed on another view, and which one is not known here.
  [[nodiscard]] bool awaits_next() const { return at_ == step::draining || at_ == step::paused; }
  /// The next view is known here, and has not begun.
  [[nodiscard]] bool knows_next() const {
    return at_ == step::releasing || at_ == step::leaving || at_ == step::rebuilding;
  }
  /// Whether this node is a member of the next view, where that is known.
  [[nodiscard]] bool brings(seat_id seat) const;
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
  /// All nodes have drained, and this is the next view; `keepers` actors are asked for their solver state. False: this node
  /// has not drained.
  [[nodiscard]] bool release(frames::next_view next, std::size_t keepers);
  /// One of them has given its state away. True: it was the last one, and the old graph is to end.
  [[nodiscard]] bool released(const history_released& m);
  void leave(std::vector<caf::actor_addr> actors);
  /// An actor has ended. True: it was the last one of the old graph, and the next one is to be built.
  [[nodiscard]] bool left(const caf::actor_addr& actor);
  /// A newcomer has entered this view, which may still be replaced.
  void enter(clock_id clock, std::uint64_t test_phases, frames::next_view next);
  /// A newcomer of the next view has died before that could begin, and this view takes its place. True: this node rebuilds for it,
  /// now or when its graph has ended; false: this node knows of no next view.
  [[nodiscard]] bool replace(frames::next_view next);
  /// Parameters were cut like this in the view that all have drained.
  void rebuild(std::shared_ptr<const partition> before);
  /// Whether this node has entered the next view, or one that it replaces.
  [[nodiscard]] bool has_entered() const { return has_entered_; }
  /// All nodes have rebuilt. Returns  how long this node has paused.
  [[nodiscard]] std::chrono::milliseconds resume(time_point now);

  [[nodiscard]] std::uint64_t test_phases() const { return test_phases_; }
  /// The partition of the old view; null before it is rebuilt, and at a newcomer.
  [[nodiscard]] const std::shared_ptr<const partition>& before() const { return before_; }
  /// The solver state that this node kept.
  [[nodiscard]] const std::vector<std::shared_ptr<const chunk_histories>>& histories() const {
    return histories_;
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
  std::vector<std::shared_ptr<const chunk_histories>> histories_;
  std::map<worker_id, std::shared_ptr<const chunk_histories>> copies_;
  std::vector<caf::actor_addr> leaving_;
  std::shared_ptr<const partition> before_;
  bool has_entered_ = false;
};

}  // namespace poseidon
