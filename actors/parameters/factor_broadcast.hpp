// actors/parameters/factor_broadcast.hpp
//
// The other route: sends the sufficient factors of an inner product's gradient to every node the moment the layer's
// backward pass ends. When the factors of all workers for a clock have arrived, it reconstructs the summed gradient in
// one matrix product, in worker order, applies the solver rule once, and tells the layers. Every node updates its own
// copy of the parameters, so nothing is sent back. Without a rule a version is the mean gradient itself, which the
// programs around the nodes apply; a worker without a gradient in a clock sends factors of no rows. One per node and InnerProduct on that route; on the other
// one a layer has a gradient_push and its parameters a server_shard. The factors lie in a factor_store.
//
// Accepts  connect_factor_broadcast  from node
//          backward_done     from layer, caller  once per replica, clock and micro-batch: its factors are packed
//          factors_landed    from network_link   each frame of another worker's factors has been read to its place
//          chunk_landed      from network_link, node   each of its chunks once: the first values
//          parameters_whole  from solver         only of a side branch (whole_gate.hpp)
//          history_inherited from network_link, node   solver state of a resumed run, or of the view before
//          copy_history      from checkpointer (own node)
//          release_history   from node           the last before shut_down, where routes change
//          shut_down         from node
// Sends    send_frame        to network_link     factors, the same memory to every peer
//          parameters_fresh  to layer            training and test nets, every replica
//          layer_fresh       to solver, caller
//          history_arrived   to checkpointer     its part of a snapshot
//          history_released  to node
// State    solver state; how much of each clock has landed. A peer may be ahead: its clocks wait.
// Fails    more factors of a worker for a clock than there are, or of a clock that has finished: logic error (a peer's
//          frame with such numbers has already ended its link: peer_window.hpp).
// Detached: it computes.
// Source   Xie et al., arXiv:1512.06216, section 5; Zhang et al., USENIX ATC 2017, section 3.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/trace.hpp"
#include "actors/parameters/factor_store.hpp"
#include "actors/parameters/forward_places.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/node_copy.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/whole_gate.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"
#include "models/device/device.hpp"
#include "models/solver/update_choice.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace poseidon {

struct factor_broadcast_setup {
  layer_id layer{};
  std::string_view name;
  worker_id self{};
  std::size_t workers = 1;
  std::size_t passes = 1;  ///< of a clock, on this node
  float scale = 1;         ///< makes a sum of gradients their mean
  ::caffe::SolverParameter solver;
  update_choice update;                          ///< as server_shard_setup has it
  std::shared_ptr<const gradient_source> lent;   ///< says the steps; null: there are none
  std::shared_ptr<const forward_places> places;  ///< null: layers stand at their own numbers
  std::vector<parameter_id> parameters;          ///< the weights and, if it is learned, the bias
  std::vector<parameter_id> frozen;              ///< lr_mult 0: received once
  by_id<parameter_id, net_parameter> of_net;     ///< all parameters of the net, for multipliers
  std::shared_ptr<const host_arithmetic> arithmetic;
  bool of_side_branch = false;
  std::uint64_t staleness = 0;
  bool computes = true;  ///< false: reconstruct_gradient() takes time and makes no values
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<device_updates> updates;  ///< null: the host makes the updates
  std::shared_ptr<factor_store> factors;
  /// The shape of the product over all workers' factors: that of `factors`, unless their bytes are scaled.
  factor_shape product;
  /// Values of solver state that come from the members of the view before; no update is made before.
  std::size_t awaited_state = 0;
  std::uint64_t former_states = 0;  ///< as server_shard_setup's
  std::shared_ptr<overlap_meter> overlap;
  std::vector<trace_lane*> trace;  ///< one for each of the s + 1 clocks that can overlap, or none
};

/// Ports that exist only after all actors have been spawned.
struct connect_factor_broadcast {
  std::vector<port<send_frame>> links;  ///< by worker; empty at `self`
  std::vector<port<parameters_fresh>> layers;
  port<layer_fresh> solver;
  port<history_arrived> checkpointer;
};

class factor_broadcast : public actor<factor_broadcast> {
 public:
  static constexpr const char* type_name = "factor_broadcast";
  using accepts =
      messages<connect_factor_broadcast, backward_done, factors_landed, chunk_landed,
               parameters_whole, history_inherited, copy_history, release_history, shut_down>;
  using sends =
      messages<send_frame, parameters_fresh, layer_fresh, history_arrived, history_released>;

  factor_broadcast(actor_context context, factor_broadcast_setup setup);
  void on(const connect_factor_broadcast& m);
  void on(const backward_done& m);
  void on(const factors_landed& m);
  void on(const chunk_landed& m);
  void on(const parameters_whole& m);
  void on(const history_inherited& m);
  void on(const copy_history& m);
  void on(const release_history& m);
  void on(const shut_down& m);

 private:
  struct clock_state {
    by_id<worker_id, std::size_t> landed;  // values; passes of this node
    std::size_t complete = 0;              // workers whose factors have landed
    std::size_t rows = 0;                  // of all workers, as far as they have landed
    by_id<worker_id, std::optional<step_mark>> steps;
  };
  [[nodiscard]] bool computes() const { return setup_.computes; }
  clock_state& at(clock_id clock);
  void give(clock_id clock);
  void send(clock_id clock);
  void take(clock_id clock, worker_id worker, std::size_t rows);
  [[nodiscard]] bool on_device() const {
    return copy_.history().on_device(setup_.parameters.front());
  }
  void update_if_complete();
  void update_on_device();
  void update_here();
  void compare(clock_id clock, worker_id worker, const step_mark& step);
  void make_mean(bool nothing);
  void step_here();
  void publish(bool nothing);

  factor_broadcast_setup setup_;
  until_end<connect_factor_broadcast> neighbours_{this};
  until_end<std::shared_ptr<device_updates>> updates_{this};  // the setup's
  std::map<std::uint64_t, clock_state> clocks_;
  whole_gate gate_;
  node_copy copy_;
  std::vector<std::vector<float>> gradients_;  // by place in setup_.parameters
  bool entered_ = false;
  std::map<std::uint64_t, std::int64_t> sent_at_ns_;  // by clock under way
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_factor_broadcast)
