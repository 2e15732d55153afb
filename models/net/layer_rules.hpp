// models/net/layer_rules.hpp
//
// What Caffe's layer types require and produce: the number of bottoms and tops, the options, the shapes of
// tops and learned blobs. One rule per type, pure functions of a question; net_builder.cpp asks
// them in net order.
#pragma once
#include "models/caffe.hpp"
#include "models/shape.hpp"
#include "models/spec/spec_file.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// One layer of a net whose bottoms are known.
struct layer_question {
  const ::caffe::LayerParameter& spec;  ///< with its phase
  const spec_position& where;
  std::vector<shape> bottoms;
  std::size_t tops = 0;  ///< automatic ones included
  /// The bottoms as the file names them, for messages; `spec` may name the copies of a Split layer. Empty: `spec` does.
  std::vector<std::string> names = {};

  /// "conv1" 64x20x24x24
  [[nodiscard]] std::string bottom_text(std::size_t i) const;
  /// Throws spec_error: file:line: layer "x" (Type): text
  [[noreturn]] void fail(const std::string& text) const;
  void require(bool holds, const std::string& text) const {
    if (!holds) fail(text);
  }
  /// Axis counted from the end if negative.   Errors   out of range of bottom `i`.
  [[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t i = 0) const;
};

struct learned_blob {
  poseidon::shape shape;
  ::caffe::FillerParameter filler;
};

struct layer_answer {
  std::vector<shape> tops;
  std::vector<learned_blob> learned;
};

using layer_rule = layer_answer (*)(const layer_question&);

inline constexpr int any_number = -1;

/// One row of the catalogue.
struct layer_type {
  std::string_view name;
  int min_bottoms = 1;
  int max_bottoms = 1;  ///< any_number: no limit
  int min_tops = 1;
  int max_tops = 1;
  layer_rule rule = nullptr;  ///< null: a type of Caffe's that Poseidon does not read yet
  bool in_place = false;      ///< the top may be the bottom
  bool loss = false;          ///< its weight is 1 by default; a missing top is added
  bool source = false;        ///< its tops come from outside the net
};

/// Errors   spec_error naming the nearest type for an unknown word.
[[nodiscard]] const layer_type& find_layer_type(const std::string& name,
                                                const ::caffe::LayerParameter& spec,
                                                const spec_position& where);
[[nodiscard]] const layer_type* find_layer_type(std::string_view name);  ///< null if unknown
[[nodiscard]] std::vector<std::string> layer_type_names();

/// Whether force_backward reaches this bottom; it does not reach the labels of a loss.
[[nodiscard]] bool takes_gradient(std::string_view type, std::size_t bottom);

/// Checks the number of bottoms and tops.   Errors   spec_error with both numbers.
void check_arity(const layer_type& type, const layer_question& q);

// The rules, by family.
layer_answer same_shape_rule(const layer_question& q);   // every top like bottom 0
layer_answer convolution_rule(const layer_question& q);  // rules_windows.cpp
layer_answer deconvolution_rule(const layer_question& q);
layer_answer im2col_rule(const layer_question& q);
layer_answer pooling_rule(const layer_question& q);
layer_answer lrn_rule(const layer_question& q);
layer_answer spp_rule(const layer_question& q);
layer_answer inner_product_rule(const layer_question& q);  // rules_learned.cpp
layer_answer embed_rule(const layer_question& q);
layer_answer batch_norm_rule(const layer_question& q);
layer_answer scale_rule(const layer_question& q);
layer_answer bias_rule(const layer_question& q);
layer_answer prelu_rule(const layer_question& q);
layer_answer parameter_rule(const layer_question& q);
layer_answer concat_rule(const layer_question& q);  // rules_arrangement.cpp
layer_answer slice_rule(const layer_question& q);
layer_answer eltwise_rule(const layer_question& q);
layer_answer flatten_rule(const layer_question& q);
layer_answer reshape_rule(const layer_question& q);
layer_answer crop_rule(const layer_question& q);
layer_answer tile_rule(const layer_question& q);
layer_answer reduction_rule(const layer_question& q);
layer_answer argmax_rule(const layer_question& q);
layer_answer batch_reindex_rule(const layer_question& q);
layer_answer filter_rule(const layer_question& q);
layer_answer softmax_rule(const layer_question& q);
layer_answer dropout_rule(const layer_question& q);
layer_answer clip_rule(const layer_question& q);
layer_answer lstm_unit_rule(const layer_question& q);
layer_answer silence_rule(const layer_question& q);    // no tops
layer_answer pair_loss_rule(const layer_question& q);  // rules_losses.cpp
layer_answer softmax_loss_rule(const layer_question& q);
layer_answer infogain_loss_rule(const layer_question& q);
layer_answer multinomial_loss_rule(const layer_question& q);
layer_answer contrastive_loss_rule(const layer_question& q);
layer_answer euclidean_loss_rule(const layer_question& q);
layer_answer sigmoid_loss_rule(const layer_question& q);
layer_answer accuracy_rule(const layer_question& q);
layer_answer input_rule(const layer_question& q);  // rules_sources.cpp
layer_answer dummy_data_rule(const layer_question& q);

/// Checks that the filler is known and its numbers are valid.   Errors   spec_error naming the layer and the nearest type.
void check_filler(const layer_question& q, const ::caffe::FillerParameter& filler);
[[nodiscard]] const std::vector<std::string>& filler_types();

}  // namespace poseidon
