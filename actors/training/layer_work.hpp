// actors/training/layer_work.hpp
//
// The work of one layer of one replica: its kernel, and what belongs right before and after it. The layer actor decides
// when each work is issued. On a synchronous device the results of a work are on the host when it has run; on an
// asynchronous one the work carries the copy that brings them there.
#pragma once
#include "actors/training/work.hpp"
#include "models/device/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace poseidon {

/// Which layer of the run this is.
struct layer_place {
  replica_id replica{};
  std::size_t index = 0;       ///< in its net
  std::string_view name;       ///< lives as long as the run
  std::int32_t test_net = -1;  ///< -1: the train net

  [[nodiscard]] bool training() const { return test_net < 0; }
};

/// Values of net outputs among a layer's tops.
struct top_values {
  std::function<std::vector<float>()> read;  ///< after the forward kernel; empty: no net outputs
  /// On an asynchronous device: computes what read() returns from the values of `blobs`, which replica::fetch() copies.
  std::function<std::vector<float>(const std::vector<std::vector<float>>&)> compute;
  std::vector<std::size_t> blobs;
};

struct layer_work_setup {
  layer_place place;
  std::shared_ptr<replica> compiled;  ///< keeps `compute` alive
  kernel* compute = nullptr;
  std::uint64_t seed = 0;
  /// With outer steps, in training nets: the iterations of a clock, and the passes of one. Kernels hear of iterations.
  std::uint64_t iterations = 1;
  std::uint32_t passes_per_iteration = 0;  ///< 0: a clock is one iteration
  /// For pass::passes_after, by micro-batch; empty in test nets.
  std::function<std::uint64_t(std::uint32_t)> passes_after;
  /// Data layers: where the batch stays that kernels read, until the next one is fed; null in other layers. Only the
  /// stream writes it, and it outlives the stream, which may have kernels to run when the layer has ended.
  std::shared_ptr<const batch>* fed = nullptr;
  bool runs_backward = false;  ///< in training passes
  /// Run in the stream right before forward(): the pass computes with the newest parameters. Empty where those
  /// cannot change during a pass.
  std::function<void(const pass_id&)> pin;
  /// Run when a gradient of this layer is on the host: adds it to the node's, or packs its factors. Empty
  /// without learned parameters and in test nets.
  std::function<void(const pass_id&)> contribute;
  /// debug_info: run after each kernel of a training pass. May be empty.
  std::function<void(const pass_id&, bool backward)> inspect;
  top_values outputs;
  /// In the trace: what an asynchronous device does with the gradient.
  span_phase copy_phase = span_phase::copy_to_host;
};

class layer_work {
 public:
  virtual ~layer_work() = default;

  /// Data layers compute with `input`, which this takes.
  [[nodiscard]] virtual issue_work forward(const pass_id& p,
                                           std::shared_ptr<const batch> input) = 0;
  /// `contributes`: the gradient leaves the layer with this pass. A layer that no loss reaches then contributes the
  /// zeros that its gradient is.
  /// Returns  nothing where there is nothing to compute and nothing to contribute, as in test passes.
  [[nodiscard]] std::optional<issue_work> backward(const pass_id& p, bool contributes);
  /// Has fresh parameters copied to an asynchronous device.
  [[nodiscard]] issue_work copy_parameters() const;

  [[nodiscard]] const layer_place& place() const { return setup_.place; }

 protected:
  explicit layer_work(layer_work_setup setup);
  [[nodiscard]] virtual issue_work training_backward(const pass_id& p, bool contributes) = 0;

  [[nodiscard]] issue_work labelled(const pass_id& p, bool backward) const;
  [[nodiscard]] pass issued_now(const pass_id& p) const;
  [[nodiscard]] std::function<void()> forward_kernel(const pass_id& p,
                                                     std::shared_ptr<const batch> input) const;
  /// Has `inspect` look after work.run().
  void inspect(issue_work& work) const;

  const layer_work_setup setup_;
};

/// The work of a layer on a device of this kind (device::is_asynchronous()).
[[nodiscard]] std::unique_ptr<layer_work> make_layer_work(layer_work_setup setup,
                                                          bool is_asynchronous);

}  // namespace poseidon
