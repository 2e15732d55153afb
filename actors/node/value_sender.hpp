// actors/node/value_sender.hpp
//
// Gives parameters and solver state to the actors that begin with them, here and on other nodes: the leader at the first
// clock, every member of the view before after a change. Which pieces go where is in parameters/. A part of `node`.
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
  /// The leader's: reads or draws the first values, and gives them.  Errors   as write_first_values, read_solverstate.
  void give_first_values();
  /// After a change of the view, also where this node leaves: the solver state that it kept goes to those that keep it now,
  /// newcomers get its part of the values, and its own actors learn that their parameters are there.
  void hand_over();
  void end() { shown_.reset(); }

 private:
  void give(const std::vector<history_piece>& pieces, version_id version);
  void give_values(const view_step& step) const;
  void start_others() const;
  void landed(chunk_id chunk);

  node_core& core_;
  std::shared_ptr<void> shown_;
};

}  // namespace poseidon
