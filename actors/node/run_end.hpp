// actors/node/run_end.hpp
//
// How a node's run ends: which result the user reads, what the peers hear, what is written after a loss, and in which order
// everything is closed. A part of `node`.
#pragma once
#include "actors/node/node_core.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"

#include <exception>
#include <string>

namespace poseidon {

class run_end {
 public:
  explicit run_end(node_core& core) : core_(core) {}

  /// The run fails. True: close now; false: it ends already, or this node writes what it has first.
  /// `suffix`: of the names of files. `of`: who ends for that reason.
  [[nodiscard]] bool fail(std::string text, int exit_code, const std::string& suffix = "",
                          frames::goodbye::cause of = frames::goodbye::cause::run);
  /// The others go on without this node. It writes nothing: the run's files are theirs. True: close now.
  [[nodiscard]] bool left_out(std::string why);
  /// Runs a step; what it throws is the user's to read, not a crash. As fail.
  template <class Step>
  [[nodiscard]] bool fails(Step step) {
    try {
      step();
      return false;
    } catch (...) {
      return fail_by(std::current_exception());
    }
  }
  /// A handler threw: a bug.
  void threw(const std::exception_ptr& thrown);
  /// The node was stopped by another actor than its own.
  void was_stopped() { result_ = {1, "internal error: the node was stopped"}; }

  /// The program has left, and the others have gone on.
  void released();
  /// Training is done, but for a last snapshot that could not be written.
  void without_snapshot(version_id of, const std::string& error);
  /// After a lost peer: what this node has kept, and how to go on with it.
  void kept(const snapshot_written& m);
  /// Says that training ends at this version.
  void note_stop(version_id version, const std::string& reason) const;

  /// The user wants a snapshot now, and the run to go on.
  void keep_snapshot() const;

  // True: close now.
  /// A signal came. While the run trains, all nodes end after one clock, which the leader's solver chooses.
  [[nodiscard]] bool interrupted(int signal);
  /// This node is to leave, for a signal or (0) because somebody asks for it. False: it cannot, so all are to end.
  [[nodiscard]] bool leaves(int signal);
  [[nodiscard]] bool is_leaving() const { return leaving_; }
  /// This node's user wants an end, of the run or of this node's part in it.
  [[nodiscard]] bool is_wanted() const { return leaving_ || !wants_end_.empty(); }
  /// Whether the leader of this view has still to hear that this node leaves; it counts as told from then on.
  [[nodiscard]] bool takes_leave();
  /// To the leader, if this node's user wants the end: what it has not heard, because another node led, or this one did not
  /// train yet.
  void say_again() const;
  /// A link has ended, with the run or against the plan.
  [[nodiscard]] bool lost(const link_lost& m);

  /// First, links and actors are told to end; last, the result is told.
  void begin();
  void complete();

 private:
  /// The others wait for this node, with which the next view begins: it cannot go before.
  [[nodiscard]] bool joins_now() const;
  [[nodiscard]] std::string command_with(const std::string& option) const;
  void ask_for_end() const;
  [[nodiscard]] bool fail_by(const std::exception_ptr& thrown);

  node_core& core_;
  node_result result_;
  bool leaving_ = false;
  std::uint64_t took_leave_in_ = 0;  // the epoch
  std::string wants_end_;            // why this node's user wants all to end
  frames::goodbye goodbye_;          // what the peers hear
};

}  // namespace poseidon
