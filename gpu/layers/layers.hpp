// gpu/layers/layers.hpp - the makers of all layers, for the table.
#pragma once
#include "gpu/kernels/softmax.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

std::unique_ptr<kernel> make_accuracy(const layer_context&);
std::unique_ptr<kernel> make_activation(const layer_context&);
std::unique_ptr<kernel> make_argmax(const layer_context&);
std::unique_ptr<kernel> make_batch_norm(const layer_context&);
std::unique_ptr<kernel> make_batch_reindex(const layer_context&);
std::unique_ptr<kernel> make_concat(const layer_context&);
std::unique_ptr<kernel> make_contrastive_loss(const layer_context&);
std::unique_ptr<kernel> make_convolution(const layer_context&);
std::unique_ptr<kernel> make_crop(const layer_context&);
std::unique_ptr<kernel> make_deconvolution(const layer_context&);
std::unique_ptr<kernel> make_dropout(const layer_context&);
std::unique_ptr<kernel> make_eltwise(const layer_context&);
std::unique_ptr<kernel> make_embed(const layer_context&);
std::unique_ptr<kernel> make_euclidean_loss(const layer_context&);
std::unique_ptr<kernel> make_im2col(const layer_context&);
std::unique_ptr<kernel> make_infogain_loss(const layer_context&);
std::unique_ptr<kernel> make_inner_product(const layer_context&);
std::unique_ptr<kernel> make_lrn(const layer_context&);
std::unique_ptr<kernel> make_lstm_unit(const layer_context&);
std::unique_ptr<kernel> make_mvn(const layer_context&);
std::unique_ptr<kernel> make_parameter(const layer_context&);
std::unique_ptr<kernel> make_pooling(const layer_context&);
std::unique_ptr<kernel> make_prelu(const layer_context&);
std::unique_ptr<kernel> make_reduction(const layer_context&);
std::unique_ptr<kernel> make_reshape(const layer_context&);
std::unique_ptr<kernel> make_row_loss(const layer_context&);
std::unique_ptr<kernel> make_scale(const layer_context&);
std::unique_ptr<kernel> make_sigmoid_cross_entropy_loss(const layer_context&);
std::unique_ptr<kernel> make_silence(const layer_context&);
std::unique_ptr<kernel> make_slice(const layer_context&);
std::unique_ptr<kernel> make_softmax(const layer_context&);
std::unique_ptr<kernel> make_softmax_loss(const layer_context&);
std::unique_ptr<kernel> make_split(const layer_context&);
std::unique_ptr<kernel> make_spp(const layer_context&);
std::unique_ptr<kernel> make_tile(const layer_context&);

/// A blob seen along one axis; negative ones count from the end, as in Caffe.
[[nodiscard]] inline class_shape along_axis(const shape& s, int axis) {
  const auto a = static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(s.size()) : axis);
  return {static_cast<std::size_t>(count(s, 0, a)), static_cast<std::size_t>(s.at(a)),
          static_cast<std::size_t>(count(s, a + 1, s.size()))};
}

/// The place where the layer's kernels report a label that is no class.
[[nodiscard]] label_fault* watch_labels(const layer_context& c, std::size_t classes);

/// The layouts of layers that do not take only NCHW. `any` is for layers that compute each value independently.
layout_option any_layout(const net&, const net_layer&);
layout_option convolution_layout(const net&, const net_layer&);
layout_option join_layout(const net&, const net_layer&);
layout_option lrn_layout(const net&, const net_layer&);
layout_option pooling_layout(const net&, const net_layer&);
layout_option scale_layout(const net&, const net_layer&);

}  // namespace poseidon::gpu
