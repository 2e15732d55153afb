// actors/parameters/own_updates.hpp
//
// With outer steps (models/solver/outer_steps.hpp): the parameters with which this node computes between two of them, and the state of the
// solver's rule, which are this node's alone. A clock begins with the version of it in the parameter_store, the anchor. After each
// iteration the rule makes this node's next values; after the last one they are replaced by what they have moved, which the node sends.
//
// State is kept as of the beginnings of several clocks, because a node that loses a peer goes back to a version before: the first
// update of clock c reads the state of c and writes that of c + 1, where all further ones go on in place. With the newest version
// of all parameters whole on this node, others may lack it, and a clock may have begun; where a side branch runs ahead of that, one more.
//
// Threads: a replica's stream calls begin() before a forward kernel, and the stream that completes a group's gradient calls update()
// and finish(): no pass that reads the parameter is under way then. gradient_push reads moved() until the clock has been exchanged.
#pragma once
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"
#include "models/device/host_arithmetic.hpp"
#include "models/indexed.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

struct own_updates_setup {
  std::shared_ptr<const parameter_store> store;
  std::vector<net_parameter> parameters;
  ::caffe::SolverParameter solver;
  std::shared_ptr<const host_arithmetic> arithmetic;
  float scale = 1;           ///< makes the sum of an iteration's gradients on this node their mean
  std::uint64_t passes = 1;  ///< of this node in an iteration, over its replicas
  std::size_t clocks_kept = 3;  ///< 4 where side branches run ahead
};

class own_updates {
 public:
  explicit own_updates(own_updates_setup setup);

  /// The solver's state of this node: zeros, until it has trained.
  struct node_state {
    /// Clocks of updates that made it count from here: where it began with zeros.
    std::uint64_t since = 0;
    /// By parameter, then clock modulo clocks_kept, then array: as of the beginning of that clock.
    by_id<parameter_id, std::vector<std::vector<std::vector<float>>>> arrays;
  };
  /// This node's first clock. Before any pass.
  void begin_at(std::uint64_t clock) { state_.since = clock; }
  /// Gives it to the object of the same net that is made when the view changes.
  [[nodiscard]] node_state release_state() { return std::move(state_); }
  void take_state(node_state state) { state_ = std::move(state); }

  /// What the kernels of all replicas of the train net read.
  [[nodiscard]] const parameter_values& view(parameter_id parameter) const {
    return *of_[parameter].view;
  }

  /// A kernel in this pass of the train net is about to read the parameter.
  void begin(parameter_id parameter, const pass_id& pass);
  /// Makes this node's values after the clock's iteration number `iteration`, of the sum of its gradients.
  void update(parameter_id parameter, std::uint64_t clock, std::uint64_t iteration,
              std::span<const float> gradient);
  /// After the clock's last update: makes moved(), for a run of so many nodes.
  void finish(parameter_id parameter, std::uint64_t clock, std::size_t workers);
  /// Until the next clock's first update.
  [[nodiscard]] std::span<const float> moved(parameter_id parameter) const {
    return of_[parameter].own;
  }

 private:
  struct of_parameter {
    std::unique_ptr<parameter_values> view = std::make_unique<parameter_values>();
    std::vector<float> own;
  };
  void show(of_parameter& p, std::span<const float> values);
  [[nodiscard]] std::vector<state_array> state_of(parameter_id parameter, std::uint64_t clock,
                                                  std::uint64_t iteration);

  own_updates_setup setup_;
  solver_rule rule_;
  by_id<parameter_id, of_parameter> of_;
  node_state state_;
};

/// What a group's parameters have moved in a clock, for its gradient_push.
class moved_parameters : public gradient_source {
 public:
  moved_parameters(std::shared_ptr<const own_updates> updates, std::vector<parameter_id> parameters)
      : updates_(std::move(updates)), parameters_(std::move(parameters)) {}
  [[nodiscard]] std::span<const float> total(std::uint64_t /*clock*/,
                                             std::size_t i) const override {
    return updates_->moved(parameters_[i]);
  }

 private:
  std::shared_ptr<const own_updates> updates_;
  std::vector<parameter_id> parameters_;
};

}  // namespace poseidon
