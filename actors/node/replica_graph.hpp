// actors/node/replica_graph.hpp
//
// Puts actors on the nets of a compiled run: for each replica a stream (with copy_out and a second stream on an
// asynchronous device), a data_source per data layer and an actor per layer, wired as the nets say; and the solver,
// which lets them begin. Gradients go to a parameter_graph.
#pragma once
#include "actors/client/caller.hpp"
#include "actors/core/actor_spawner.hpp"
#include "actors/core/progress.hpp"
#include "actors/parameters/parameter_graph.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/training/copy_out.hpp"
#include "actors/training/data_source.hpp"
#include "actors/training/debug_info.hpp"
#include "actors/training/layer.hpp"
#include "actors/training/solver.hpp"
#include "actors/training/stream.hpp"
#include "models/net/parameter_groups.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// What remains when the graph is built again because the view has changed.
struct lasting_actors {
  handle<solver> the_solver;  ///< or the caller
  handle<caller> the_caller;
  handle<checkpointer> checkpoints;
  std::shared_ptr<overlap_meter> overlap;
  error_memories memories = {};
};

/// Where the actors of a graph find the node and what its actors share.
struct graph_context {
  caf::actor_system& system;
  edge_book& edges;
  trace_log& trace;
  worker_id self{}, leader{};
  bool has_budget = false;  ///< this node's links have a bandwidth budget
  std::shared_ptr<progress> display;
  port<stop_decided> node_stop;
  port<training_done> node_done;
  port<training_failed> node_failed;
  port<goes_on_without> node_goes_on = {};
  port<clocks_held> node_held = {};
  port<training_paused> node_paused = {};
  port<clocks_given_up> node_gave_up = {};
  port<factors_offered> node_offered = {};
  lasting_actors lasting = {};  ///< of the graph before this one; empty at the start
  /// How parameters were cut in the view before; null in the first one.
  std::shared_ptr<const partition> before = {};
  std::function<traffic()> carried = {};  ///< what this node's links have sent and received
  std::uint64_t epoch = 0;                ///< of the view
  std::vector<seat_id> seats = {};        ///< of its members, by worker
  bool comes = false;         ///< this node has joined with the view, as `before` is not null
  bool lacks_values = false;  ///< this node is given the view's first version by others
};

class replica_graph {
 public:
  /// Spawns the actors, and the solver where `context` has none. `parameters` and `run` outlive them.
  replica_graph(const graph_context& context, actor_spawner& spawner, const run_definition& spec,
                const node_spec& node, compiled_run& run, const parameter_graph& parameters);

  /// Tells all actors their neighbours. `links` by worker, empty at self.
  void connect(const std::vector<port<send_frame>>& links);
  /// By group of the parameter graph: the layers of training and test nets that use its parameters.
  [[nodiscard]] std::vector<group_readers> readers() const;
  [[nodiscard]] const handle<solver>& the_solver() const { return solver_; }

 private:
  struct net_actors {
    std::vector<std::vector<handle<layer>>> layers;         // [replica][layer]
    std::vector<std::vector<handle<data_source>>> sources;  // [replica][data layer]
  };
  /// A net that actors are spawned for: the train net, or a test net.
  struct net_place {
    compiled_net& compiled;
    std::int32_t test_net = -1;  ///< -1: the train net
    [[nodiscard]] bool training() const { return test_net < 0; }
  };
  void spawn_solver();
  [[nodiscard]] solver_part part_of_view() const;
  void spawn_streams();
  void spawn_copy_out(std::uint32_t replica, std::shared_ptr<copies_in_flight> copies);
  void spawn_copy_in(std::uint32_t replica);
  net_actors spawn_net(const net_place& n);
  [[nodiscard]] layer_setup layer_setup_of(const net_place& n, std::uint32_t replica,
                                           std::size_t l) const;
  void set_exchange(layer_setup& s, layer_work_setup& w, const net_place& n) const;
  [[nodiscard]] std::function<std::uint64_t(std::uint32_t)> passes_after_of(
      std::uint32_t replica) const;
  void set_outputs(layer_setup& s, layer_work_setup& w, const net_place& n) const;
  [[nodiscard]] data_source_setup source_setup_of(const net_place& n, std::uint32_t replica,
                                                  std::size_t d) const;
  [[nodiscard]] std::function<std::uint64_t(std::uint64_t)> first_samples(
      const net_place& n, std::uint32_t replica) const;
  [[nodiscard]] std::function<void(const pass_id&)> contribution(std::size_t group,
                                                                 std::size_t layer,
                                                                 std::uint32_t replica) const;
  [[nodiscard]] std::function<void(const pass_id&)> pinning(const net_place& n, std::size_t layer,
                                                            std::uint32_t replica) const;
  [[nodiscard]] std::shared_ptr<debug_info> make_debug_info() const;
  [[nodiscard]] std::optional<std::size_t> group_of(std::string_view train_layer) const;
  /// Returns  the layers of a train net where its passes turn back.
  std::vector<port<hold_passes>> connect_net(const compiled_net& c, const net_actors& a,
                                             bool training);
  [[nodiscard]] solver_net solver_view(const compiled_net& n, const net_actors& a) const;
  [[nodiscard]] test_share share_of_test(std::size_t test_net) const;

  graph_context context_;
  actor_spawner& spawner_;
  const run_definition& spec_;
  const node_spec& node_;
  compiled_run& run_;
  const parameter_graph& parameters_;
  std::vector<parameter_group> groups_;  // as parameters_ has them

  handle<solver> solver_;
  std::vector<handle<stream>> streams_;
  std::vector<handle<stream>> copies_in_;     // on an asynchronous device
  std::vector<handle<copy_out>> copies_out_;  // on an asynchronous device
  std::shared_ptr<debug_info> debug_;         // null: the solver does not ask for it
  net_actors train_;
  std::vector<net_actors> tests_;
};

/// Whether a replica can compute a pass before all others have computed the one before.
[[nodiscard]] bool passes_overlap(const run_definition& spec, const compiled_run& run);

}  // namespace poseidon
