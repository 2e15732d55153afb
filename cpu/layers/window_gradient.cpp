#include "cpu/layers/window_gradient.hpp"

#include <algorithm>

namespace poseidon::cpu {

namespace {

/// A row of a window is rounded and stored in one piece, past its end.
constexpr std::size_t piece = 16;
constexpr std::size_t most_channels = 4;

dnnl_desc matrix_of(std::size_t rows, std::size_t columns, dnnl::memory::data_type type,
                    std::size_t row_step, std::size_t column_step) {
  const auto dim = [](std::size_t v) { return static_cast<dnnl::memory::dim>(v); };
  return {{dim(rows), dim(columns)}, type, dnnl::memory::dims{dim(row_step), dim(column_step)}};
}

}  // namespace

bool window_gradient::suits(const convolution_shape& s) {
  return multiplies_bf16_tiles() && s.axes() == 2 && s.groups == 1 && s.in <= most_channels &&
         s.out % block_of(layout::pixels_bf16) == 0 && s.dilation[0] == 1 && s.dilation[1] == 1 &&
         static_cast<std::size_t>(s.kernel[1]) <= piece;
}

window_gradient::window_gradient(dnnl_run& run, const convolution_shape& s, const shape& bottom,
                                 const shape& top)
    : shape_(s),
      images_(static_cast<std::size_t>(bottom[0])),
      height_(static_cast<std::size_t>(bottom[2])),
      width_(static_cast<std::size_t>(bottom[3])),
      rows_(static_cast<std::size_t>(top[2])),
      columns_(static_cast<std::size_t>(top[3])),
      padded_height_(height_ + 2 * static_cast<std::size_t>(s.pad[0])),
      padded_width_(width_ + 2 * static_cast<std::size_t>(s.pad[1])),
      window_(s.in * static_cast<std::size_t>(s.kernel[0] * s.kernel[1])),
      row_((window_ + piece + 31) / 32 * 32),
      padded_(s.in * padded_height_ * padded_width_ + piece),
      windows_(floats_of(rows_ * columns_ * row_, layout::plain_bf16)) {
  using type = dnnl::memory::data_type;
  const std::size_t pixels = rows_ * columns_;
  const auto dy = matrix_of(s.out, pixels, type::bf16, 1, s.out),
             x = matrix_of(pixels, window_, type::bf16, row_, 1),
             dw = matrix_of(s.out, window_, type::f32, window_, 1);
  for (const bool adds : {false, true}) {
    auto attributes = run.attributes();
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    if (adds) attributes.set_post_ops(sum);
    (adds ? further_ : first_) =
        product_step(run, forward_descriptor<dnnl::matmul>(run.engine(), attributes, dy, x, dw));
  }
}

void window_gradient::run(const float* x, const bfloat16* dy, float* dw, float* db) {
  const std::size_t image = shape_.in * height_ * width_, pixels = rows_ * columns_;
  for (std::size_t n = 0; n < images_; ++n) {
    pad(x + n * image);
    collect_windows();
    dnnl_step& step = n == 0 ? first_ : further_;
    step.point(DNNL_ARG_SRC, reinterpret_cast<const float*>(dy + n * pixels * shape_.out));
    step.point(DNNL_ARG_WEIGHTS, windows_.data());
    step.point(DNNL_ARG_DST, dw);
    step.run();
  }
  if (db != nullptr) sum_pixels(dy, images_ * pixels, shape_.out, db);
}

/// What lies around the image stays zero.
void window_gradient::pad(const float* image) {
  const auto top = static_cast<std::size_t>(shape_.pad[0]),
             left = static_cast<std::size_t>(shape_.pad[1]);
  for (std::size_t c = 0; c < shape_.in; ++c)
    for (std::size_t y = 0; y < height_; ++y)
      std::copy_n(image + (c * height_ + y) * width_, width_,
                  padded_.data() + (c * padded_height_ + y + top) * padded_width_ + left);
}

void window_gradient::collect_windows() {
  const auto tall = static_cast<std::size_t>(shape_.kernel[0]),
             wide = static_cast<std::size_t>(shape_.kernel[1]);
  const auto down = static_cast<std::size_t>(shape_.stride[0]),
             right = static_cast<std::size_t>(shape_.stride[1]);
  auto* to = as<bfloat16>(windows_.data());
  for (std::size_t y = 0; y < rows_; ++y)
    for (std::size_t x = 0; x < columns_; ++x, to += row_) {
      bfloat16* at = to;
      // The next row of the window overwrites what is stored past the end of this one.
      for (std::size_t c = 0; c < shape_.in; ++c) {
        const float* from =
            padded_.data() + (c * padded_height_ + y * down) * padded_width_ + x * right;
        for (std::size_t k = 0; k < tall; ++k, from += padded_width_, at += wide) {
          store(at, load<eight>(from));
          if (wide > 8) store(at + 8, load<eight>(from + 8));
        }
      }
    }
}

}  // namespace poseidon::cpu
