// actors/parameters/server_shard.hpp
//
// Owns the solver state of chunks of the parameters, whose values lie in the parameter store. When a chunk has the
// gradients of all workers for its clock, it adds them in worker order, applies the solver rule once and sends the fresh
// chunk to all nodes; to those that keep a copy of its solver state it sends the sum instead, of which they make the same values
// (state_keeper.hpp). The parameter server of the paper, cut by size over all nodes. With clip_gradients a clock's
// summed chunks wait until the squares of every shard are known (gradient_clip.hpp).
//
// Where --wire reduces a chunk's format, gradients arrive rounded, and the shard sends the rounded difference between
// its exact values and those that all nodes have: error feedback in both directions. Where a version is the mean of programs' gradients
// and these have come rounded, the mean goes back in their format, and nothing of it is kept.
//
// In a single-worker run on a GPU the device makes updates: gradients come without values, the shard issues the update,
// and solver state is copied to the host only when it is read.
//
// Accepts  gradient_arrived  from gradient_push (own node), network_link (others): once per chunk, worker, clock
//          install_chunk     from gradient_push   the chunk's first values are in the parameter store
//          history_inherited from network_link, node   solver state of a resumed run, or of the view before
//          squares_arrived   from network_link    with clip_gradients: once per other shard and clock
//          copy_history      from checkpointer (own node)
//          release_history   from node            the last before shut_down, where routes change
//          control_passed    from node            gather_history of another node's checkpointer
//          shut_down         from node
// Sends    send_frame        to network_link      fresh_parameters; summed_gradient; history; gradient_squares
//          chunk_fresh       to gradient_push     the own node's copy is in the parameter store
//          history_arrived   to checkpointer      the own node's part of a snapshot
//          history_released  to node
// State    per chunk: version, solver state, gradients that wait for the others, exact values of a reduced one;
//          with clip_gradients also the sum that waits for the norm.
// Fails    workers whose programs step otherwise, with another learning rate for example: one line with both values.
//          A second gradient of one worker for one clock: logic error (a peer's frame with such numbers has
//          already ended its link: peer_window.hpp).
// Detached: it computes.
// Source   Li et al., OSDI 2014; worker order: the reason why N nodes equal one, bit for bit.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "actors/parameters/forward_places.hpp"
#include "actors/parameters/gradient_clip.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/solver_history.hpp"
#include "actors/parameters/worker_gradients.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "models/caffe.hpp"
#include "models/device/device.hpp"
#include "models/solver/update_choice.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace poseidon {

struct server_shard_setup {
  worker_id self{};
  std::size_t workers = 1;
  std::uint32_t replicas = 1;       ///< per node; for the norm of clip_gradients
  float scale = 1;                  ///< makes a sum of gradients their mean
  std::uint64_t passes = 1;         ///< micro-batches of a clock, over all workers
  ::caffe::SolverParameter solver;  ///< for the learning rate
  /// Of a program's optimizer this shard makes the steps. The mean: a version is the mean gradient of the clock before.
  update_choice update;
  by_id<parameter_id, std::shared_ptr<const gradient_source>> lent;  ///< say the steps
  /// By parameter, then array of state: what the optimizer has from before the run; null, or fewer: zeros. Read at once.
  by_id<parameter_id, std::vector<const float*>> first_state;
  by_id<parameter_id, net_parameter> parameters;  ///< for multipliers
  by_id<parameter_id, bool> learned;
  by_id<parameter_id, layer_id> first_uses;      ///< the first layer that reads it
  std::shared_ptr<const forward_places> places;  ///< null: layers stand at their own numbers
  bool by_magnitude = false;  ///< chunks go in magnitude_order() instead of forward_order()
  std::shared_ptr<const host_arithmetic> arithmetic;
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<device_updates> updates;      ///< null: the host makes all updates
  by_id<parameter_id, std::string_view> names;  ///< for the trace
  /// Values of solver state that come from those that kept it in the view before: no chunk is updated before its own are there.
  by_id<chunk_id, std::size_t> awaited_state;  ///< by chunk; empty: none
  std::uint64_t former_states = 0;             ///< versions of solver state kept besides the newest
  trace_lane* trace = nullptr;
};

/// Ports that exist only after all actors have been spawned.
struct connect_shard {
  std::vector<port<send_frame>> links;            ///< by worker; empty at self
  by_id<parameter_id, port<chunk_fresh>> gather;  ///< its gradient_push
  port<history_arrived> checkpointer;
};

class server_shard : public actor<server_shard> {
 public:
  static constexpr const char* type_name = "server_shard";
  using accepts =
      messages<connect_shard, gradient_arrived, install_chunk, squares_arrived, history_inherited,
               copy_history, release_history, control_passed, shut_down>;
  using sends = messages<send_frame, chunk_fresh, history_arrived, history_released>;

  server_shard(actor_context context, server_shard_setup setup);
  void on(const connect_shard& m);
  void on(const gradient_arrived& m);
  void on(const install_chunk& m);
  void on(const squares_arrived& m);
  void on(const history_inherited& m);
  void on(const copy_history& m);
  void on(const release_history& m);
  void on(const control_passed& m);
  void on(const shut_down& m);

 private:
  struct owned {
    bool installed = false;
    std::uint64_t version = 0;
    /// With a reduced format: the values that the rule updates. Those that all nodes compute with, this one included,
    /// follow them in rounded steps, and the rounding error of a step is part of the next one.
    std::vector<float> exact;
    worker_gradients waiting;
    std::optional<payload> held;  // the sum that waits for the norm
  };

  owned& at(chunk_id id);
  void begin_with_state(chunk_id id);
  void start_clipping();
  void apply_if_complete(chunk_id id);
  [[nodiscard]] payload sum(chunk_id id, const worker_gradients::of_clock& gradients);
  void hold(owned& o, payload sum);
  void apply_held();
  void apply(chunk_id id, owned& o, const payload& sum, float factor,
             wire_format wire = wire_format::float32);
  void apply_nothing(chunk_id id, owned& o);
  void apply_on_device(chunk_id id, owned& o);
  payload land_rounded(chunk_id id, const owned& o);
  payload rounded(wire_format format, std::span<float> mean);
  void broadcast(chunk_id id, const owned& o, const payload& fresh, std::uint64_t priority,
                 wire_format format, const send_frame* kept = nullptr);
  [[nodiscard]] std::uint64_t priority_of(chunk_id id, const owned& o) const;
  [[nodiscard]] version_id history_version(chunk_id id, version_id wanted) const;
  void give_history(const std::optional<worker_id>& to, version_id wanted);
  void give_history_if_complete();

  server_shard_setup setup_;
  until_end<connect_shard> neighbours_{this};
  until_end<std::shared_ptr<device_updates>> updates_{this};  // the setup's
  std::map<chunk_id, owned> chunks_;
  solver_history history_;
  /// For snapshots: who wants it (nobody: the own checkpointer), of which version. They wait until state of the view before has come.
  std::vector<std::pair<std::optional<worker_id>, version_id>> history_wanted_;
  std::vector<float> scratch_;         // for sums of gradients
  buffer_pool pool_;                   // for what is sent in a reduced format, or to keepers
  std::optional<gradient_clip> clip_;  // with clip_gradients
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_shard)
