// cpu/layer.hpp
//
// What the layers of one replica share: the blobs in the layouts that the compile step chose, the
// way to parameters and gradients, and the scratch memory. A layer is one `kernel`, made from a
// layer_context.
#pragma once
#include "cpu/blob.hpp"
#include "cpu/cpu_math.hpp"
#include "cpu/dnnl_run.hpp"
#include "cpu/gradient_slot.hpp"
#include "models/device/replica_base.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon::cpu {

/// A convolution followed by max pooling shares the pooling's choice of maxima, see
/// sparse_convolution.hpp.
struct pooled_choice;

/// A BatchNorm and the Scale in place behind it share what they compute, see normalization.hpp.
struct scaled_normalization;

/// Everything one replica owns. Filled by compile(), then only its kernels touch it, one at a time.
struct replica_state : replica_base {
  cpu_math math = cpu_math::fp32;
  std::vector<const parameter_values*> parameters = {};  ///< by net parameter
  dnnl_run dnnl = {};
  /// By net blob: its shape in this pass. It is the net's, but behind a Filter.
  std::vector<shape> extents = {};
  std::vector<cpu_blob> blobs = {};    ///< by net blob
  buffer arena = {};                   ///< memory of most blobs, see blob_memory.hpp
  std::vector<buffer> gradients = {};  ///< by net parameter; empty without backward
  /// By net parameter; null where a single layer writes the gradient.
  std::vector<std::shared_ptr<shared_gradient>> shared = {};
  /// By layer: an earlier kernel already applies its forward.
  std::vector<bool> forward_fused = std::vector<bool>(graph.layers.size());
  /// By layer: its producer's kernel does its backward as well.
  std::vector<bool> backward_fused = std::vector<bool>(graph.layers.size());
  /// By layer: the bottom of a sum whose diff is that of the top, in the same memory; see blob_memory.hpp.
  std::vector<std::optional<std::size_t>> has_diff_of_top =
      std::vector<std::optional<std::size_t>>(graph.layers.size());
  /// By layer: the choices of a max pooling.
  std::vector<std::shared_ptr<pooled_choice>> choices =
      std::vector<std::shared_ptr<pooled_choice>>(graph.layers.size());
  /// By layer: what a Scale takes from the BatchNorm before it.
  std::vector<std::shared_ptr<scaled_normalization>> normalizations =
      std::vector<std::shared_ptr<scaled_normalization>>(graph.layers.size());
};

/// The current values of one parameter, looked up in each pass.
class parameter_reader {
 public:
  parameter_reader() = default;
  explicit parameter_reader(const parameter_values* source) : source_(source) {}
  [[nodiscard]] bool exists() const { return source_ != nullptr; }
  [[nodiscard]] const float* values() const {
    return source_->values.load(std::memory_order_acquire);
  }
  /// True if the values differ from those of the last call that was answered with true.
  [[nodiscard]] bool changed() {
    const std::uint64_t now = source_->version.load(std::memory_order_acquire);
    if (seen_ && now == version_) return false;
    seen_ = true;
    version_ = now;
    return true;
  }

 private:
  const parameter_values* source_ = nullptr;
  bool seen_ = false;
  std::uint64_t version_ = 0;
};

/// The arguments of a layer's maker.
struct layer_context : layer_base<replica_state> {
  [[nodiscard]] cpu_blob& bottom(std::size_t i) const { return state.blobs[layer.bottoms.at(i)]; }
  [[nodiscard]] cpu_blob& top(std::size_t i) const { return state.blobs[layer.tops.at(i)]; }
  [[nodiscard]] const shape& bottom_shape(std::size_t i) const { return *bottom(i).extents; }
  [[nodiscard]] const shape& top_shape(std::size_t i) const { return *top(i).extents; }
  [[nodiscard]] parameter_reader parameter(std::size_t slot) const;
  [[nodiscard]] gradient_slot gradient(std::size_t slot) const;
  /// Memory for the change of a running statistic (net_parameter::average_momentum); empty without a backward pass.
  [[nodiscard]] std::span<float> statistic(std::size_t slot) const;
};

using layer_maker = std::unique_ptr<kernel> (*)(const layer_context&);

std::unique_ptr<kernel> make_source(const layer_context&);
std::unique_ptr<kernel> make_convolution(const layer_context&);
std::unique_ptr<kernel> make_pooling(const layer_context&);
std::unique_ptr<kernel> make_inner_product(const layer_context&);
std::unique_ptr<kernel> make_dropout(const layer_context&);
std::unique_ptr<kernel> make_lrn(const layer_context&);
std::unique_ptr<kernel> make_softmax(const layer_context&);
std::unique_ptr<kernel> make_softmax_loss(const layer_context&);
std::unique_ptr<kernel> make_accuracy(const layer_context&);
std::unique_ptr<kernel> make_split(const layer_context&);
std::unique_ptr<kernel> make_activation(const layer_context&);
std::unique_ptr<kernel> make_reshape(const layer_context&);
std::unique_ptr<kernel> make_concat(const layer_context&);
std::unique_ptr<kernel> make_slice(const layer_context&);
std::unique_ptr<kernel> make_silence(const layer_context&);
std::unique_ptr<kernel> make_eltwise(const layer_context&);
std::unique_ptr<kernel> make_euclidean_loss(const layer_context&);
std::unique_ptr<kernel> make_sigmoid_cross_entropy_loss(const layer_context&);
std::unique_ptr<kernel> make_argmax(const layer_context&);
std::unique_ptr<kernel> make_batch_norm(const layer_context&);
std::unique_ptr<kernel> make_batch_reindex(const layer_context&);
std::unique_ptr<kernel> make_contrastive_loss(const layer_context&);
std::unique_ptr<kernel> make_crop(const layer_context&);
std::unique_ptr<kernel> make_deconvolution(const layer_context&);
std::unique_ptr<kernel> make_embed(const layer_context&);
std::unique_ptr<kernel> make_filter(const layer_context&);
std::unique_ptr<kernel> make_hinge_loss(const layer_context&);
std::unique_ptr<kernel> make_im2col(const layer_context&);
std::unique_ptr<kernel> make_infogain_loss(const layer_context&);
std::unique_ptr<kernel> make_lstm_unit(const layer_context&);
std::unique_ptr<kernel> make_multinomial_logistic_loss(const layer_context&);
std::unique_ptr<kernel> make_mvn(const layer_context&);
std::unique_ptr<kernel> make_parameter(const layer_context&);
std::unique_ptr<kernel> make_prelu(const layer_context&);
std::unique_ptr<kernel> make_reduction(const layer_context&);
std::unique_ptr<kernel> make_scale(const layer_context&);
std::unique_ptr<kernel> make_spp(const layer_context&);
std::unique_ptr<kernel> make_stochastic_pooling(const layer_context&);
std::unique_ptr<kernel> make_tile(const layer_context&);
std::unique_ptr<kernel> make_hdf5_output(const layer_context&);

/// How a layer type treats layouts, for the step that chooses them.
enum class layout_habit {
  plain,     ///< reads and writes plain values
  follows,   ///< works in any layout; its tops take the layout of its first bottom
  floats,    ///< follows, and knows float32 alone: behind bfloat16 its tops are plain
  channels,  ///< follows where it treats each channel (axis 1) apart from the others, else plain
  joins,     ///< Concat and Slice: follow where no block of channels is cut, else plain
  chooses    ///< Convolution
};

struct layer_type {
  const char* name;
  layer_maker make;
  layout_habit habit;
};
/// Null for a type without kernel here.
[[nodiscard]] const layer_type* find_layer_type(std::string_view name);
[[nodiscard]] std::string known_layer_types();

/// The layouts a convolution computes in, for its shapes and this processor.
struct convolution_layouts {
  layout in = layout::plain, out = layout::plain;
};
[[nodiscard]] convolution_layouts choose_layouts(const net& graph, const net_layer& layer,
                                                 cpu_math math);

}  // namespace poseidon::cpu
