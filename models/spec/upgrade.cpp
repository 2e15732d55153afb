#include "models/spec/upgrade.hpp"

#include "models/caffe.hpp"
#include "models/words.hpp"

#include <google/protobuf/descriptor.h>

#include <array>
#include <string>
#include <utility>

namespace poseidon {

namespace pb = google::protobuf;
using caffe::LayerParameter;
using caffe::V1LayerParameter;

namespace {

/// V2's word for a V1 type, by V1's number.
const char* v2_type(V1LayerParameter::LayerType type) {
  static constexpr std::array<const char*, 40> words = {"",
                                                        "Accuracy",
                                                        "BNLL",
                                                        "Concat",
                                                        "Convolution",
                                                        "Data",
                                                        "Dropout",
                                                        "EuclideanLoss",
                                                        "Flatten",
                                                        "HDF5Data",
                                                        "HDF5Output",
                                                        "Im2col",
                                                        "ImageData",
                                                        "InfogainLoss",
                                                        "InnerProduct",
                                                        "LRN",
                                                        "MultinomialLogisticLoss",
                                                        "Pooling",
                                                        "ReLU",
                                                        "Sigmoid",
                                                        "Softmax",
                                                        "SoftmaxWithLoss",
                                                        "Split",
                                                        "TanH",
                                                        "WindowData",
                                                        "Eltwise",
                                                        "Power",
                                                        "SigmoidCrossEntropyLoss",
                                                        "HingeLoss",
                                                        "MemoryData",
                                                        "ArgMax",
                                                        "Threshold",
                                                        "DummyData",
                                                        "Slice",
                                                        "MVN",
                                                        "AbsVal",
                                                        "Silence",
                                                        "ContrastiveLoss",
                                                        "Exp",
                                                        "Deconvolution"};
  return words.at(static_cast<std::size_t>(type));
}

/// Old files have scale, crop_size and so on in data_param; today they belong to transform_param.
template <class Param>
void move_transformation(Param& from, caffe::TransformationParameter& to) {
  if (from.has_scale()) to.set_scale(from.scale()), from.clear_scale();
  if (from.has_mean_file()) to.set_mean_file(from.mean_file()), from.clear_mean_file();
  if (from.has_crop_size()) to.set_crop_size(from.crop_size()), from.clear_crop_size();
  if (from.has_mirror()) to.set_mirror(from.mirror()), from.clear_mirror();
}

template <class Param>
bool has_transformation(const Param& p) {
  return p.has_scale() || p.has_mean_file() || p.has_crop_size() || p.has_mirror();
}

bool has_transformation(const V1LayerParameter& layer) {
  switch (layer.type()) {
    case V1LayerParameter::DATA:
      return has_transformation(layer.data_param());
    case V1LayerParameter::IMAGE_DATA:
      return has_transformation(layer.image_data_param());
    case V1LayerParameter::WINDOW_DATA:
      return has_transformation(layer.window_data_param());
    default:
      return false;
  }
}

/// Caffe changes every data layer of a net in which one has such a field, and leaves empty messages
/// behind; so does this function.
void move_transformations(caffe::NetParameter& net) {
  bool any = false;
  for (const auto& layer : net.layers()) any = any || has_transformation(layer);
  if (!any) return;
  for (auto& layer : *net.mutable_layers()) {
    if (layer.type() == V1LayerParameter::DATA)
      move_transformation(*layer.mutable_data_param(), *layer.mutable_transform_param());
    if (layer.type() == V1LayerParameter::IMAGE_DATA)
      move_transformation(*layer.mutable_image_data_param(), *layer.mutable_transform_param());
    if (layer.type() == V1LayerParameter::WINDOW_DATA)
      move_transformation(*layer.mutable_window_data_param(), *layer.mutable_transform_param());
  }
}

void copy_field(const pb::Message& from, const pb::FieldDescriptor& f, pb::Message& to,
                const pb::FieldDescriptor& t) {
  const auto& reader = *from.GetReflection();
  const auto& writer = *to.GetReflection();
  if (!f.is_repeated()) {
    if (f.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING)
      writer.SetString(&to, &t, reader.GetString(from, &f));
    else
      writer.MutableMessage(&to, &t)->CopyFrom(reader.GetMessage(from, &f));
    return;
  }
  for (int i = 0; i < reader.FieldSize(from, &f); ++i) {
    if (f.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING)
      writer.AddString(&to, &t, reader.GetRepeatedString(from, &f, i));
    else if (f.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT)
      writer.AddFloat(&to, &t, reader.GetRepeatedFloat(from, &f, i));
    else
      writer.AddMessage(&to, &t)->CopyFrom(reader.GetRepeatedMessage(from, &f, i));
  }
}

/// V1 and V2 layers differ in their type and in what became ParamSpec; every other field kept its
/// name.
LayerParameter to_v2(const V1LayerParameter& v1) {
  LayerParameter v2;
  std::vector<const pb::FieldDescriptor*> fields;
  v1.GetReflection()->ListFields(v1, &fields);
  for (const auto* field : fields) {
    const auto& name = field->name();
    if (name == "type" || name == "param" || name == "blob_share_mode" || name == "blobs_lr" ||
        name == "weight_decay")
      continue;
    copy_field(v1, *field, v2, *v2.GetDescriptor()->FindFieldByName(name));
  }
  if (v1.has_type()) v2.set_type(v2_type(v1.type()));
  const auto param = [&](int i) {
    while (v2.param_size() <= i) v2.add_param();
    return v2.mutable_param(i);
  };
  for (int i = 0; i < v1.param_size(); ++i) param(i)->set_name(v1.param(i));
  for (int i = 0; i < v1.blob_share_mode_size(); ++i)
    param(i)->set_share_mode(v1.blob_share_mode(i) == V1LayerParameter::PERMISSIVE
                                 ? caffe::ParamSpec::PERMISSIVE
                                 : caffe::ParamSpec::STRICT);
  for (int i = 0; i < v1.blobs_lr_size(); ++i) param(i)->set_lr_mult(v1.blobs_lr(i));
  for (int i = 0; i < v1.weight_decay_size(); ++i) param(i)->set_decay_mult(v1.weight_decay(i));
  return v2;
}

/// Old weight files have an `input` without any shape; there it is only removed.
void inputs_to_layer(caffe::NetParameter& net, std::vector<spec_position>& places,
                     const spec_position& place) {
  const bool has_shape = net.input_shape_size() > 0;
  if (has_shape || net.input_dim_size() > 0) {
    const auto shapes = has_shape ? net.input_shape_size() : net.input_dim_size() / 4;
    if (shapes != net.input_size() || (!has_shape && net.input_dim_size() % 4 != 0))
      throw spec_error(
          place, "the net has " + plural(static_cast<std::size_t>(net.input_size()), "input") +
                     " but " +
                     (has_shape ? std::to_string(net.input_shape_size()) + " input_shape"
                                : std::to_string(net.input_dim_size()) + " input_dim") +
                     ". Give one input_shape, or four input_dim, per input.");
    LayerParameter layer;
    layer.set_name("input");
    layer.set_type("Input");
    for (int i = 0; i < net.input_size(); ++i) {
      layer.add_top(net.input(i));
      auto& shape = *layer.mutable_input_param()->add_shape();
      if (has_shape) shape = net.input_shape(i);
      for (int axis = 0; !has_shape && axis < 4; ++axis) shape.add_dim(net.input_dim(4 * i + axis));
    }
    *net.add_layer() = std::move(layer);
    for (int i = net.layer_size() - 1; i > 0; --i) net.mutable_layer()->SwapElements(i - 1, i);
    places.insert(places.begin(), place);
  }
  net.clear_input();
  net.clear_input_shape();
  net.clear_input_dim();
}

}  // namespace

void upgrade_net(caffe::NetParameter& net, std::vector<spec_position>& places,
                 const spec_position& input_place) {
  if (net.layers_size() > 0 && net.layer_size() > 0)
    throw spec_error(
        places.empty() ? input_place : places.front(),
        "the net has both layer { } (V2) and layers { } (V1). Write all of them as layer { }.");
  move_transformations(net);
  for (const auto& layer : net.layers()) *net.add_layer() = to_v2(layer);
  net.clear_layers();
  if (net.input_size() > 0) inputs_to_layer(net, places, input_place);
  for (auto& layer : *net.mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) continue;
    for (auto& param : *layer.mutable_param()) {
      param.set_lr_mult(0);
      param.set_decay_mult(0);
    }
  }
}

void upgrade_solver(caffe::SolverParameter& solver, const spec_position& where) {
  if (!solver.has_solver_type()) return;
  static constexpr std::array<const char*, 6> words = {"SGD",     "Nesterov", "AdaGrad",
                                                       "RMSProp", "AdaDelta", "Adam"};
  const std::string word = words.at(static_cast<std::size_t>(solver.solver_type()));
  if (solver.has_type())
    throw spec_error(where, "both type: \"" + solver.type() + "\" and the older solver_type: " +
                                caffe::SolverParameter::SolverType_Name(solver.solver_type()) +
                                " are given. Keep type.");
  solver.set_type(word);
  solver.clear_solver_type();
}

}  // namespace poseidon
