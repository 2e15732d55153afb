#include "cpu/winograd.hpp"

#include "cpu/winograd_product.hpp"
#include "cpu/winograd_tiles.hpp"
#include "cpu/winograd_weights.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

using namespace winograd;

/// What lies in the scratch memory, one after the other.
struct workplace {
  float *bias, *weights, *inputs, *outputs, *strip;

  workplace(const winograd_shape& s, float* scratch) : bias(scratch) {
    weights = bias + blocks_of(s.out.channels) * lanes;
    inputs = weights + weights_of(s.in.channels, s.out.channels).size();
    outputs = inputs + tiles_of(s.in).size();
    strip = outputs + tiles_of(s.out).size();
  }
  static std::size_t floats(const winograd_shape& s) {
    return blocks_of(s.out.channels) * lanes + weights_of(s.in.channels, s.out.channels).size() +
           tiles_of(s.in).size() + tiles_of(s.out).size() + strip_floats;
  }
};

/// Calls f(tiles, next) for all tiles, some at a time; of `next` there may be none.
template <class F>
void each_range(const winograd_shape& s, F f) {
  const std::size_t all = tiles_in(s);
  const auto from = [&](std::size_t first) {
    return tile_range{s.out, first, std::min(tiles_at_once, all - std::min(all, first))};
  };
  for (std::size_t first = 0; first < all; first += tiles_at_once)
    f(from(first), from(first + tiles_at_once));
}

void convolve(const winograd_shape& s, const weight_order& order, const float* x,
              const float* weights, const winograd_ending& ending, float* y, float* scratch) {
  const workplace at(s, scratch);
  spread_weights(order, weights, at.weights);
  std::fill_n(at.bias, blocks_of(s.out.channels) * lanes, 0.0f);
  if (ending.bias != nullptr) std::copy_n(ending.bias, s.out.channels, at.bias);
  prefetcher ahead;
  each_range(s, [&](const tile_range& tiles, const tile_range& next) {
    transform_inputs(tiles, s.in, s.pad_h, s.pad_w, x, at.strip, at.inputs);
    ahead.clear();
    ahead.add(tiles, s.out, y);
    ahead.add(next, s.in, x);
    multiply(s, tiles.count, at.inputs, at.weights, at.outputs, ahead);
    write_outputs(tiles, at.outputs, at.bias, ending.slope, y);
  });
}

void add_up(const winograd_shape& s, const float* x, const float* dy, float* dw, float* db,
            float* scratch) {
  const workplace at(s, scratch);
  std::fill_n(at.weights, weights_of(s.in.channels, s.out.channels).size(), 0.0f);
  prefetcher ahead;
  each_range(s, [&](const tile_range& tiles, const tile_range& next) {
    transform_inputs(tiles, s.in, s.pad_h, s.pad_w, x, at.strip, at.inputs);
    transform_gradients(tiles, dy, at.strip, at.outputs);
    ahead.clear();
    ahead.add(next, s.in, x);
    ahead.add(next, s.out, dy);
    add_products(s, tiles.count, at.inputs, at.outputs, at.weights, ahead);
  });
  gather_gradient(forward_order(s), at.weights, dw);
  if (db == nullptr) return;
  sum_planes(s, dy, at.bias);
  std::copy_n(at.bias, s.out.channels, db);
}

/// The convolution from the gradient of y to that of x.
winograd_shape turned(const winograd_shape& s) {
  return {s.samples, s.out, s.in, taps - 1 - s.pad_h, taps - 1 - s.pad_w};
}

}  // namespace

winograd_convolution::winograd_convolution(const winograd_shape& s, std::size_t groups)
    : shape_(s),
      groups_(groups),
      scratch_(std::max(workplace::floats(s), workplace::floats(turned(s)))) {}

template <class F>
void winograd_convolution::each_group(F f) const {
  const auto floats = [](const winograd_image& i) {
    return blocks_of(i.channels) * i.height * i.width * lanes;
  };
  const std::size_t weights = shape_.in.channels * shape_.out.channels * all_taps;
  for (std::size_t g = 0; g < groups_; ++g)
    f(g * floats(shape_.in), g * floats(shape_.out), g * weights, g * shape_.out.channels);
}

void winograd_convolution::forward(const float* x, const float* weights,
                                   const winograd_ending& ending, float* y, float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t b) {
    const float* bias = ending.bias != nullptr ? ending.bias + b : nullptr;
    convolve(shape_, forward_order(shape_), x + in, weights + w, {bias, ending.slope}, y + out,
             scratch);
  });
}

void winograd_convolution::backward_data(const float* dy, const float* weights, float* dx,
                                         float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t) {
    convolve(turned(shape_), backward_order(shape_), dy + out, weights + w, {}, dx + in, scratch);
  });
}

void winograd_convolution::backward_weights(const float* x, const float* dy, float* dw, float* db,
                                            float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t b) {
    add_up(shape_, x + in, dy + out, dw + w, db != nullptr ? db + b : nullptr, scratch);
  });
}

}  // namespace poseidon::cpu
