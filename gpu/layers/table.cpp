#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

constexpr layer_type table[] = {
    {"AbsVal", make_activation},
    {"Accuracy", make_accuracy},
    {"ArgMax", make_argmax},
    {"BNLL", make_activation},
    {"BatchNorm", make_batch_norm},
    {"BatchReindex", make_batch_reindex},
    {"Bias", make_scale},
    {"Clip", make_activation},
    {"Concat", make_concat},
    {"ContrastiveLoss", make_contrastive_loss},
    {"Convolution", make_convolution},
    {"Crop", make_crop},
    {"Deconvolution", make_deconvolution},
    {"Dropout", make_dropout},
    {"ELU", make_activation},
    {"Eltwise", make_eltwise},
    {"Embed", make_embed},
    {"EuclideanLoss", make_euclidean_loss},
    {"Exp", make_activation},
    {"Flatten", make_reshape},
    {"HingeLoss", make_row_loss},
    {"Im2col", make_im2col},
    {"InfogainLoss", make_infogain_loss},
    {"InnerProduct", make_inner_product},
    {"LRN", make_lrn},
    {"LSTMUnit", make_lstm_unit},
    {"Log", make_activation},
    {"MVN", make_mvn},
    {"MultinomialLogisticLoss", make_row_loss},
    {"PReLU", make_prelu},
    {"Parameter", make_parameter},
    {"Pooling", make_pooling},
    {"Power", make_activation},
    {"ReLU", make_activation},
    {"Reduction", make_reduction},
    {"Reshape", make_reshape},
    {"SPP", make_spp},
    {"Scale", make_scale},
    {"Sigmoid", make_activation},
    {"SigmoidCrossEntropyLoss", make_sigmoid_cross_entropy_loss},
    {"Silence", make_silence},
    {"Slice", make_slice},
    {"Softmax", make_softmax},
    {"SoftmaxWithLoss", make_softmax_loss},
    {"Split", make_split},
    {"Swish", make_activation},
    {"TanH", make_activation},
    {"Threshold", make_activation},
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
