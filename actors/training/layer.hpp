// actors/training/layer.hpp
//
// One layer of one replica. Forward: waits for its bottoms and, if it has parameters, until they are fresh
// enough; issues its kernel to the stream; tells its consumers immediately (the stream keeps the order, so no layer
// waits for the device). Backward: the same in reverse, in training and test passes alike; in a test pass
// the tokens run back without kernels. That message chain is the whole schedule: there is no barrier
// between iterations, so layer 0 of clock c+1 runs while the last layer's parameters of clock c travel.
//
//   idle --all bottoms arrived--> waiting --parameters at pass.clock - staleness--> forward issued
//        --all diffs of tops arrived (sinks: immediately)--> [gradient of the pass before released] --> idle
//
// Accepts  connect_layer     from node           once, before the first pass
//          batch_ready       from data_source    data layers: their only "bottom"
//          bottom_ready      from layer          once per bottom and pass
//          top_diff_ready    from layer          once per consumed top and pass
//          work_done         from stream, copy_out   for work that carries a reply port
//          parameters_fresh  from gradient_push or factor_broadcast   versions rising by one
//          gradient_taken    from gradient_push  only where several replicas have several passes under way
//          hold_passes       from solver         where passes turn back: sinks, and layers with net outputs
//          shut_down         from node
// Sends    issue_work        to stream, and to the stream copy_in of an asynchronous device
//          bottom_ready      to the consumers of its tops
//          top_diff_ready    to the producers of its bottoms
//          backward_done     to gradient_push or factor_broadcast   its gradient of a pass is complete
//          outputs_ready     to solver           values of net outputs among its tops
//          pass_issued       to solver           data layers: the token has come back
//          passes_held       to solver
// State    the one pass it is in, what that pass still misses, the newest parameter version; passes that it holds back.
// Fails    a message of another pass than the one it is in: logic error, ends the actor with both.
// Source   Zhang et al., arXiv:1512.06216, section 4 (wait-free backpropagation).
#pragma once
#include "actors/core/actor.hpp"
#include "actors/training/layer_work.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace poseidon {

/// The neighbours of a layer: ports exist only after all layers have been spawned.
struct connect_layer {
  std::vector<port<bottom_ready>> consumers;    ///< one per consumed top
  std::vector<port<top_diff_ready>> producers;  ///< one per bottom
  port<backward_done> push;     ///< empty without learned parameters and in test nets
  port<passes_held> held = {};  ///< where passes of the train net turn back; else empty
};

/// Which version of its parameters a pass waits for.
enum class parameter_wait { none, any, of_its_clock };

/// When the next backward pass may overwrite the gradient of the one before: immediately where the stream has
/// contributed it, on an asynchronous device when it has been copied, and where several replicas share a sum while
/// several passes are under way, when gradient_push has summed it.
enum class gradient_reuse { immediately, when_copied, when_summed };

struct layer_gradient {
  gradient_reuse reuse = gradient_reuse::immediately;
  /// Passes of a clock whose gradients the device adds: only the last one contributes.
  std::uint32_t passes_added = 1;
};

struct layer_setup {
  std::shared_ptr<layer_work> work;
  bool is_source = false;  ///< a data layer
  parameter_wait waits_for = parameter_wait::none;
  std::uint64_t staleness = 0;  ///< clocks that of_its_clock may lag; 0 in test nets
  /// With outer steps, in training nets: passes between two of this node's own updates, for which of_its_clock waits, too. 0: there
  /// are none.
  std::uint32_t passes_per_update = 0;
  std::optional<layer_gradient> gradient;  ///< training nets: of learned parameters
  std::uint32_t first_output = 0;          ///< place in the net's outputs of its first
  port<issue_work> stream;
  port<issue_work> copy_in;  ///< for fresh parameters; empty where forward() finds them itself
  port<outputs_ready> outputs;
  port<pass_issued> issued;
};

class layer : public actor<layer> {
 public:
  static constexpr const char* type_name = "layer";
  using accepts = messages<connect_layer, batch_ready, bottom_ready, top_diff_ready, work_done,
                           parameters_fresh, gradient_taken, hold_passes, shut_down>;
  using sends = messages<issue_work, bottom_ready, top_diff_ready, backward_done, outputs_ready,
                         pass_issued, passes_held>;

  layer(actor_context context, layer_setup setup);
  void on(const connect_layer& m);
  void on(const batch_ready& m);
  void on(const bottom_ready& m);
  void on(const top_diff_ready& m);
  void on(const work_done& m);
  void on(const parameters_fresh& m);
  void on(const gradient_taken& m);
  void on(const hold_passes& m);
  void on(const shut_down& m);

 private:
  void enter(const pass_id& p);
  void forward_if_ready();
  void backward_if_ready();
  [[nodiscard]] bool parameters_fresh_enough() const;
  [[nodiscard]] bool has_begun(clock_id clock) const;
  [[nodiscard]] bool is_held() const;
  void issue_backward();
  void release_gradient(gradient_reuse because);

  until_end<layer_setup> setup_{this};
  until_end<connect_layer> neighbours_{this};

  pass_id pass_;  // the pass it is in
  std::size_t bottoms_here_ = 0;
  std::size_t top_diffs_here_ = 0;
  bool forward_issued_ = false;
  std::int64_t waits_since_ns_ = 0;  // only fresh parameters are missing
  std::shared_ptr<const batch> batch_;
  std::optional<parameters_fresh> fresh_;  // the newest
  std::size_t gradients_in_use_ = 0;       // contributed and not yet released
  std::optional<clock_id> begun_;          // where passes turn back: of the newest one
  std::optional<clock_id> held_from_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_layer)
