#include "cpu/bf16_products.hpp"

namespace poseidon::cpu {

namespace {

using type = dnnl::memory::data_type;
using tag = dnnl::memory::format_tag;

dnnl_desc matrix_of(std::size_t rows, std::size_t columns, type of, tag order) {
  return {
      {static_cast<dnnl::memory::dim>(rows), static_cast<dnnl::memory::dim>(columns)}, of, order};
}

}  // namespace

void bf16_products::make_forward(std::optional<float> relu) {
  const auto [rows, in, out, transposed, wide] = sizes_;
  dnnl::primitive_attr attributes = run_->attributes();
  if (relu) attributes.set_post_ops(then_relu(*relu));
  const auto x = matrix_of(rows, in, type::bf16, tag::ab),
             packed = matrix_of(in, out, type::bf16, tag::any),
             bias = matrix_of(1, out, type::f32, tag::ab),
             y = matrix_of(rows, out, wide ? type::f32 : type::bf16, tag::ab);
  const auto d =
      bias_.exists()
          ? forward_descriptor<dnnl::matmul>(run_->engine(), attributes, x, packed, bias, y)
          : forward_descriptor<dnnl::matmul>(run_->engine(), attributes, x, packed, y);
  forward_ = product_step(*run_, d);
  if (bias_.exists()) forward_.bind(DNNL_ARG_BIAS, bias);
  const auto in_file = matrix_of(in, out, type::f32, transposed ? tag::ab : tag::ba);
  for_forward_ = packed_weights(*run_, weights_, in_file, d.weights_desc());
}

void bf16_products::make_data() {
  const auto [rows, in, out, transposed, wide] = sizes_;
  const auto d = forward_descriptor<dnnl::matmul>(
      run_->engine(), run_->attributes(), matrix_of(rows, out, type::bf16, tag::ab),
      matrix_of(out, in, type::bf16, tag::any),
      matrix_of(rows, in, wide ? type::f32 : type::bf16, tag::ab));
  data_ = product_step(*run_, d);
  const auto in_file = matrix_of(out, in, type::f32, transposed ? tag::ba : tag::ab);
  for_data_ = packed_weights(*run_, weights_, in_file, d.weights_desc());
}

void bf16_products::make_weights() {
  const auto [rows, in, out, transposed, wide] = sizes_;
  // As many rows as the weights have in the file.
  const std::size_t first = transposed ? in : out, second = transposed ? out : in;
  gradient_ = product_step(
      *run_, forward_descriptor<dnnl::matmul>(run_->engine(), run_->attributes(),
                                              matrix_of(first, rows, type::bf16, tag::ba),
                                              matrix_of(rows, second, type::bf16, tag::ab),
                                              matrix_of(first, second, type::f32, tag::ab)));
}

void bf16_products::forward(const float* x, float* y) {
  forward_.point(DNNL_ARG_SRC, x);
  forward_.point(DNNL_ARG_WEIGHTS, for_forward_.load());
  if (bias_.exists()) forward_.point(DNNL_ARG_BIAS, bias_.values());
  forward_.point(DNNL_ARG_DST, y);
  forward_.run();
}

void bf16_products::backward_data(const float* dy, float* dx) {
  data_.point(DNNL_ARG_SRC, dy);
  data_.point(DNNL_ARG_WEIGHTS, for_data_.load());
  data_.point(DNNL_ARG_DST, dx);
  data_.run();
}

void bf16_products::backward_weights(const float* x, const float* dy, float* dw) {
  gradient_.point(DNNL_ARG_SRC, sizes_.transposed ? x : dy);
  gradient_.point(DNNL_ARG_WEIGHTS, sizes_.transposed ? dy : x);
  gradient_.point(DNNL_ARG_DST, dw);
  gradient_.run();
}

}  // namespace poseidon::cpu
