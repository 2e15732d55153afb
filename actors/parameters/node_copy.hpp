// actors/parameters/node_copy.hpp
//
// The parameters of one layer that every node updates in a copy of its own: what factor_broadcast and lowrank_exchange do alike. It counts the
// first values, keeps the solver state and waits for that of the view before, applies the solver's rule, and publishes versions. A part of an
// actor, without a mailbox.
#pragma once
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/solver_history.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"
#include "models/device/host_arithmetic.hpp"
#include "models/net/net.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poseidon {

struct node_copy_setup {
  std::shared_ptr<parameter_store> store;
  std::vector<parameter_id> parameters;  ///< the weights, then what is learned beside them
  std::vector<parameter_id> frozen;      ///< lr_mult 0: received once
  std::size_t slots = 0;                 ///< arrays of solver state
  device_updates* updates = nullptr;     ///< as solver_history has it
  bool computes = true;                  ///< false: state has a size and no values
  /// Values of solver state that come from the members of the view before; no update is made before.
  std::size_t awaited_state = 0;
  std::uint64_t former_states = 0;  ///< as server_shard_setup's
};

/// The solver's rule for these parameters.
struct copy_rule {
  const solver_rule& rule;
  const ::caffe::SolverParameter& solver;
  const by_id<parameter_id, net_parameter>& of_net;  ///< all parameters of the net, for multipliers
  float scale = 1;                                   ///< makes a sum of gradients their mean
};

class node_copy {
 public:
  explicit node_copy(node_copy_setup setup);

  /// The number of values of a parameter, by its place in the setup.
  [[nodiscard]] std::size_t values_of(std::size_t place) const { return values_[place]; }
  [[nodiscard]] solver_history& history() { return history_; }
  [[nodiscard]] const solver_history& history() const { return history_; }

  [[nodiscard]] bool has_first_values() const { return chunks_missing_ == 0; }
  /// The newest version; valid once the first values are there.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Updates can be made: first values and state are there, and no view after this one has taken them.
  [[nodiscard]] bool is_ready() const {
    return has_first_values() && setup_.awaited_state == 0 && !history_.is_released();
  }

  /// A chunk of the first values. True: it is the last one, so `version` is there, and frozen parameters are published.
  /// Errors   logic_bug: there are no more to come.
  [[nodiscard]] bool take_first(version_id version);

  /// Makes the values of the next version of all parameters from the sums of their gradients, by place.
  void update(const host_arithmetic& arithmetic, const copy_rule& by,
              const std::vector<std::vector<float>>& gradients);
  /// The next version is there.
  void made() { ++version_; }
  /// Lets readers have the newest version.
  void publish();

  /// Writes solver state. True: it is the last that was awaited, and a snapshot waits for it (gives_state()).
  [[nodiscard]] bool take_state(const history_inherited& m);
  /// Whether a snapshot can have the state now; if not, take_state() says when.
  [[nodiscard]] bool gives_state() {
    snapshot_waits_ = setup_.awaited_state > 0;
    return !snapshot_waits_;
  }
  /// Gives it away, as of a version; empty: the newest.
  /// Errors   logic_bug: it has not reached that version, or does not keep it.
  [[nodiscard]] std::shared_ptr<chunk_histories> release(std::optional<version_id> version);

 private:
  node_copy_setup setup_;
  solver_history history_;
  std::vector<std::size_t> values_;
  std::size_t chunks_missing_ = 0;  // of the first values
  std::uint64_t version_ = 0;
  bool snapshot_waits_ = false;
};

}  // namespace poseidon
