#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

constexpr layer_type table[] = {
    {"AbsVal", make_activation, any_layout},
    {"Accuracy", make_accuracy},
    {"ArgMax", make_argmax},
    {"BNLL", make_activation, any_layout},
    {"BatchNorm", make_batch_norm, any_layout},
    {"BatchReindex", make_batch_reindex},
    {"Bias", make_scale, scale_layout},
    {"Clip", make_activation, any_layout},
    {"Concat", make_concat, join_layout},
    {"ContrastiveLoss", make_contrastive_loss},
    {"Convolution", make_convolution, convolution_layout},
    {"Crop", make_crop},
    {"Deconvolution", make_deconvolution, convolution_layout},
    {"Dropout", make_dropout},
    {"ELU", make_activation, any_layout},
    {"Eltwise", make_eltwise, any_layout},
    {"Embed", make_embed},
    {"EuclideanLoss", make_euclidean_loss},
    {"Exp", make_activation, any_layout},
    {"Flatten", make_reshape},
    {"HingeLoss", make_row_loss},
    {"Im2col", make_im2col},
    {"InfogainLoss", make_infogain_loss},
    {"InnerProduct", make_inner_product},
    {"LRN", make_lrn, lrn_layout},
    {"LSTMUnit", make_lstm_unit},
    {"Log", make_activation, any_layout},
    {"MVN", make_mvn},
    {"MultinomialLogisticLoss", make_row_loss},
    {"PReLU", make_prelu, any_layout},
    {"Parameter", make_parameter},
    {"Pooling", make_pooling, pooling_layout},
    {"Power", make_activation, any_layout},
    {"ReLU", make_activation, any_layout},
    {"Reduction", make_reduction},
    {"Reshape", make_reshape},
    {"SPP", make_spp},
    {"Scale", make_scale, scale_layout},
    {"Sigmoid", make_activation, any_layout},
    {"SigmoidCrossEntropyLoss", make_sigmoid_cross_entropy_loss},
    {"Silence", make_silence, any_layout},
    {"Slice", make_slice, join_layout},
    {"Softmax", make_softmax},
    {"SoftmaxWithLoss", make_softmax_loss},
    {"Split", make_split, any_layout},
    {"Swish", make_activation, any_layout},
    {"TanH", make_activation, any_layout},
    {"Threshold", make_activation, any_layout},
    {"Tile", make_tile},
};

}  // namespace

const layer_type* find_layer_type(std::string_view name) {
  for (const layer_type& t : table) {
    if (name == t.name) return &t;
  }
  return nullptr;
}

std::string known_layer_types() {
  std::string all;
  for (const layer_type& t : table) all += (all.empty() ? "" : ", ") + std::string(t.name);
  return all;
}

}  // namespace poseidon::gpu
