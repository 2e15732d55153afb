// Layers that combine, cut, move or select values.
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// Caffe's older dimension fields count from 0 and never from the end.
std::size_t old_or_new_axis(const layer_question& q, bool has_old, std::int64_t old, bool has_new,
                            std::int64_t axis, const std::string& old_name) {
  q.require(!(has_old && has_new),
            "both axis and the older " + old_name + " are given. Keep axis.");
  return q.axis_of(has_old ? old : axis);
}

}  // namespace

layer_answer concat_rule(const layer_question& q) {
  const auto& p = q.spec.concat_param();
  const auto axis =
      old_or_new_axis(q, p.has_concat_dim(), p.concat_dim(), p.has_axis(), p.axis(), "concat_dim");
  shape top = q.bottoms[0];
  for (std::size_t i = 1; i < q.bottoms.size(); ++i) {
    shape like_first = q.bottoms[i];
    if (like_first.size() == top.size()) like_first[axis] = q.bottoms[0][axis];
    q.require(like_first == q.bottoms[0], "its bottoms " + q.bottom_text(0) + " and " +
                                              q.bottom_text(i) + " differ elsewhere than in axis " +
                                              std::to_string(axis) +
                                              ", along which they are joined.");
    top[axis] += q.bottoms[i][axis];
  }
  return {{top}, {}};
}

layer_answer slice_rule(const layer_question& q) {
  const auto& p = q.spec.slice_param();
  const auto axis =
      old_or_new_axis(q, p.has_slice_dim(), p.slice_dim(), p.has_axis(), p.axis(), "slice_dim");
  const auto extent = q.bottoms[0][axis];
  const auto tops = static_cast<std::int64_t>(q.tops);
  std::vector<std::int64_t> ends(p.slice_point().begin(), p.slice_point().end());
  if (ends.empty()) {
    q.require(extent % tops == 0, "axis " + std::to_string(axis) + " of its bottom " +
                                      q.bottom_text(0) + " does not divide evenly into " +
                                      plural(q.tops, "top") +
                                      ". Give slice_point, one fewer than tops.");
    for (std::int64_t i = 1; i < tops; ++i) ends.push_back(i * extent / tops);
  }
  q.require(ends.size() + 1 == q.tops, "it has " + plural(ends.size(), "slice_point") + " and " +
                                           plural(q.tops, "top") +
                                           ". There must be one slice_point fewer than tops.");
  ends.push_back(extent);
  layer_answer a{std::vector<shape>(q.tops, q.bottoms[0]), {}};
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    q.require(ends[i] > begin, "its slice_points must rise and stay below " +
                                   std::to_string(extent) + ", the extent of axis " +
                                   std::to_string(axis) + " of its bottom " + q.bottom_text(0) +
                                   "; " + std::to_string(ends[i]) + " follows " +
                                   std::to_string(begin) + ".");
    a.tops[i][axis] = ends[i] - begin;
    begin = ends[i];
  }
  return a;
}

layer_answer eltwise_rule(const layer_question& q) {
  const auto& p = q.spec.eltwise_param();
  const auto coefficients = static_cast<std::size_t>(p.coeff_size());
  q.require(coefficients == 0 || coefficients == q.bottoms.size(),
            "it has " + plural(coefficients, "coeff") + " and " +
                plural(q.bottoms.size(), "bottom") + ". Give one coeff per bottom, or none.");
  q.require(coefficients == 0 || p.operation() != caffe::EltwiseParameter::PROD,
            "coeff is for SUM, the operation is PROD.");
  for (std::size_t i = 1; i < q.bottoms.size(); ++i)
    q.require(q.bottoms[i] == q.bottoms[0], "its bottoms " + q.bottom_text(0) + " and " +
                                                q.bottom_text(i) +
                                                " differ. All of them must have one shape.");
  return same_shape_rule(q);
}

layer_answer flatten_rule(const layer_question& q) {
  const auto& p = q.spec.flatten_param();
  const auto& in = q.bottoms[0];
  const auto first = q.axis_of(p.axis()), last = q.axis_of(p.end_axis());
  q.require(first <= last, "axis " + std::to_string(p.axis()) + " lies behind end_axis " +
                               std::to_string(p.end_axis()) + " of its bottom " + q.bottom_text(0) +
                               ".");
  shape top(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(first));
  top.push_back(count(in, first, last + 1));
  top.insert(top.end(), in.begin() + static_cast<std::ptrdiff_t>(last + 1), in.end());
  return {{top}, {}};
}

layer_answer reshape_rule(const layer_question& q) {
  const auto& p = q.spec.reshape_param();
  const auto& in = q.bottoms[0];
  const auto axes = static_cast<std::int64_t>(in.size());
  const auto first = p.axis() >= 0 ? p.axis() : axes + p.axis() + 1;
  q.require(first >= 0 && first <= axes, "axis " + std::to_string(p.axis()) +
                                             " is out of range of its bottom " + q.bottom_text(0) +
                                             ".");
  const auto end = p.num_axes() == -1 ? axes : first + p.num_axes();
  q.require(p.num_axes() >= -1 && end <= axes,
            "axis " + std::to_string(p.axis()) + " and num_axes " + std::to_string(p.num_axes()) +
                " reach past the axes of its bottom " + q.bottom_text(0) + ".");
  shape top(in.begin(), in.begin() + first);
  std::ptrdiff_t inferred = -1;
  for (const auto wanted : p.shape().dim()) {
    const auto place = static_cast<std::ptrdiff_t>(top.size());
    q.require(wanted >= -1,
              "dim: " + std::to_string(wanted) + " is none of -1 (infer), 0 (copy) and an extent.");
    q.require(wanted != 0 || place < axes, "dim: 0 at place " + std::to_string(place) +
                                               " copies an axis that its bottom " +
                                               q.bottom_text(0) + " does not have.");
    q.require(wanted != -1 || inferred < 0,
              "-1 stands twice in its shape; only one extent can be inferred.");
    if (wanted == -1) inferred = place;
    top.push_back(wanted == -1 ? 1 : wanted == 0 ? in[static_cast<std::size_t>(place)] : wanted);
  }
  top.insert(top.end(), in.begin() + end, in.end());
  const auto have = count(in), known = checked_count(top).value_or(-1);
  if (inferred >= 0 && known > 0 && have % known == 0)
    top[static_cast<std::size_t>(inferred)] = have / known;
  q.require(checked_count(top) == have, "its bottom " + q.bottom_text(0) + " has " +
                                            std::to_string(have) +
                                            " values, which do not fit the shape " +
                                            (inferred >= 0 ? "with an inferred axis of " : "of ") +
                                            std::to_string(known) + " values.");
  return {{top}, {}};
}

layer_answer crop_rule(const layer_question& q) {
  const auto& p = q.spec.crop_param();
  const auto& in = q.bottoms[0];
  const auto first = q.axis_of(p.axis());
  const auto offsets = static_cast<std::size_t>(p.offset_size());
  q.require(offsets <= 1 || first + offsets == in.size(),
            "it has " + plural(offsets, "offset") + " for " +
                plural(in.size() - first, "cropped dimension") + ". Give one, or one each.");
  q.require(q.bottoms[1].size() == in.size(), "its bottoms " + q.bottom_text(0) + " and " +
                                                  q.bottom_text(1) +
                                                  " have different numbers of axes.");
  shape top = in;
  for (auto axis = first; axis < in.size(); ++axis) {
    const std::int64_t offset =
        offsets == 0 ? 0 : p.offset(offsets == 1 ? 0 : static_cast<int>(axis - first));
    top[axis] = q.bottoms[1][axis];
    q.require(offset + top[axis] <= in[axis],
              "offset " + std::to_string(offset) + " plus " + std::to_string(top[axis]) +
                  " (bottom " + q.bottom_text(1) + ") reach past axis " + std::to_string(axis) +
                  " of its bottom " + q.bottom_text(0) + ".");
  }
  return {{top}, {}};
}

layer_answer tile_rule(const layer_question& q) {
  const auto axis = q.axis_of(q.spec.tile_param().axis());
  const auto tiles = q.spec.tile_param().tiles();
  q.require(tiles > 0, "tiles is missing or not above 0. Say how many copies to make.");
  shape top = q.bottoms[0];
  top[axis] *= tiles;
  return {{top}, {}};
}

layer_answer reduction_rule(const layer_question& q) {
  const auto axis = q.axis_of(q.spec.reduction_param().axis());
  const auto from = q.bottoms[0].begin();
  return {{shape(from, from + static_cast<std::ptrdiff_t>(axis))}, {}};
}

layer_answer argmax_rule(const layer_question& q) {
  const auto& p = q.spec.argmax_param();
  const auto& in = q.bottoms[0];
  const std::int64_t top_k = p.top_k();
  const auto candidates = p.has_axis() ? in[q.axis_of(p.axis())]
                                       : count(in, std::min<std::size_t>(1, in.size()), in.size());
  q.require(top_k >= 1 && top_k <= candidates, "top_k is " + std::to_string(top_k) +
                                                   ", its bottom " + q.bottom_text(0) + " has " +
                                                   std::to_string(candidates) + " candidates.");
  shape top = in;
  if (p.has_axis()) {
    top[q.axis_of(p.axis())] = top_k;
  } else {
    top.assign(std::max<std::size_t>(3, in.size()), 1);
    top[0] = in.empty() ? 1 : in[0];
    top[1] = p.out_max_val() ? 2 : 1;
    top[2] = top_k;
  }
  return {{top}, {}};
}

layer_answer batch_reindex_rule(const layer_question& q) {
  q.require(q.bottoms[1].size() == 1 && !q.bottoms[0].empty(),
            "its second bottom " + q.bottom_text(1) + " must have one axis: the samples to take.");
  shape top = q.bottoms[0];
  top[0] = q.bottoms[1][0];
  return {{top}, {}};
}

/// The tops have at most the batch's number of samples; the actual number depends on the selector's values.
layer_answer filter_rule(const layer_question& q) {
  const auto last = q.bottoms.size() - 1;
  const auto& selector = q.bottoms[last];
  q.require(!selector.empty() && count(selector, 1, selector.size()) == 1,
            "its last bottom " + q.bottom_text(last) + " must hold one value per sample.");
  for (std::size_t i = 0; i < last; ++i)
    q.require(!q.bottoms[i].empty() && q.bottoms[i][0] == selector[0],
              "its bottom " + q.bottom_text(i) + " and the selector " + q.bottom_text(last) +
                  " have different numbers of samples.");
  return {{q.bottoms.begin(), q.bottoms.end() - 1}, {}};
}

layer_answer softmax_rule(const layer_question& q) {
  (void)q.axis_of(q.spec.softmax_param().axis());
  return same_shape_rule(q);
}

layer_answer dropout_rule(const layer_question& q) {
  const auto ratio = q.spec.dropout_param().dropout_ratio();
  q.require(ratio >= 0 && ratio <= 1,
            "dropout_ratio is " + plain_number(ratio) + ", it must lie between 0 and 1.");
  return same_shape_rule(q);
}

layer_answer clip_rule(const layer_question& q) {
  q.require(q.spec.has_clip_param(), "clip_param with min and max is missing.");
  return same_shape_rule(q);
}

layer_answer lstm_unit_rule(const layer_question& q) {
  const auto& c = q.bottoms[0];
  const auto& gates = q.bottoms[1];
  q.require(c.size() == 3 && c[0] == 1 && gates.size() == 3 && gates[0] == 1 && gates[1] == c[1] &&
                gates[2] == 4 * c[2],
            "its bottoms " + q.bottom_text(0) + " and " + q.bottom_text(1) +
                " must be 1xNxD and 1xNx4D.");
  q.require(q.bottoms[2] == shape{1, c[1]}, "its bottom " + q.bottom_text(2) + " must be 1xN.");
  return {{c, c}, {}};
}

}  // namespace poseidon
