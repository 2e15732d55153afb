// Pooling over bfloat16 against the kernels over float32: the same values, the same choices, and gradients rounded once.
#include "cpu/kernels/bf16_pool.hpp"

#include "cpu/cpu_device.hpp"
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/max_pool.hpp"
#include "tests/cpu/hand_net.hpp"

#include <initializer_list>
#include <random>

using namespace poseidon;
using cpu::bfloat16;
using cpu::layout;

namespace {

std::vector<bfloat16> values_of(std::size_t size, unsigned seed) {
  std::vector<bfloat16> out;
  // A few values, so that windows have equals.
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < size; ++i)
    out.push_back(bfloat16(static_cast<float>(static_cast<int>(random() % 9) - 4) * 0.37f));
  return out;
}

/// From one layout of bfloat16 to floats in blocks of sixteen channels.
std::vector<float> in_blocks(const shape& s, layout form, const std::vector<bfloat16>& from) {
  std::vector<float> out(cpu::stored_size(s, layout::c16));
  cpu::relayout(s, form, reinterpret_cast<const float*>(from.data()), layout::c16, out.data());
  return out;
}

}  // namespace

TEST_CASE("bf16_pool: has the results of the kernels over float32, in blocks and in pixels") {
  if (!multiplies_bf16()) return;
  std::mt19937 random(20261130);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  for (unsigned walk = 0; walk < 200; ++walk) {
    pool_shape s;
    s.kernel_h = one_of({1, 2, 3, 3, 5}), s.kernel_w = one_of({1, 2, 3, 3, 7});
    s.stride_h = one_of({1, 2, 2, 3}), s.stride_w = one_of({1, 2, 2, 3});
    s.pad_h = one_of({0, 0, 1, 2}) % s.kernel_h, s.pad_w = one_of({0, 0, 1, 3}) % s.kernel_w;
    s.height = one_of({3, 7, 8, 13}) + s.kernel_h, s.width = one_of({3, 6, 9, 14}) + s.kernel_w;
    // The last window begins in the image or in its near padding, as Caffe has it.
    s.out_height = (s.height + s.pad_h - s.kernel_h) / s.stride_h + 1;
    s.out_width = (s.width + s.pad_w - s.kernel_w) / s.stride_w + 1;
    const int channels = one_of({16, 32, 48});
    const shape in{2, channels, s.height, s.width}, out{2, channels, s.out_height, s.out_width};
    const std::size_t blocks = 2 * static_cast<std::size_t>(channels) / 16;
    for (const layout form : {layout::c16_bf16, layout::pixels_bf16}) {
      CAPTURE(walk);
      CAPTURE(form == layout::pixels_bf16);
      const cpu::bf16_images of_x{cpu::places_of(form, cpu::image_of(in)), 2},
          of_y{cpu::places_of(form, cpu::image_of(out)), 2};
      const auto x = values_of(cpu::stored_size(in, form), walk),
                 dy = values_of(cpu::stored_size(out, form), walk + 1);
      std::vector<bfloat16> y(dy.size()), dx(x.size(), bfloat16(7.0f));
      std::vector<std::uint8_t> choice(y.size());
      cpu::max_pool_forward(s, of_x, x.data(), of_y, y.data(), choice.data());
      cpu::max_pool_backward(s, of_y, dy.data(), choice.data(), of_x, dx.data());

      const auto wide_x = in_blocks(in, form, x), wide_dy = in_blocks(out, form, dy);
      std::vector<float> wide_y(wide_dy.size()), wide_dx(wide_x.size());
      std::vector<std::uint8_t> wide_choice(wide_y.size());
      cpu::max_pool_forward<16>(s, blocks, wide_x.data(), wide_y.data(), wide_choice.data());
      cpu::max_pool_backward<16>(s, blocks, wide_dy.data(), wide_choice.data(), wide_dx.data());
      for (float& v : wide_dx) v = bfloat16(v);
      REQUIRE(in_blocks(out, form, y) == wide_y);
      REQUIRE(in_blocks(in, form, dx) == wide_dx);

      cpu::ave_pool_forward(s, of_x, x.data(), of_y, y.data());
      cpu::ave_pool_backward(s, of_y, dy.data(), of_x, dx.data());
      cpu::ave_pool_forward<16>(s, blocks, wide_x.data(), wide_y.data());
      cpu::ave_pool_backward<16>(s, blocks, wide_dy.data(), wide_dx.data());
      for (float& v : wide_y) v = bfloat16(v);
      REQUIRE(in_blocks(out, form, y) == wide_y);
      // It divides a sum, where the other kernel divides each summand.
      const auto narrow_dx = in_blocks(in, form, dx);
      for (std::size_t i = 0; i < wide_dx.size(); ++i)
        REQUIRE(narrow_dx[i] == doctest::Approx(wide_dx[i]).epsilon(0.005));
    }
  }
}
