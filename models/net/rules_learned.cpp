// Layers whose learned blobs are not windows: inner product, embedding, scale, bias, normalisation.
#include "models/net/layer_rules.hpp"
#include "models/words.hpp"

namespace poseidon {

namespace {

caffe::FillerParameter constant(float value) {
  caffe::FillerParameter filler;
  filler.set_type("constant");
  filler.set_value(value);
  return filler;
}

shape part(const shape& s, std::size_t from, std::size_t axes) {
  const auto first = s.begin() + static_cast<std::ptrdiff_t>(from);
  return {first, first + static_cast<std::ptrdiff_t>(axes)};
}

/// The axes of bottom 0 that a scale or bias of its own spans.
shape own_factor(const layer_question& q, std::int64_t axis, std::int64_t num_axes) {
  const auto& bottom = q.bottoms[0];
  const auto first = num_axes == 0 && bottom.empty() ? 0 : q.axis_of(axis);
  q.require(num_axes >= -1, "num_axes is " + std::to_string(num_axes) +
                                ", it must be -1 (to the last axis) or more.");
  const auto axes = num_axes == -1 ? bottom.size() - first : static_cast<std::size_t>(num_axes);
  q.require(first + axes <= bottom.size(), "axis " + std::to_string(axis) + " and num_axes " +
                                               std::to_string(num_axes) + " reach past the " +
                                               std::to_string(bottom.size()) +
                                               " axes of its bottom " + q.bottom_text(0) + ".");
  return part(bottom, first, axes);
}

/// A second bottom must be a run of the first one's axes.
void check_second_bottom(const layer_question& q, std::int64_t axis) {
  if (q.bottoms.size() < 2 || q.bottoms[1].empty()) return;
  const auto first = q.axis_of(axis);
  const auto& factor = q.bottoms[1];
  q.require(first + factor.size() <= q.bottoms[0].size() &&
                part(q.bottoms[0], first, factor.size()) == factor,
            "its bottom " + q.bottom_text(1) + " does not match the axes from " +
                std::to_string(axis) + " on of " + q.bottom_text(0) + ".");
}

}  // namespace

layer_answer inner_product_rule(const layer_question& q) {
  const auto& p = q.spec.inner_product_param();
  const std::int64_t out = p.num_output();
  q.require(out > 0, "num_output is missing or 0. Say how many outputs the layer has.");
  const auto axis = q.axis_of(p.axis());
  const auto in = count(q.bottoms[0], axis, q.bottoms[0].size());
  check_filler(q, p.weight_filler());
  layer_answer a;
  a.learned.push_back({p.transpose() ? shape{in, out} : shape{out, in}, p.weight_filler()});
  if (p.bias_term()) {
    check_filler(q, p.bias_filler());
    a.learned.push_back({{out}, p.bias_filler()});
  }
  a.tops.push_back(part(q.bottoms[0], 0, axis));
  a.tops[0].push_back(out);
  return a;
}

layer_answer embed_rule(const layer_question& q) {
  const auto& p = q.spec.embed_param();
  const std::int64_t out = p.num_output(), in = p.input_dim();
  q.require(out > 0 && in > 0, "num_output is " + std::to_string(out) + " and input_dim " +
                                   std::to_string(in) + ". Both must be given and above 0.");
  check_filler(q, p.weight_filler());
  layer_answer a{{q.bottoms[0]}, {{{in, out}, p.weight_filler()}}};
  a.tops[0].push_back(out);
  if (p.bias_term()) {
    check_filler(q, p.bias_filler());
    a.learned.push_back({{out}, p.bias_filler()});
  }
  return a;
}

layer_answer batch_norm_rule(const layer_question& q) {
  q.require(!q.bottoms[0].empty(), "its bottom " + q.bottom_text(0) + " has no axes.");
  for (const auto& param : q.spec.param())
    q.require(param.lr_mult() == 0,
              "a param has lr_mult " + plain_number(param.lr_mult()) +
                  ", but the statistics of BatchNorm are not learned by the solver. "
                  "Give lr_mult: 0, or no param.");
  const auto channels = q.bottoms[0].size() == 1 ? std::int64_t{1} : q.bottoms[0][1];
  return {{q.bottoms[0]},
          {{{channels}, constant(0)}, {{channels}, constant(0)}, {{1}, constant(0)}}};
}

layer_answer bias_rule(const layer_question& q) {
  const auto& p = q.spec.bias_param();
  check_second_bottom(q, p.axis());
  layer_answer a{{q.bottoms[0]}, {}};
  if (q.bottoms.size() == 1) {
    check_filler(q, p.filler());
    a.learned.push_back({own_factor(q, p.axis(), p.num_axes()), p.filler()});
  }
  return a;
}

layer_answer scale_rule(const layer_question& q) {
  const auto& p = q.spec.scale_param();
  check_second_bottom(q, p.axis());
  layer_answer a{{q.bottoms[0]}, {}};
  if (q.bottoms.size() == 1) {
    const auto filler = p.has_filler() ? p.filler() : constant(1);
    check_filler(q, filler);
    a.learned.push_back({own_factor(q, p.axis(), p.num_axes()), filler});
  }
  if (p.bias_term()) {
    check_filler(q, p.bias_filler());
    a.learned.push_back(
        {q.bottoms.size() == 1 ? a.learned[0].shape : q.bottoms[1], p.bias_filler()});
  }
  return a;
}

layer_answer prelu_rule(const layer_question& q) {
  const auto& p = q.spec.prelu_param();
  q.require(q.bottoms[0].size() >= 2,
            "its bottom " + q.bottom_text(0) + " has no axis of channels (axis 1).");
  const auto filler = p.has_filler() ? p.filler() : constant(0.25f);
  check_filler(q, filler);
  return {{q.bottoms[0]}, {{p.channel_shared() ? shape{} : shape{q.bottoms[0][1]}, filler}}};
}

layer_answer parameter_rule(const layer_question& q) {
  const auto& dims = q.spec.parameter_param().shape().dim();
  const shape s(dims.begin(), dims.end());
  for (const auto extent : s)
    q.require(extent > 0, "its shape " + to_string(s) + " has an extent below 1.");
  return {{s}, {{s, constant(0)}}};
}

}  // namespace poseidon
