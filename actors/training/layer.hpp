// actors/training/layer.hpp
//
// One layer of one replica. Forward: waits for its bottoms and, if it has parameters, for them to be fresh
// enough; issues its kernel to the stream; tells its consumers at once (the stream keeps the order, nobody
// waits for the device). Backward: the same in reverse, in training and test passes alike; in a test pass
// the tokens run back without kernels. That message chain is the whole schedule: there is no barrier
// between iterations, so layer 0 of clock c+1 runs while the last layer's parameters of clock c travel.
//
//   idle --all bottoms here--> waiting --parameters at pass.clock - staleness--> forward issued
//        --all tops' diffs here (sinks: at once)--> [gradient of the micro-batch before taken] --> idle
//
// Accepts  connect_layer     from node           once, before the first pass
//          batch_ready       from data_source    data layers: their only "bottom"
//          bottom_ready      from layer          once per bottom and pass
//          top_diff_ready    from layer          once per consumed top and pass
//          work_done         from stream, copy_out   for what it asked to be told
//          parameters_fresh  from gradient_push or factor_broadcast   versions rising by one
//          gradient_taken    from gradient_push  only where several replicas have several passes under way
//          shut_down         from node
// Sends    issue_work        to stream, and to the stream copy_in where the device goes on by itself
//          bottom_ready      to the consumers of its tops
//          top_diff_ready    to the producers of its bottoms
//          backward_done     to gradient_push or factor_broadcast   its gradient of a pass is complete
//          outputs_ready     to solver           values of net outputs among its tops
//          pass_issued       to solver           data layers: the token has come back
// State    the one pass it is in, what that pass still misses, the newest parameter version.
// Fails    a message of another pass than the one it is in: logic error, ends the actor with both.
// Source   Zhang et al., arXiv:1512.06216, section 4 (wait-free backpropagation).
#pragma once
#include "actors/core/actor.hpp"
#include "messages/training.hpp"
#include "models/device/device.hpp"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace poseidon {

/// The neighbours of a layer: ports exist only after all layers have been spawned.
struct connect_layer {
  std::vector<port<bottom_ready>> consumers;    ///< one per consumed top
  std::vector<port<top_diff_ready>> producers;  ///< one per bottom
  port<backward_done> push;  ///< empty without learned parameters and in test nets
};

struct layer_setup {
  replica_id in_replica{};
  std::string_view name;              ///< lives as long as the run
  std::shared_ptr<replica> compiled;  ///< keeps `compute` alive
  kernel* compute = nullptr;
  std::uint64_t seed = 0;
  /// For pass::passes_after, by micro-batch; empty in test nets.
  std::function<std::uint64_t(std::uint32_t)> passes_after;
  bool training = true;
  std::int32_t test_net = -1;  ///< which one, if not training
  bool is_source = false;      ///< a data layer
  /// Data layers: where the batch stays that kernels read, until the next one is fed. Only the stream writes it,
  /// and it outlives the stream, which may still have kernels to run when this actor has ended.
  std::shared_ptr<const batch>* fed = nullptr;
  bool runs_backward = false;
  bool has_parameters = false;   ///< waits for their first values ...
  bool learns = false;           ///< ... and then for every clock's
  std::uint64_t staleness = 0;   ///< so many clocks older than the pass they may be; 0 in test nets
  bool waits_for_taken = false;  ///< several replicas, with several passes, share gradient memory
  /// Run in the stream right before forward(): the pass computes with the newest parameters. Empty where those
  /// cannot change during a pass.
  std::function<void(const pass_id&)> pin;
  /// Run in the stream right after backward(): adds the gradient to the node's, or packs its factors. Empty
  /// without learned parameters and in test nets.
  std::function<void(const pass_id&)> contribute;
  /// Passes of a clock whose gradients the device adds before they leave it: only the last one's backward contributes.
  std::uint32_t passes_added = 1;
  /// debug_info: run in the stream after each kernel of a training pass. Empty: nobody looks.
  std::function<void(const pass_id&, bool backward)> inspect;
  /// Empty unless tops are net outputs: reads them now ...
  std::function<std::vector<float>()> read_outputs;
  /// ... or makes them of what replica::fetch() of `output_blobs` brings, on a device that goes on by itself.
  std::function<std::vector<float>(const std::vector<std::vector<float>>&)> make_outputs;
  std::vector<std::size_t> output_blobs;
  std::uint32_t first_output = 0;
  bool is_asynchronous =
      false;  ///< the device does, by itself; what then becomes of gradients, for the trace:
  std::string_view home_phase = "bring home";
  std::size_t in_net = 0;  ///< its place there
  port<issue_work> stream;
  port<issue_work>
      copy_in;  ///< told when parameters are fresh; empty where forward() finds them itself
  port<outputs_ready> outputs;
  port<pass_issued> issued;
};

class layer : public actor<layer> {
 public:
  static constexpr const char* type_name = "layer";
  using accepts = messages<connect_layer, batch_ready, bottom_ready, top_diff_ready, work_done,
                           parameters_fresh, gradient_taken, shut_down>;
  using sends =
      messages<issue_work, bottom_ready, top_diff_ready, backward_done, outputs_ready, pass_issued>;

  layer(actor_context context, layer_setup setup);
  void on(const connect_layer& m);
  void on(const batch_ready& m);
  void on(const bottom_ready& m);
  void on(const top_diff_ready& m);
  void on(const work_done& m);
  void on(const parameters_fresh& m);
  void on(const gradient_taken& m);
  void on(const shut_down& m);

 private:
  void enter(const pass_id& p);
  void issue(issue_work work);
  void bring_outputs(issue_work& work) const;
  void bring_gradient(issue_work& work) const;
  void forward_if_ready();
  void backward_if_ready();
  [[nodiscard]] bool gradient_memory_free() const;
  [[nodiscard]] pass compute_pass() const;  // issued now

  layer_setup setup_;
  connect_layer neighbours_;

  pass_id pass_;  // the pass it is in
  std::size_t bottoms_here_ = 0;
  std::size_t top_diffs_here_ = 0;
  bool forward_issued_ = false;
  std::int64_t waits_since_ns_ = 0;  // only fresh parameters are missing
  std::shared_ptr<const batch> batch_;
  version_id fresh_{};
  bool any_version_ = false;
  std::uint64_t passes_pushed_ = 0, passes_taken_ = 0, passes_home_ = 0;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_layer)
