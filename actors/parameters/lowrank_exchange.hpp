// actors/parameters/lowrank_exchange.hpp
//
// The third route: sends a layer's gradient as the product of two thin matrices (models/device/lowrank.hpp). When this node's gradient of a
// clock is complete, what the error memory holds is added to it, and P = M Q goes to the worker that owns the layer's sums. The owner adds all
// workers' P in worker order, makes the columns orthogonal once, and sends the bytes to all; with these each node makes Q = Mt P, whose sum comes
// back in the same way. Every node then has the same P and Q, makes the gradient from them, applies the solver's rule to its own copy of
// the parameters, and tells the layers. The layer's other parameters, such as a bias, go beside P as they are. Where P and Q are rounded, all,
// the owner too, go on with what the bytes say; what is lost of a sum of Q is in the owner's error memory. Without a rule a version is the
// mean gradient itself, which the programs around the nodes apply; a program may have no gradient in a clock, so the number of those that have
// one goes beside P, too, and where nobody has one the error memories wait. One per node and layer on that route. Nothing waits for another
// layer, so one layer's P travels while another one's Q does; a layer's clocks go one after the other.
//
//            all gradients of the clock, P out           P of the owner, Q out
//   waiting ----------------------------------> first ---------------------> second --- Q of the owner: update ---> waiting
//   On the owner's node the same actor adds up: when all workers' parts of a step are there, it sends what it makes of them.
//
// Accepts  connect_lowrank_exchange  from node
//          backward_done     from layer, caller  once per replica, clock and micro-batch
//          lowrank_landed    from network_link   parts of the other workers (on the owner), or the owner's
//          chunk_landed      from network_link, node   each of its chunks once: the first values
//          parameters_whole  from solver         only of a side branch (whole_gate.hpp)
//          history_inherited from network_link, node   solver state of a resumed run, or of the view before
//          copy_history      from checkpointer (own node)
//          release_history   from node           the last before shut_down, where routes change
//          shut_down         from node
// Sends    send_frame        to network_link     the part to the owner; from the owner the same memory to every peer
//          gradient_taken    to layer            only where several replicas have several passes under way
//          parameters_fresh  to layer            training and test nets, every replica
//          layer_fresh       to solver, caller
//          history_arrived   to checkpointer     its part of a snapshot
//          history_released  to node
// State    solver state; Q, which begins anew in each view; the clock under way. The error memory is the node's.
// Fails    a part twice, or one of another step: logic error (a peer's frame out of turn has already ended its link: peer_window.hpp).
// Source   Vogels, Karimireddy & Jaggi, NeurIPS 2019 (PowerSGD).
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/trace.hpp"
#include "actors/parameters/error_memory.hpp"
#include "actors/parameters/forward_places.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/lowrank_turns.hpp"
#include "actors/parameters/node_copy.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/whole_gate.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "models/caffe.hpp"
#include "models/device/host_arithmetic.hpp"
#include "models/device/lowrank.hpp"
#include "models/solver/update_choice.hpp"

#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace poseidon {

struct lowrank_exchange_setup {
  layer_id layer{};
  std::string_view name;
  worker_id self{};
  std::size_t workers = 1;
  std::uint64_t seed = 0;         ///< of the run: Q begins with numbers drawn by it
  std::size_t contributions = 1;  ///< as gradient_push_setup's
  std::uint32_t micro_batches = 1;
  bool tells_taken = false;
  bool of_side_branch = false;
  std::uint64_t staleness = 0;
  float scale = 1;  ///< makes a sum of gradients their mean
  ::caffe::SolverParameter solver;
  update_choice update;                  ///< a solver's rule, or the mean, which a program wants
  lowrank_shape shape;                   ///< of the first of `parameters`
  bool rounded = false;                  ///< P and Q travel as bfloat16
  std::vector<parameter_id> parameters;  ///< the weights, then what is learned beside them
  std::vector<parameter_id> frozen;      ///< lr_mult 0: received once
  by_id<parameter_id, net_parameter> of_net;        ///< all parameters of the net, for multipliers
  std::shared_ptr<const gradient_source> gradient;  ///< its parts: those of `parameters`
  std::shared_ptr<const forward_places> places;     ///< null: layers stand at their own numbers
  std::shared_ptr<const host_arithmetic> arithmetic;
  /// It has a thread of its own, which has to enter the arithmetic. All nodes have the same.
  bool own_thread = false;
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<lowrank_turns> turns;
  std::shared_ptr<error_memory> memory;
  /// Values of solver state that come from the members of the view before; no update is made before.
  std::size_t awaited_state = 0;
  std::uint64_t former_states = 0;  ///< as server_shard_setup's
  std::shared_ptr<overlap_meter> overlap;
  std::vector<trace_lane*> trace;  ///< one for each of the s + 1 clocks that can overlap, or none
};

/// Ports that exist only after all actors have been spawned.
struct connect_lowrank_exchange {
  std::vector<port<send_frame>> links;  ///< by worker; empty at `self`
  std::vector<port<parameters_fresh>> layers;
  std::vector<port<gradient_taken>> layers_taken;
  port<layer_fresh> solver;
  port<history_arrived> checkpointer;
};

class lowrank_exchange : public actor<lowrank_exchange> {
 public:
  static constexpr const char* type_name = "lowrank_exchange";
  using accepts =
      messages<connect_lowrank_exchange, backward_done, lowrank_landed, chunk_landed,
               parameters_whole, history_inherited, copy_history, release_history, shut_down>;
  using sends = messages<send_frame, gradient_taken, parameters_fresh, layer_fresh, history_arrived,
                         history_released>;

  lowrank_exchange(actor_context context, lowrank_exchange_setup setup);
  void on(const connect_lowrank_exchange& m);
  void on(const backward_done& m);
  void on(const lowrank_landed& m);
  void on(const chunk_landed& m);
  void on(const parameters_whole& m);
  void on(const history_inherited& m);
  void on(const copy_history& m);
  void on(const release_history& m);
  void on(const shut_down& m);

 private:
  enum class step : std::uint8_t { waiting, first, second };

  [[nodiscard]] bool owns() const { return setup_.turns->owner == setup_.self; }
  void complete(clock_id clock);
  void begin_if_possible();
  [[nodiscard]] std::size_t rounded_values() const;
  [[nodiscard]] payload packed(std::vector<float> values) const;
  [[nodiscard]] payload unpacked(const payload& part) const;
  void give(const payload& part);
  void take_part(worker_id from, payload values);
  void add_up();
  void keep_what_rounding_takes(std::span<const float> sum, std::span<const float> sent);
  void take_sum(const payload& sum);
  void take_p(const payload& sum);
  void take_q(const payload& sum);
  [[nodiscard]] bool of_program() const { return setup_.update.is_mean(); }
  void make_mean(const payload& sum);
  void publish(bool nothing);
  void send(worker_id to, const payload& values);

  lowrank_exchange_setup setup_;
  until_end<connect_lowrank_exchange> neighbours_{this};
  whole_gate gate_;
  node_copy copy_;
  bool entered_ = false;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> done_;  // by clock, micro-batch
  std::set<std::uint64_t> ready_;                                        // clocks to be exchanged
  step step_ = step::waiting;
  std::vector<float> q_;             // what the next P is made with
  payload p_;                        // of the owner, once it has come
  bool nothing_ = false;             // with it: no program had a gradient
  by_id<worker_id, payload> parts_;  // on the owner: of the step under way
  std::size_t parts_there_ = 0;
  std::vector<std::vector<float>> gradients_;  // summed, by place in setup_.parameters
  std::int64_t sent_at_ns_ = 0;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_lowrank_exchange)
