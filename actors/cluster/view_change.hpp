// actors/cluster/view_change.hpp
//
// One node's part in a change from one view to the next, while it trains: what has been agreed, how far this node is, and
// what it still waits for. A state machine without a mailbox: the node tells it what it hears, and does what it answers.
// Other routes are the first cause of a change; other members will be further ones.
//
//   none -agree-> draining -paused-> paused -release-> releasing -released, by all-> leaving -left, by all-> rebuilding
//                     the solver trains up to the clock     solver state is given away     the old graph ends
//   rebuilding -resume-> none
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
  /// The change under way.
  [[nodiscard]] const frames::change_routes& agreed() const { return agreed_; }

  /// All nodes change as `c` says. True: this node begins to drain. False: it does not train yet, or another change is under
  /// way; then `c` waits for take_next().
  [[nodiscard]] bool agree(const frames::change_routes& c, bool trains);
  /// The change that has been agreed before this node could begin with it.
  [[nodiscard]] std::optional<frames::change_routes> take_next();

  /// The solver has paused before the clock. False: it was not asked to.
  [[nodiscard]] bool paused(std::uint64_t test_phases, time_point now);
  /// All nodes have drained; `keepers` actors are asked for their solver state. False: this node has not drained.
  [[nodiscard]] bool release(std::size_t keepers);
  /// One of them has given its state away. True: it was the last one, and the old graph is to end.
  [[nodiscard]] bool released(std::shared_ptr<const chunk_histories> history);
  void leave(std::vector<caf::actor_addr> actors);
  /// An actor has ended. True: it was the last one of the old graph, and the next one is to be built.
  [[nodiscard]] bool left(const caf::actor_addr& actor);
  /// Parameters were cut like this before.
  void rebuild(std::shared_ptr<const partition> before) { before_ = std::move(before); }
  /// All nodes have rebuilt. Returns  how long this node has paused.
  [[nodiscard]] std::chrono::milliseconds resume(time_point now);

  [[nodiscard]] std::uint64_t test_phases() const { return test_phases_; }
  /// The partition of the old view; null before it is rebuilt.
  [[nodiscard]] const std::shared_ptr<const partition>& before() const { return before_; }
  /// The solver state that this node kept.
  [[nodiscard]] const std::vector<std::shared_ptr<const chunk_histories>>& histories() const {
    return histories_;
  }

 private:
  step at_ = step::none;
  frames::change_routes agreed_;
  std::optional<frames::change_routes> next_;
  std::uint64_t test_phases_ = 0;
  time_point paused_since_;
  std::size_t histories_missing_ = 0;
  std::vector<std::shared_ptr<const chunk_histories>> histories_;
  std::vector<caf::actor_addr> leaving_;
  std::shared_ptr<const partition> before_;
};

}  // namespace poseidon
