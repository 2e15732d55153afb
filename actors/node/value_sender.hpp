// actors/node/value_sender.hpp
//
// Gives parameters and solver state to the actors that begin with them, here and on other nodes: every member of the view before after
// a change. At the run's first clock the first node does as if it had been alone in a view before: it has read or drawn all of it. Which
// pieces go where is in parameters/. A part of `node`.
#pragma once
#include "actors/node/node_core.hpp"
#include "actors/parameters/handover.hpp"

#include <memory>
#include <vector>

namespace poseidon {

class value_sender {
 public:
  explicit value_sender(node_core& core) : core_(core) {}

  /// How much has been sent or received, until all first values have arrived.
  void show();
  /// The first node's: reads or draws what the run begins with.  Errors   as write_first_values, read_solverstate.
  void make_first_values();
  /// When a view begins, also where this node leaves: the solver state that it kept goes to those that keep it now,
  /// newcomers get its part of the values, and its own actors learn that their parameters are there.
  void hand_over();
  /// Before the first clock, on another node than the first, whose program has some of the first values already: they are there.
  void take_own_values();
  void end() { shown_.reset(); }

 private:
  void give(const std::vector<history_piece>& pieces);
  [[nodiscard]] view_step step_to(const partition& cut) const;
  void give_state(const view_step& step);
  void make_means_again() const;
  void give_values(const view_step& step) const;
  void give_shared(const std::vector<worker_id>& newcomers) const;
  void give_program_state(const view_step& step) const;
  [[nodiscard]] const frames::member_ready& ready_of(worker_id w) const;
  void start_others() const;
  void landed(chunk_id chunk);

  node_core& core_;
  std::shared_ptr<void> shown_;
};

}  // namespace poseidon
