// actors/node/training_graph.hpp
//
// Puts actors on a compiled run: one layer actor per layer and replica, streams, a gradient_push per layer
// with parameters (or per group of layers that share some), the shard, the solver, and wires them as the nets say. The links to other nodes are made by `node`, which
// has the connections, and given to connect().
#pragma once
#include "actors/core/trace.hpp"
#include "actors/parameters/checkpointer.hpp"
#include "actors/parameters/factor_broadcast.hpp"
#include "actors/parameters/gradient_push.hpp"
#include "actors/parameters/server_shard.hpp"
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
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// What lives on when the graph is built anew because routes have changed.
struct lasting_actors {
  handle<solver> the_solver;
  handle<checkpointer> checkpoints;
  std::shared_ptr<overlap_meter> overlap;
};

/// Where the actors of the graph find the node and each other's context.
struct graph_context {
  caf::actor_system& system;
  edge_book& edges;
  trace_log& trace;
  worker_id self{};
  bool has_budget = false;  ///< this node's links have a bandwidth budget
  std::shared_ptr<progress> display;
  port<stop_decided> node_stop;
  port<training_done> node_done;
  port<training_failed> node_failed;
  port<clocks_held> node_held = {};
  port<training_paused> node_paused = {};
  lasting_actors lasting = {};            ///< of the graph before this one; empty at the start
  std::function<traffic()> carried = {};  ///< by this node's links
};

class training_graph {
 public:
  /// Spawns everything but links and what lasts. `run` must outlive the actors.
  training_graph(const graph_context& context, const run_definition& spec, const node_spec& node,
                 compiled_run& run);

  /// Tells everybody its neighbours. `links` by worker, empty at self.
  void connect(const std::vector<port<send_frame>>& links);

  /// The port that gathers a chunk: the gradient_push or factor_broadcast of the parameter's group.
  [[nodiscard]] port<chunk_landed> receiver_of(std::size_t parameter) const;
  /// Who keeps a parameter's solver state on this node: the shard, or its factor_broadcast.
  [[nodiscard]] port<history_arrived> history_owner(std::size_t parameter) const;
  /// Empty for a layer that broadcasts none.
  [[nodiscard]] port<factors_landed> broadcast(layer_id layer) const;
  [[nodiscard]] const factor_stores& factors() const { return factors_; }
  [[nodiscard]] const handle<solver>& the_solver() const { return lasting_.the_solver; }
  [[nodiscard]] const handle<server_shard>& shard() const { return shard_; }
  [[nodiscard]] const handle<checkpointer>& checkpoints() const { return lasting_.checkpoints; }
  [[nodiscard]] const lasting_actors& lasting() const { return lasting_; }
  /// Everybody on this node who keeps solver state.
  [[nodiscard]] std::vector<port<release_history>> histories() const;

  /// Everybody, in the order in which they should be told to end; and those of them that do not last.
  [[nodiscard]] const std::vector<port<shut_down>>& all() const { return all_; }
  [[nodiscard]] std::vector<port<shut_down>> passing() const;
  /// Whom this graph has spawned.
  [[nodiscard]] const std::vector<caf::actor>& monitored() const { return monitored_; }

 private:
  struct net_actors {
    std::vector<std::vector<handle<layer>>> layers;         // [replica][layer]
    std::vector<std::vector<handle<data_source>>> sources;  // [replica][data layer]
  };
  /// What exchanges a group's gradient: one of the two.
  struct push_entry {
    parameter_group group;
    handle<gradient_push> push;
    handle<factor_broadcast> broadcast;
    std::shared_ptr<gradient_sum> sum;             ///< with a push
    std::shared_ptr<chunk_magnitudes> magnitudes;  ///< with a push that sends by magnitude
    std::shared_ptr<gradient_encoder> encoder;     ///< with a push that is to send reduced formats
  };
  template <class D, class... Args>
  handle<D> start(thread_kind threads, std::string name, Args&&... args);
  void spawn_streams();
  void spawn_copy_out(std::uint32_t replica, std::shared_ptr<copies_in_flight> home);
  void spawn_copy_in(std::uint32_t replica);
  void spawn_pushes();
  void spawn_push(push_entry& e);
  [[nodiscard]] std::shared_ptr<gradient_encoder> encoder_of(const parameter_group& group) const;
  void spawn_broadcast(push_entry& e);
  net_actors spawn_net(compiled_net& n, std::int32_t test_net);
  [[nodiscard]] bool owns_little() const;
  void spawn_shard();
  void spawn_checkpointer();
  void spawn_solver();
  void connect_net(const compiled_net& n, const net_actors& a, bool training);
  void connect_pushes(const std::vector<port<send_frame>>& links);
  [[nodiscard]] std::vector<port<parameters_fresh>> readers_of(const push_entry& e) const;
  [[nodiscard]] std::function<void(const pass_id&)> contribution(const push_entry& e,
                                                                 std::size_t layer,
                                                                 std::uint32_t replica) const;
  [[nodiscard]] std::function<void(const pass_id&)> pinning(const compiled_net& c,
                                                            std::size_t layer,
                                                            std::uint32_t replica,
                                                            std::int32_t test_net) const;
  [[nodiscard]] bool passes_overlap() const;
  [[nodiscard]] bool by_magnitude() const;
  [[nodiscard]] std::uint32_t passes_that_count() const;
  [[nodiscard]] factor_rows factor_rows_of(std::size_t layer) const;
  [[nodiscard]] float scale() const;
  [[nodiscard]] std::shared_ptr<debug_info> debug_of(const compiled_net& train) const;
  [[nodiscard]] const push_entry* push_of(std::string_view train_layer) const;
  [[nodiscard]] solver_net solver_view(const compiled_net& n, const net_actors& a) const;
  [[nodiscard]] std::vector<trace_lane*> lanes_of_clocks(const std::string& name);
  [[nodiscard]] trace_lane* lane(std::string name) { return context_.trace.lane(std::move(name)); }

  graph_context context_;
  const run_definition& spec_;
  const node_spec& node_;
  compiled_run& run_;

  lasting_actors lasting_;
  handle<server_shard> shard_;
  std::vector<handle<stream>> streams_;
  std::vector<handle<stream>> copies_in_;     // on a device that goes on by itself
  std::vector<handle<copy_out>> copies_out_;  // likewise
  std::vector<push_entry> pushes_;
  std::vector<std::size_t> push_of_parameter_;
  factor_stores factors_;
  net_actors train_;
  std::vector<net_actors> tests_;
  std::vector<port<shut_down>> all_;
  std::vector<caf::actor> monitored_;
};

}  // namespace poseidon
