#include "cpu/layer.hpp"

namespace poseidon::cpu {
namespace {

constexpr layer_type table[] = {
    {"AbsVal", make_elementwise, layout_habit::follows},
    {"Accuracy", make_accuracy, layout_habit::plain},
    {"BNLL", make_elementwise, layout_habit::plain},
    {"Concat", make_concat, layout_habit::plain},
    {"Convolution", make_convolution, layout_habit::chooses},
    {"Data", make_source, layout_habit::plain},
    {"Dropout", make_dropout, layout_habit::plain},
    {"DummyData", make_source, layout_habit::plain},
    {"ELU", make_elementwise, layout_habit::follows},
    {"Eltwise", make_eltwise, layout_habit::follows},
    {"EuclideanLoss", make_euclidean_loss, layout_habit::plain},
    {"Exp", make_elementwise, layout_habit::plain},
    {"Flatten", make_reshape, layout_habit::plain},
    {"HDF5Data", make_source, layout_habit::plain},
    {"HDF5Output", make_hdf5_output, layout_habit::plain},
    {"ImageData", make_source, layout_habit::plain},
    {"InnerProduct", make_inner_product, layout_habit::plain},
    {"Input", make_source, layout_habit::plain},
    {"LRN", make_lrn, layout_habit::follows},
    {"Log", make_elementwise, layout_habit::plain},
    {"MemoryData", make_source, layout_habit::plain},
    {"Pooling", make_pooling, layout_habit::follows},
    {"Power", make_elementwise, layout_habit::plain},
    {"ReLU", make_relu, layout_habit::follows},
    {"Reshape", make_reshape, layout_habit::plain},
    {"Sigmoid", make_elementwise, layout_habit::plain},
    {"SigmoidCrossEntropyLoss", make_sigmoid_cross_entropy_loss, layout_habit::plain},
    {"Silence", make_silence, layout_habit::plain},
    {"Slice", make_slice, layout_habit::plain},
    {"Softmax", make_softmax, layout_habit::plain},
    {"SoftmaxWithLoss", make_softmax_loss, layout_habit::plain},
    {"Split", make_split, layout_habit::follows},
    {"TanH", make_elementwise, layout_habit::follows},
    {"Threshold", make_elementwise, layout_habit::plain},
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
