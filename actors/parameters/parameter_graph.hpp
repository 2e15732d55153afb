// actors/parameters/parameter_graph.hpp
//
// Puts actors on a list of parameters: gradients go in, fresh parameters come out. A server_shard, a checkpointer, a state_keeper
// where this node has copies of other nodes' solver state, and for each group of parameters a gradient_push, a factor_broadcast or a
// lowrank_exchange. It knows neither a net nor data; a replica_graph
// makes the gradients from those, and another framework can make them from anything.
//
// A pass of a group, once connect() has been called and the first values have landed: each thread that has written its
// part of the gradient calls contribution(), and its actor tells exchange() backward_done. When all gradients of a
// clock have been exchanged, the fresh values are current in the parameter_store, and the group's readers hear
// parameters_fresh.
#pragma once
#include "actors/core/actor_spawner.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/progress.hpp"
#include "actors/parameters/checkpointer.hpp"
#include "actors/parameters/factor_broadcast.hpp"
#include "actors/parameters/gradient_push.hpp"
#include "actors/parameters/lowrank_exchange.hpp"
#include "actors/parameters/own_updates.hpp"
#include "actors/parameters/server_shard.hpp"
#include "actors/parameters/state_keeper.hpp"
#include "models/caffe.hpp"
#include "models/device/device.hpp"
#include "models/net/learned_parameters.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/solver/update_choice.hpp"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

/// What a factor_broadcast needs besides the parameters.
struct factor_route {
  factor_shape pass;  ///< of one micro-batch of one replica
  factor_rows rows;
};

/// What a lowrank_exchange needs besides them.
struct lowrank_route {
  lowrank_shape shape;
  lowrank_bytes frames;
  bool rounded = false;  ///< P and Q travel as bfloat16
  worker_id owner{};     ///< of the sums
};

struct parameter_graph_setup {
  worker_id self{};
  std::size_t workers = 1;
  std::uint64_t staleness = 0;
  std::uint64_t epoch = 0;  ///< of the view
  clock_id first_clock{};
  ::caffe::SolverParameter solver;
  update_choice update;
  by_id<parameter_id, std::vector<const float*>> first_state;  ///< of that optimizer
  learned_parameters list;
  /// By group, those on these routes; all others have a gradient_push.
  std::map<std::size_t, factor_route> by_factors;
  std::map<std::size_t, lowrank_route> by_lowrank;
  std::uint64_t seed = 0;           ///< of the run
  error_memories memories = {};     ///< of the graph before this one
  std::vector<bool> run_ahead;      ///< by group: groups_that_run_ahead(); empty: none does
  std::uint32_t replicas = 1;       ///< of this node: each contributes to every gradient
  std::uint32_t micro_batches = 1;  ///< of this node in a clock
  double batches = 1;  ///< means over a batch whose sum a clock's gradient is, over all nodes
  std::uint32_t passes_added = 1;  ///< micro-batches whose gradients the device adds
  /// With outer steps: this node's own updates in a clock, one after so many micro-batches; null: it makes none.
  std::shared_ptr<own_updates> own;
  std::uint32_t passes_per_update = 0;
  /// Passes of a micro-batch on one node whose losses are each a mean.
  std::uint32_t means = 1;
  std::uint64_t passes = 1;  ///< of a clock, over all nodes
  /// A replica can compute a pass before all others have computed the one before.
  bool passes_overlap = false;
  bool by_magnitude = false;  ///< chunks are sent in the order of their magnitudes
  /// By replica: where each gradient is written. Empty on the factor route and for frozen parameters.
  std::vector<by_id<parameter_id, std::span<float>>> gradients;
  /// By group, where a program lends the gradients instead; each is of one parameter, with the group's number.
  std::vector<std::shared_ptr<const gradient_source>> lent;
  std::shared_ptr<const forward_places> places;  ///< null: layers stand at their own numbers
  std::shared_ptr<const host_arithmetic> arithmetic;
  bool computes = true;  ///< false: the device reconstructs no values from factors (replay)
  std::shared_ptr<std::pmr::memory_resource> host_memory;  ///< for factors; empty: any
  std::shared_ptr<parameter_store> store;
  /// By chunk: values of solver state that come from the members of the view before. Empty: none.
  by_id<chunk_id, std::size_t> awaited_state;
  /// How many nodes may be lost at the same time without loss of solver state.
  std::uint32_t survive = 0;
  std::shared_ptr<device_updates> updates;  ///< null: the host makes all updates
  std::shared_ptr<overlap_meter> overlap;
  std::shared_ptr<progress> display;  ///< may be null
  snapshot_files files;
  handle<checkpointer> checkpoints;  ///< of the graph before this one; empty: it is spawned
};

/// The actors that hear of a group's parameters.
struct group_readers {
  std::vector<port<parameters_fresh>> fresh;
  std::vector<port<gradient_taken>> taken;  ///< with passes_overlap: one per writer and replica
};

class parameter_graph {
 public:
  /// Spawns the actors. What `setup` points at outlives them.
  parameter_graph(actor_spawner& spawner, parameter_graph_setup setup);

  /// `links` by worker, empty at self; `readers` by group.
  void connect(const std::vector<port<send_frame>>& links, std::vector<group_readers> readers,
               const port<layer_fresh>& solver);

  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  [[nodiscard]] const learned_group& group(std::size_t g) const { return groups_[g].group; }
  [[nodiscard]] bool on_factors(std::size_t g) const { return bool(groups_[g].broadcast); }
  /// Hears of each backward pass of the group's writers.
  [[nodiscard]] port<backward_done> exchange(std::size_t g) const;
  /// To be called by the thread that has computed a gradient of a group that is not on the factor route, after each
  /// writer's backward pass and before backward_done: adds it to the node's.
  [[nodiscard]] std::function<void(const pass_id&)> contribution(std::size_t g) const;
  /// Of the groups on the factor route, by learned_group::first.
  [[nodiscard]] const factor_stores& factors() const { return factors_; }

  /// The port that gathers a parameter's chunks: its group's actor.
  [[nodiscard]] port<chunk_landed> receiver_of(parameter_id parameter) const;
  /// Its gradient_push; empty where its group is on another route.
  [[nodiscard]] port<chunk_fresh> push_of(parameter_id parameter) const;
  /// The actor on this node that has a chunk's solver state: the shard, the state_keeper or the group's.
  [[nodiscard]] port<history_inherited> history_owner(chunk_id chunk) const;
  /// The groups' actors that have to hear when all parameters have reached a version.
  [[nodiscard]] std::vector<port<parameters_whole>> side_branches() const;
  /// All actors on this node that have solver state.
  [[nodiscard]] std::vector<port<release_history>> histories() const;
  /// Empty for a layer that broadcasts none.
  [[nodiscard]] port<factors_landed> broadcast(layer_id layer) const;
  /// Empty for a layer on no lowrank route.
  [[nodiscard]] port<lowrank_landed> lowrank(layer_id layer) const;
  /// Of the groups on a lowrank route, by learned_group::first.
  [[nodiscard]] const all_lowrank_turns& turns() const { return turns_; }
  /// For the graph after this one.
  [[nodiscard]] const error_memories& memories() const { return setup_.memories; }
  [[nodiscard]] const handle<server_shard>& shard() const { return shard_; }
  /// Empty where this node keeps nothing for others.
  [[nodiscard]] const handle<state_keeper>& keeper() const { return keeper_; }
  [[nodiscard]] const handle<checkpointer>& checkpoints() const { return setup_.checkpoints; }

 private:
  /// What exchanges a group's gradient: one of the three actors.
  struct group_actors {
    learned_group group;
    bool runs_ahead = false;
    handle<gradient_push> push;
    handle<factor_broadcast> broadcast;
    handle<lowrank_exchange> lowrank;
    std::shared_ptr<gradient_sum> sum;  ///< with a push or low rank

    /// The actor, as what hears M.
    template <class M>
    [[nodiscard]] port<M> actor() const {
      if (push) return push;
      return updater<M>();
    }
    /// The same where it updates this node's own copy of the parameters; else empty.
    template <class M>
    [[nodiscard]] port<M> updater() const {
      if (broadcast) return broadcast;
      if (lowrank) return lowrank;
      return {};
    }
    std::shared_ptr<chunk_magnitudes> magnitudes;  ///< with a push that sends by magnitude
    std::shared_ptr<gradient_encoder> encoder;     ///< with a push that sends reduced formats
  };
  [[nodiscard]] float scale() const;
  [[nodiscard]] thread_kind thread_for(std::size_t values) const;
  [[nodiscard]] std::uint64_t former_states() const;
  void take_outer_steps(server_shard_setup& s) const;
  void spawn_shard();
  void spawn_keeper();
  void spawn_checkpointer();
  void spawn_groups();
  void spawn_push(group_actors& g, const std::shared_ptr<const gradient_source>& lent);
  void make_sum(group_actors& g) const;
  [[nodiscard]] std::function<void(const pass_id&)> own_contribution(const group_actors& of) const;
  [[nodiscard]] std::shared_ptr<gradient_encoder> encoder_of(const learned_group& group) const;
  void spawn_broadcast(group_actors& g, const factor_route& route);
  void spawn_lowrank(group_actors& g, const lowrank_route& route);
  [[nodiscard]] std::size_t awaited_by(const learned_group& group) const;
  [[nodiscard]] std::shared_ptr<error_memory> memory_of(const learned_group& group,
                                                        std::size_t values);
  void keep_memories();

  actor_spawner& spawner_;
  parameter_graph_setup setup_;
  handle<server_shard> shard_;
  handle<state_keeper> keeper_;
  std::vector<group_actors> groups_;
  by_id<parameter_id, std::size_t> group_of_parameter_;
  factor_stores factors_;
  all_lowrank_turns turns_;
};

}  // namespace poseidon
