// actors/parameters/gradient_push.hpp
//
// Sends one layer's gradient away the moment its backward pass ends on every local replica, so that the
// layer below computes meanwhile: the wait-free half of DWBP; then collects the fresh chunks that come back
// and tells the layers. One per node and layer with parameters, or per group of layers that share some.
// (The paper's syncer.)
//
// Accepts  connect_gradient_push  from node
//          backward_done     from layer          once per writing layer, replica, clock and micro-batch
//          chunk_fresh, chunk_landed   from server_shard, state_keeper; from network_link   each of its chunks once per version
//          parameters_whole  from solver         only of a side branch (whole_gate.hpp)
//          shut_down         from node
// Sends    gradient_arrived  to the own shard    chunks that it owns
//          send_frame        to network_link     the others, as push_gradient; the bytes are not copied
//          parameters_fresh  to layer            training and test nets, every replica; with outer steps also after each of
//                            this node's own updates
//          gradient_taken    to layer            only where several replicas have several passes under way
//          install_chunk     to the own shard    once, when the first values have arrived
//          layer_fresh       to solver
// State    contributions of the passes in work; chunks landed of the oldest version in work, and of later ones that
//          were faster.
// Fails    a chunk twice in one version: logic error. A silent peer is network_link's to notice.
// Source   Zhang et al., arXiv:1512.06216, section 4; priorities: Jayarajan et al., MLSys 2019 (P3).
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/trace.hpp"
#include "actors/parameters/chunk_magnitudes.hpp"
#include "actors/parameters/forward_places.hpp"
#include "actors/parameters/gradient_encoder.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/parameters/whole_gate.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"
#include "messages/wire/buffer_pool.hpp"

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace poseidon {

struct gradient_push_setup {
  layer_id layer{};  ///< the first of the group
  std::string_view name;
  worker_id self{};
  std::size_t contributions = 1;  ///< per pass: layers that write the gradient times replicas
  std::uint32_t micro_batches = 1;
  /// With outer steps: passes between two updates of this node's own. 0: it makes none.
  std::uint32_t passes_per_update = 0;
  bool tells_taken = false;
  bool of_side_branch = false;
  std::uint64_t staleness = 0;
  std::vector<parameter_id> parameters;  ///< learned ones, in the order of `gradient`'s parts
  std::vector<parameter_id> frozen;      ///< lr_mult 0: received once, never pushed
  std::shared_ptr<const gradient_source> gradient;
  std::shared_ptr<const forward_places> places;        ///< null: its own number
  std::shared_ptr<const chunk_magnitudes> magnitudes;  ///< null: chunks go in forward order
  std::shared_ptr<gradient_encoder> encoder;           ///< null: the view reduces none of the parts
  bool of_program = false;                             ///< the gradient: nobody has encoded it
  std::shared_ptr<parameter_store> store;
  std::shared_ptr<overlap_meter> overlap;
  std::vector<trace_lane*> trace;  ///< one for each of the s + 1 clocks that can overlap, or none
};

/// Ports that exist only after all actors have been spawned.
struct connect_gradient_push {
  std::vector<port<send_frame>> links;  ///< by worker; empty at `self`
  port<gradient_arrived> own_shard;
  port<install_chunk> own_shard_install;
  std::vector<port<parameters_fresh>> layers;
  std::vector<port<gradient_taken>> layers_taken;
  port<layer_fresh> solver;
};

class gradient_push : public actor<gradient_push> {
 public:
  static constexpr const char* type_name = "gradient_push";
  using accepts = messages<connect_gradient_push, backward_done, chunk_fresh, chunk_landed,
                           parameters_whole, shut_down>;
  using sends = messages<gradient_arrived, send_frame, parameters_fresh, gradient_taken,
                         install_chunk, layer_fresh>;

  gradient_push(actor_context context, gradient_push_setup setup);
  void on(const connect_gradient_push& m);
  void on(const backward_done& m);
  void on(const chunk_fresh& m) { landed(value(m.version), m.nothing); }
  void on(const chunk_landed& m) { landed(value(m.version), m.nothing); }
  void on(const parameters_whole& m);
  void on(const shut_down& m);

 private:
  void push(clock_id clock);
  void tell_layers(const parameters_fresh& m);
  [[nodiscard]] payload whole(clock_id clock, std::size_t i);
  [[nodiscard]] payload rounded(wire_format format, const payload& values);
  /// A chunk of this version is in the parameter store. `nothing`: as in chunk_landed.
  void landed(std::uint64_t version, bool nothing);
  void publish(std::uint64_t version, bool nothing);
  [[nodiscard]] std::uint64_t priority(clock_id clock, std::size_t i, std::size_t j) const;

  gradient_push_setup setup_;
  until_end<connect_gradient_push> neighbours_{this};
  whole_gate gate_;
  buffer_pool pool_;  // for a program's gradients that are rounded
  std::size_t learned_chunks_ = 0, frozen_chunks_ = 0;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> done_;  // by clock, micro-batch
  bool installed_ = false;
  std::map<std::uint64_t, std::size_t> landed_;         // by version
  std::map<std::uint64_t, std::int64_t> pushed_at_ns_;  // by clock under way
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_gradient_push)
