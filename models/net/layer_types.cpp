// The catalogue: Caffe 1.0's layer types with their numbers of bottoms and tops.
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cctype>

namespace poseidon {

namespace {

constexpr int any = any_number;

constexpr layer_type in_place(std::string_view name, layer_rule rule) {
  return {.name = name, .rule = rule, .in_place = true};
}
constexpr layer_type loss(std::string_view name, layer_rule rule, int bottoms = 2) {
  return {.name = name, .min_bottoms = bottoms, .max_bottoms = bottoms, .rule = rule, .loss = true};
}
constexpr layer_type source(std::string_view name, int min_tops, int max_tops,
                            layer_rule rule = nullptr) {
  return {.name = name,
          .min_bottoms = 0,
          .max_bottoms = 0,
          .min_tops = min_tops,
          .max_tops = max_tops,
          .rule = rule,
          .source = true};
}

// clang-format off
constexpr layer_type types[] = {
    in_place("AbsVal", same_shape_rule),
    {.name = "Accuracy", .min_bottoms = 2, .max_bottoms = 2, .max_tops = 2, .rule = accuracy_rule},
    {.name = "ArgMax", .rule = argmax_rule},
    in_place("BNLL", same_shape_rule),
    in_place("BatchNorm", batch_norm_rule),
    {.name = "BatchReindex", .min_bottoms = 2, .max_bottoms = 2, .rule = batch_reindex_rule},
    {.name = "Bias", .max_bottoms = 2, .rule = bias_rule, .in_place = true},
    in_place("Clip", clip_rule),
    {.name = "Concat", .max_bottoms = any, .rule = concat_rule},
    loss("ContrastiveLoss", contrastive_loss_rule, 3),
    {.name = "Convolution", .max_bottoms = any, .max_tops = any, .rule = convolution_rule},
    {.name = "Crop", .min_bottoms = 2, .max_bottoms = 2, .rule = crop_rule},
    source("Data", 1, 2),
    {.name = "Deconvolution", .max_bottoms = any, .max_tops = any, .rule = deconvolution_rule},
    in_place("Dropout", dropout_rule),
    source("DummyData", 1, any, dummy_data_rule),
    in_place("ELU", same_shape_rule),
    {.name = "Eltwise", .min_bottoms = 2, .max_bottoms = any, .rule = eltwise_rule, .in_place = true},
    {.name = "Embed", .rule = embed_rule},
    loss("EuclideanLoss", euclidean_loss_rule),
    in_place("Exp", same_shape_rule),
    {.name = "Filter", .min_bottoms = 2, .max_bottoms = any, .max_tops = any, .rule = filter_rule},
    {.name = "Flatten", .rule = flatten_rule},
    source("HDF5Data", 1, any),
    {.name = "HDF5Output", .min_bottoms = 2, .max_bottoms = 2, .min_tops = 0, .max_tops = 0, .rule = silence_rule},
    loss("HingeLoss", pair_loss_rule),
    {.name = "Im2col", .rule = im2col_rule},
    source("ImageData", 2, 2),
    {.name = "InfogainLoss", .min_bottoms = 2, .max_bottoms = 3, .max_tops = 2, .rule = infogain_loss_rule, .loss = true},
    {.name = "InnerProduct", .rule = inner_product_rule},
    source("Input", 1, any, input_rule),
    {.name = "LRN", .rule = lrn_rule},
    {.name = "LSTM", .min_bottoms = 2, .max_bottoms = any, .max_tops = any},
    {.name = "LSTMUnit", .min_bottoms = 3, .max_bottoms = 3, .min_tops = 2, .max_tops = 2, .rule = lstm_unit_rule},
    in_place("Log", same_shape_rule),
    {.name = "MVN", .rule = same_shape_rule},
    source("MemoryData", 2, 2),
    loss("MultinomialLogisticLoss", multinomial_loss_rule),
    in_place("PReLU", prelu_rule),
    {.name = "Parameter", .min_bottoms = 0, .max_bottoms = 0, .rule = parameter_rule},
    {.name = "Pooling", .max_tops = 2, .rule = pooling_rule},
    in_place("Power", same_shape_rule),
    {.name = "Python", .min_bottoms = 0, .max_bottoms = any, .min_tops = 0, .max_tops = any},
    {.name = "RNN", .min_bottoms = 2, .max_bottoms = any, .max_tops = any},
    in_place("ReLU", same_shape_rule),
    {.name = "Reduction", .rule = reduction_rule},
    {.name = "Reshape", .rule = reshape_rule},
    {.name = "SPP", .rule = spp_rule},
    {.name = "Scale", .max_bottoms = 2, .rule = scale_rule, .in_place = true},
    in_place("Sigmoid", same_shape_rule),
    loss("SigmoidCrossEntropyLoss", sigmoid_loss_rule),
    {.name = "Silence", .max_bottoms = any, .min_tops = 0, .max_tops = 0, .rule = silence_rule},
    {.name = "Slice", .max_tops = any, .rule = slice_rule},
    in_place("Softmax", softmax_rule),
    {.name = "SoftmaxWithLoss", .min_bottoms = 2, .max_bottoms = 2, .max_tops = 2, .rule = softmax_loss_rule, .loss = true},
    {.name = "Split", .max_tops = any, .rule = same_shape_rule},
    in_place("Swish", same_shape_rule),
    in_place("TanH", same_shape_rule),
    in_place("Threshold", same_shape_rule),
    {.name = "Tile", .rule = tile_rule},
    source("WindowData", 2, 2),
};
// clang-format on

std::string wanted(int min, int max, const std::string& noun) {
  const auto least = static_cast<std::size_t>(min);
  if (min == max) return min == 0 ? "no " + noun : plural(least, noun);
  if (max == any) return "at least " + plural(least, noun);
  return std::to_string(min) + " to " + plural(static_cast<std::size_t>(max), noun);
}

void check_number(const layer_question& q, int min, int max, std::size_t has,
                  const std::string& noun) {
  const auto n = static_cast<int>(has);
  if (n >= min && (max == any || n <= max)) return;
  q.fail("it has " + plural(has, noun) + ", but " + q.spec.type() + " takes " +
         wanted(min, max, noun) + ".");
}

/// Several forks of Caffe have a layer of their own for it: ConvolutionDepthwise, DepthwiseConvolution, ConvDepthwise, ...
bool is_depthwise(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("depthwise") != std::string::npos;
}

const std::string depthwise_hint =
    " It is a fork's. Write type: \"Convolution\" with group equal to the number of channels of "
    "its "
    "bottom, and num_output a multiple of it; the weights keep their shape.";

}  // namespace

const layer_type* find_layer_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(types), std::end(types),
                                   [&](const layer_type& t) { return t.name == name; });
  return found == std::end(types) ? nullptr : found;
}

std::vector<std::string> layer_type_names() {
  std::vector<std::string> names;
  for (const auto& type : types) names.emplace_back(type.name);
  return names;
}

const layer_type& find_layer_type(const std::string& name, const ::caffe::LayerParameter& spec,
                                  const spec_position& where) {
  if (const auto* type = find_layer_type(name)) return *type;
  const auto layer = "layer \"" + spec.name() + "\"";
  if (name.empty())
    throw spec_error(where, layer + " has no type. Add one, as in type: \"Convolution\".");
  auto hint = is_depthwise(name) ? depthwise_hint : did_you_mean(name, layer_type_names());
  if (hint.empty()) hint = " Known types: " + comma_list(layer_type_names()) + ".";
  throw spec_error(where,
                   layer + " has the type \"" + name + "\", which is none of Caffe's." + hint);
}

bool takes_gradient(std::string_view type, std::size_t bottom) {
  const auto* t = find_layer_type(type);
  if (t == nullptr || type == "EuclideanLoss") return true;
  if (type == "ContrastiveLoss" || type == "LSTMUnit") return bottom != 2;
  if (t->loss || type == "LSTM" || type == "RNN") return bottom != 1;
  return true;
}

void check_arity(const layer_type& type, const layer_question& q) {
  const auto bottoms = static_cast<std::size_t>(q.spec.bottom_size());
  check_number(q, type.min_bottoms, type.max_bottoms, bottoms, "bottom");
  const bool mask =
      type.name == "Pooling" && q.spec.pooling_param().pool() != ::caffe::PoolingParameter::MAX;
  check_number(q, type.min_tops, mask ? 1 : type.max_tops, q.tops, "top");
  const bool pairs = type.name == "Convolution" || type.name == "Deconvolution";
  if (pairs && bottoms != q.tops)
    q.fail("it has " + plural(bottoms, "bottom") + " but " + plural(q.tops, "top") + ". " +
           q.spec.type() + " makes one top of each bottom.");
  if (type.name == "Filter" && bottoms != q.tops + 1)
    q.fail("it has " + plural(bottoms, "bottom") + " but " + plural(q.tops, "top") +
           ". Filter makes one top of each bottom but the last, which selects.");
}

}  // namespace poseidon
