// Layers that slide a window over the spatial axes: convolution, pooling, local response
// normalisation.
#include "models/net/convolution_windows.hpp"
#include "models/net/layer_rules.hpp"
#include "models/net/pyramid.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace poseidon {

namespace {

using extents = std::vector<std::int64_t>;
using repeated = google::protobuf::RepeatedField<std::uint32_t>;

/// The windows of a convolution, and the axis of its bottoms' channels.
struct window : convolution_windows {
  std::size_t channel_axis = 1;
};

/// `name` has to be given once for all axes, once per axis, or as name_h and name_w.
void check_axes(const layer_question& q, const std::string& name, std::size_t axes,
                const repeated& values, bool has_hw, bool has_default) {
  if (has_hw) {
    q.require(axes == 2, name + "_h and " + name + "_w are for 2 spatial axes, here are " +
                             std::to_string(axes) + ". Give " + name + " instead.");
    q.require(values.empty(),
              "both " + name + " and " + name + "_h/" + name + "_w are given. Keep one of them.");
    return;
  }
  const auto n = static_cast<std::size_t>(values.size());
  if (n == 0 && has_default) return;
  q.require(n == 1 || n == axes, name + " is given " + plural(n, "time") + " for " +
                                     plural(axes, "spatial dimension") +
                                     ". Give it once, or once per dimension.");
}

window window_of(const layer_question& q) {
  const auto& p = q.spec.convolution_param();
  const std::size_t channel_axis = q.axis_of(p.axis());
  const auto axes = q.bottoms[0].size() - channel_axis - 1;
  check_axes(q, "kernel_size", axes, p.kernel_size(), p.has_kernel_h() || p.has_kernel_w(), false);
  check_axes(q, "stride", axes, p.stride(), p.has_stride_h() || p.has_stride_w(), true);
  check_axes(q, "pad", axes, p.pad(), p.has_pad_h() || p.has_pad_w(), true);
  check_axes(q, "dilation", axes, p.dilation(), false, true);
  const window w{resolve_windows(p, axes), channel_axis};
  for (const auto* values : {&w.kernel, &w.stride, &w.dilation})
    for (const auto v : *values)
      q.require(v > 0, "kernel_size, stride and dilation must be above 0, one of them is 0.");
  for (std::size_t i = 1; i < q.bottoms.size(); ++i)
    q.require(q.bottoms[i] == q.bottoms[0], "its bottoms " + q.bottom_text(0) + " and " +
                                                q.bottom_text(i) +
                                                " differ. All of them must have one shape.");
  return w;
}

std::int64_t reach(const window& w, std::size_t i) {
  return w.dilation[i] * (w.kernel[i] - 1) + 1;
}

/// Extents of the tops' spatial axes, convolution.
extents outputs(const layer_question& q, const window& w) {
  extents out;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const auto padded = q.bottoms[0][w.channel_axis + 1 + i] + 2 * w.pad[i];
    q.require(padded >= reach(w, i), "its window of " + std::to_string(reach(w, i)) +
                                         " is larger than the padded input of " +
                                         std::to_string(padded) + " (bottom " + q.bottom_text(0) +
                                         ").");
    out.push_back((padded - reach(w, i)) / w.stride[i] + 1);
  }
  return out;
}

/// Weights [out, in / group, kernel...] and a bias; `reversed` for deconvolution.
std::vector<learned_blob> convolution_blobs(const layer_question& q, const window& w,
                                            bool reversed) {
  const auto& p = q.spec.convolution_param();
  const auto channels = q.bottoms[0][w.channel_axis];
  const std::int64_t filters = p.num_output(), group = p.group();
  q.require(filters > 0, "num_output is missing or 0. Say how many filters the layer learns.");
  q.require(group > 0 && channels % group == 0,
            "group is " + std::to_string(group) + ", which does not divide the " +
                std::to_string(channels) + " channels of its bottom " + q.bottom_text(0) + ".");
  q.require(filters % group == 0, "num_output is " + std::to_string(filters) +
                                      ", which its group of " + std::to_string(group) +
                                      " does not divide.");
  check_filler(q, p.weight_filler());
  shape weights{reversed ? channels : filters, (reversed ? filters : channels) / group};
  weights.insert(weights.end(), w.kernel.begin(), w.kernel.end());
  std::vector<learned_blob> blobs{{weights, p.weight_filler()}};
  if (p.bias_term()) {
    check_filler(q, p.bias_filler());
    blobs.push_back({{filters}, p.bias_filler()});
  }
  return blobs;
}

layer_answer with_outputs(const layer_question& q, const window& w, const extents& spatial,
                          bool reversed) {
  const auto from = q.bottoms[0].begin();
  shape top(from, from + static_cast<std::ptrdiff_t>(w.channel_axis));
  top.push_back(q.spec.convolution_param().num_output());
  top.insert(top.end(), spatial.begin(), spatial.end());
  auto learned = convolution_blobs(q, w, reversed);
  return {std::vector<shape>(q.tops, top), std::move(learned)};
}

/// What a file says of one extent of a window.
struct said_extent {
  std::string square, pair;  ///< the fields: `square`, or `pair`_h and `pair`_w
  std::optional<std::int64_t> h, w;
  std::int64_t both = 0;  ///< of `square`, or its default
  bool has_both = false;
};

/// One number, or an _h and _w pair; never both, never half a pair.
extents square_or_pair(const layer_question& q, const said_extent& e) {
  if (!e.h && !e.w) return {e.both, e.both};
  q.require(!e.has_both, "both " + e.square + " and " + e.pair + "_h/" + e.pair +
                             "_w are given. Keep one of them.");
  q.require(e.h && e.w,
            e.pair + "_h and " + e.pair + "_w belong together, one of them is missing.");
  return {*e.h, *e.w};
}

/// Caffe's pooled extent: the last window may hang over the edge, also the only one, but must not begin beyond it.
std::int64_t pooled(const layer_question& q, std::int64_t in, std::int64_t kernel,
                    std::int64_t stride, std::int64_t pad, bool any_pad) {
  const auto room = in + 2 * pad - kernel;
  const bool floor = q.spec.pooling_param().round_mode() == caffe::PoolingParameter::FLOOR;
  q.require(floor ? room >= 0 : room > -stride,
            "its window of " + std::to_string(kernel) + " is larger than the padded input of " +
                std::to_string(in + 2 * pad) + " (bottom " + q.bottom_text(0) + ").");
  auto out = room < 0 ? 1 : (floor ? room : room + stride - 1) / stride + 1;
  if (any_pad && (out - 1) * stride >= in + pad) --out;
  return out;
}

void require_images(const layer_question& q) {
  q.require(q.bottoms[0].size() == 4, "its bottom " + q.bottom_text(0) + " has " +
                                          std::to_string(q.bottoms[0].size()) +
                                          " axes, it needs 4: images, channels, height, width.");
}

}  // namespace

layer_answer convolution_rule(const layer_question& q) {
  const auto w = window_of(q);
  return with_outputs(q, w, outputs(q, w), false);
}

layer_answer deconvolution_rule(const layer_question& q) {
  const auto w = window_of(q);
  extents out;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const auto in = q.bottoms[0][w.channel_axis + 1 + i];
    out.push_back(w.stride[i] * (in - 1) + reach(w, i) - 2 * w.pad[i]);
    q.require(out.back() > 0, "pad " + std::to_string(w.pad[i]) +
                                  " leaves nothing of its output (bottom " + q.bottom_text(0) +
                                  ").");
  }
  return with_outputs(q, w, out, true);
}

layer_answer im2col_rule(const layer_question& q) {
  const auto w = window_of(q);
  const auto spatial = outputs(q, w);
  q.require(!spatial.empty(),
            "its bottom " + q.bottom_text(0) + " has no axis after the channels.");
  const auto from = q.bottoms[0].begin();
  shape top(from, from + static_cast<std::ptrdiff_t>(w.channel_axis + 1));
  for (const auto k : w.kernel) top.back() *= k;
  top.insert(top.end(), spatial.begin(), spatial.end());
  return {{top}, {}};
}

layer_answer pooling_rule(const layer_question& q) {
  const auto& p = q.spec.pooling_param();
  require_images(q);
  const auto height = q.bottoms[0][2], width = q.bottoms[0][3];
  const auto said = [](bool has, std::int64_t value) {
    return has ? std::optional(value) : std::nullopt;
  };
  auto kernel = square_or_pair(q, {.square = "kernel_size",
                                   .pair = "kernel",
                                   .h = said(p.has_kernel_h(), p.kernel_h()),
                                   .w = said(p.has_kernel_w(), p.kernel_w()),
                                   .both = p.kernel_size(),
                                   .has_both = p.has_kernel_size()});
  const auto stride = square_or_pair(q, {.square = "stride",
                                         .pair = "stride",
                                         .h = said(p.has_stride_h(), p.stride_h()),
                                         .w = said(p.has_stride_w(), p.stride_w()),
                                         .both = p.stride(),
                                         .has_both = p.has_stride()});
  const auto pad = square_or_pair(q, {.square = "pad",
                                      .pair = "pad",
                                      .h = said(p.has_pad_h(), p.pad_h()),
                                      .w = said(p.has_pad_w(), p.pad_w()),
                                      .both = p.pad(),
                                      .has_both = p.has_pad()});
  if (p.global_pooling()) {
    q.require(!p.has_kernel_size() && !p.has_kernel_h() && !p.has_kernel_w(),
              "global_pooling takes the whole image, so it cannot have a kernel_size.");
    q.require(pad == extents{0, 0} && stride == extents{1, 1},
              "global_pooling takes the whole image, so pad must be 0 and stride 1.");
    kernel = {height, width};
  }
  q.require(kernel[0] > 0 && kernel[1] > 0,
            "kernel_size is missing or 0. Give it, or global_pooling: true.");
  q.require(stride[0] > 0 && stride[1] > 0, "stride must be above 0.");
  const bool any_pad = pad[0] != 0 || pad[1] != 0;
  q.require(!any_pad || p.pool() != caffe::PoolingParameter::STOCHASTIC,
            "STOCHASTIC pooling cannot pad.");
  for (const int i : {0, 1})
    q.require(pad[i] == 0 || pad[i] < kernel[i], "pad " + std::to_string(pad[i]) +
                                                     " must be smaller than the kernel of " +
                                                     std::to_string(kernel[i]) + ".");
  const shape top{q.bottoms[0][0], q.bottoms[0][1],
                  pooled(q, height, kernel[0], stride[0], pad[0], any_pad),
                  pooled(q, width, kernel[1], stride[1], pad[1], any_pad)};
  return {std::vector<shape>(q.tops, top), {}};
}

constexpr std::uint32_t largest_window = 9999;

layer_answer lrn_rule(const layer_question& q) {
  require_images(q);
  const auto size = q.spec.lrn_param().local_size();
  q.require(size % 2 == 1,
            "local_size is " + std::to_string(size) + ", it must be odd: the window has a middle.");
  // Kernels pad with half a window on each side.
  q.require(size <= largest_window, "local_size is " + std::to_string(size) + ", at most " +
                                        std::to_string(largest_window) + " is possible.");
  return same_shape_rule(q);
}

layer_answer spp_rule(const layer_question& q) {
  require_images(q);
  const std::int64_t levels = q.spec.spp_param().pyramid_height();
  q.require(levels >= 1 && levels <= 16,
            "pyramid_height is " + std::to_string(levels) + ", it must be 1 to 16.");
  std::int64_t bins_of_all = 0;
  for (std::int64_t level = 0; level < levels; ++level) {
    std::int64_t windows = 1;
    for (const int axis : {2, 3}) {
      const auto in = q.bottoms[0][static_cast<std::size_t>(axis)];
      const auto a = pyramid_axis_of(in, level);
      q.require(a.pad < a.kernel, "level " + std::to_string(level) + " of its pyramid cuts " +
                                      std::to_string(in) + " pixels (bottom " + q.bottom_text(0) +
                                      ") into " + std::to_string(std::int64_t{1} << level) +
                                      " bins, which leaves some of them empty. Lower "
                                      "pyramid_height.");
      windows *= a.out;
    }
    bins_of_all += windows;
  }
  // One level is plain pooling in Caffe, not flattened.
  if (levels == 1) return {{{q.bottoms[0][0], q.bottoms[0][1], 1, 1}}, {}};
  return {{{q.bottoms[0][0], q.bottoms[0][1] * bins_of_all}}, {}};
}

}  // namespace poseidon
