#include "cpu/layer.hpp"

namespace poseidon::cpu {
namespace {

constexpr layer_type table[] = {
    {"AbsVal", make_activation, layout_habit::floats},
    {"Accuracy", make_accuracy, layout_habit::plain},
    {"ArgMax", make_argmax, layout_habit::plain},
    {"BNLL", make_activation, layout_habit::plain},
    {"BatchNorm", make_batch_norm, layout_habit::follows},
    {"BatchReindex", make_batch_reindex, layout_habit::plain},
    {"Bias", make_scale, layout_habit::channels},
    {"Clip", make_activation, layout_habit::plain},
    {"Concat", make_concat, layout_habit::joins},
    {"ContrastiveLoss", make_contrastive_loss, layout_habit::plain},
    {"Convolution", make_convolution, layout_habit::chooses},
    {"Crop", make_crop, layout_habit::plain},
    {"Data", make_source, layout_habit::plain},
    {"Deconvolution", make_deconvolution, layout_habit::plain},
    {"Dropout", make_dropout, layout_habit::plain},
    {"DummyData", make_source, layout_habit::plain},
    {"ELU", make_activation, layout_habit::floats},
    {"Eltwise", make_eltwise, layout_habit::follows},
    {"Embed", make_embed, layout_habit::plain},
    {"EuclideanLoss", make_euclidean_loss, layout_habit::plain},
    {"Exp", make_activation, layout_habit::plain},
    {"Filter", make_filter, layout_habit::plain},
    {"Flatten", make_reshape, layout_habit::plain},
    {"HDF5Data", make_source, layout_habit::plain},
    {"HDF5Output", make_hdf5_output, layout_habit::plain},
    {"HingeLoss", make_hinge_loss, layout_habit::plain},
    {"Im2col", make_im2col, layout_habit::plain},
    {"ImageData", make_source, layout_habit::plain},
    {"InfogainLoss", make_infogain_loss, layout_habit::plain},
    {"InnerProduct", make_inner_product, layout_habit::plain},
    {"Input", make_source, layout_habit::plain},
    {"LRN", make_lrn, layout_habit::follows},
    {"LSTMUnit", make_lstm_unit, layout_habit::plain},
    {"Log", make_activation, layout_habit::plain},
    {"MVN", make_mvn, layout_habit::plain},
    {"MemoryData", make_source, layout_habit::plain},
    {"MultinomialLogisticLoss", make_multinomial_logistic_loss, layout_habit::plain},
    {"PReLU", make_prelu, layout_habit::floats},
    {"Parameter", make_parameter, layout_habit::plain},
    {"Pooling", make_pooling, layout_habit::follows},
    {"Power", make_activation, layout_habit::plain},
    {"ReLU", make_activation, layout_habit::follows},
    {"Reduction", make_reduction, layout_habit::plain},
    {"Reshape", make_reshape, layout_habit::plain},
    {"SPP", make_spp, layout_habit::plain},
    {"Scale", make_scale, layout_habit::channels},
    {"Sigmoid", make_activation, layout_habit::plain},
    {"SigmoidCrossEntropyLoss", make_sigmoid_cross_entropy_loss, layout_habit::plain},
    {"Silence", make_silence, layout_habit::plain},
    {"Slice", make_slice, layout_habit::joins},
    {"Softmax", make_softmax, layout_habit::plain},
    {"SoftmaxWithLoss", make_softmax_loss, layout_habit::plain},
    {"Split", make_split, layout_habit::follows},
    {"Swish", make_activation, layout_habit::plain},
    {"TanH", make_activation, layout_habit::floats},
    {"Threshold", make_activation, layout_habit::plain},
    {"Tile", make_tile, layout_habit::plain},
    {"WindowData", make_source, layout_habit::plain},
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

}  // namespace poseidon::cpu
