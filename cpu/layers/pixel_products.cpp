// cpu/layers/pixel_products.cpp
//
// A convolution of one pixel is y [pixels, out] = x [pixels, in] W^T + b. In layout::pixels_bf16 the blobs are these matrices, and oneDNN's
// products of matrices are up to five times as fast as its convolutions in the gradient of the weights, which they also leave in
// Caffe's order (512 to 128 channels at 28x28, batch 32, one core with AMX, GFLOP/s: forward 310 to 980, of data 180 to 780, of
// weights 120 to 550). With a stride the pixels that count are gathered first.
#include "cpu/layers/pixel_products.hpp"

#include "cpu/bf16_products.hpp"
#include "cpu/channels.hpp"
#include "cpu/convolution_shape.hpp"
#include "cpu/fusion.hpp"

#include <algorithm>
#include <cstring>

namespace poseidon::cpu {
namespace {

/// The pixels of an image that windows of one pixel look at.
struct pixel_grid {
  std::size_t images, height, width;  // of the bottom
  std::size_t rows, columns;          // of the top
  std::size_t down, right;            // strides

  [[nodiscard]] std::size_t size() const { return images * rows * columns; }
  [[nodiscard]] bool is_whole() const { return rows == height && columns == width; }
  /// Calls f(pixel of the bottom, pixel of the grid).
  template <class F>
  void each(F f) const {
    for (std::size_t n = 0, to = 0; n < images; ++n)
      for (std::size_t y = 0; y < rows; ++y)
        for (std::size_t x = 0; x < columns; ++x, ++to)
          f((n * height + y * down) * width + x * right, to);
  }
};

pixel_grid grid_of(const layer_context& c, const convolution_shape& s) {
  const shape &from = c.bottom_shape(0), &to = c.top_shape(0);
  const auto of = [](const shape& extents, std::size_t axis) {
    return static_cast<std::size_t>(extents[axis]);
  };
  return {of(from, 0),
          of(from, 2),
          of(from, 3),
          of(to, 2),
          of(to, 3),
          static_cast<std::size_t>(s.stride[0]),
          static_cast<std::size_t>(s.stride[1])};
}

class pixel_products_kernel final : public kernel {
 public:
  explicit pixel_products_kernel(const layer_context& c)
      : shape_(resolve_convolution(c.layer, c.bottom_shape(0))),
        grid_(grid_of(c, shape_)),
        products_(c.state.dnnl, {.rows = grid_.size(), .in = shape_.in, .out = shape_.out},
                  c.parameter(0), shape_.bias ? c.parameter(1) : parameter_reader()),
        weight_gradient_(c.gradient(0)),
        bias_gradient_(shape_.bias ? c.gradient(1) : gradient_slot()),
        x_(c.bottom(0), part::data, layout::pixels_bf16),
        y_(c.top(0), part::data, layout::pixels_bf16) {
    if (!grid_.is_whole())
      gathered_ = buffer(floats_of(grid_.size() * shape_.in, layout::pixels_bf16));
    const auto relu = relu_in_place_after(c);
    if (relu) c.state.forward_fused[relu->layer] = true;
    products_.make_forward(relu ? std::optional(relu->slope) : std::nullopt);
    if (!c.state.has_backward()) return;
    if (weight_gradient_.wanted()) products_.make_weights();
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::pixels_bf16);
    if (dx_.exists()) products_.make_data();
    if (weight_gradient_.wanted() || bias_gradient_.wanted() || dx_.exists())
      dy_ = view(c.top(0), part::diff, layout::pixels_bf16);
  }

  void forward(const pass&) override {
    products_.forward(gather(x_.load()), y_.memory());
    y_.store();
  }

  void backward(const pass&) override {
    if (!dy_.exists()) return;
    const float* dy = dy_.load();
    if (weight_gradient_.wanted()) {
      products_.backward_weights(gather(x_.load()), dy, weight_gradient_.begin());
      weight_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      sum_pixels(as<bfloat16>(dy), grid_.size(), shape_.out, bias_gradient_.begin());
      bias_gradient_.end();
    }
    if (!dx_.exists()) return;
    float* dx = dx_.memory();
    products_.backward_data(dy, grid_.is_whole() ? dx : gathered_.data());
    if (!grid_.is_whole()) scatter(dx);
    dx_.store();
  }

 private:
  [[nodiscard]] const float* gather(const float* x) {
    if (grid_.is_whole()) return x;
    const auto* from = as<bfloat16>(x);
    auto* to = as<bfloat16>(gathered_.data());
    grid_.each([&](std::size_t pixel, std::size_t place) {
      std::memcpy(to + place * shape_.in, from + pixel * shape_.in, shape_.in * sizeof(bfloat16));
    });
    return gathered_.data();
  }

  /// Pixels that no window looks at have no gradient.
  void scatter(float* dx) const {
    const auto* from = as<bfloat16>(gathered_.data());
    auto* to = as<bfloat16>(dx);
    std::memset(to, 0, grid_.images * grid_.height * grid_.width * shape_.in * sizeof(bfloat16));
    grid_.each([&](std::size_t pixel, std::size_t place) {
      std::memcpy(to + pixel * shape_.in, from + place * shape_.in, shape_.in * sizeof(bfloat16));
    });
  }

  convolution_shape shape_;
  pixel_grid grid_;
  bf16_products products_;
  gradient_slot weight_gradient_, bias_gradient_;
  view x_, y_, dx_, dy_;
  buffer gathered_;  ///< the pixels that count, of the bottom or of its diff
};

}  // namespace

bool suits_pixel_products(const net& graph, const net_layer& layer, const shape& bottom,
                          cpu_math math) {
  if (math != cpu_math::bf16 || !multiplies_bf16_tiles() || layer.bottoms.size() != 1) return false;
  if (choose_layouts(graph, layer, math).in != layout::pixels_bf16) return false;
  const convolution_shape s = resolve_convolution(layer, bottom);
  const std::size_t block = block_of(layout::pixels_bf16);
  return s.axes() == 2 && s.groups == 1 && s.kernel[0] == 1 && s.kernel[1] == 1 && s.pad[0] == 0 &&
         s.pad[1] == 0 && s.in % block == 0 && s.out % block == 0;
}

std::unique_ptr<kernel> make_pixel_products(const layer_context& c) {
  return std::make_unique<pixel_products_kernel>(c);
}

}  // namespace poseidon::cpu
