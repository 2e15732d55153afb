// cpu/winograd/group.hpp - the three passes of one group of channels.
#pragma once
#include "cpu/winograd/product.hpp"
#include "cpu/winograd/tile_transforms.hpp"
#include "cpu/winograd/weights.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// The room that a pass needs.
template <class Form>
struct work {
  std::size_t tiles;  ///< at a time
  spectrum u, v, m;   ///< inputs, weights and outputs

  explicit work(const winograd_shape& s)
      : tiles(tiles_at_once<Form>(s)),
        u(tiles_of<Form>(s.in, tiles)),
        v(weights_of<Form>(s.in.channels, s.out.channels)),
        m(tiles_of<Form>(s.out, tiles)) {}
  [[nodiscard]] std::size_t bias() const { return (m.blocks * lanes + 15) / 16 * 16; }
  [[nodiscard]] std::size_t floats() const {
    return bias() + v.size() + u.size() + m.size() + strip<Form>(tiles).size();
  }
};

/// Where it lies in the scratch memory, one after the other.
template <class Form>
struct workplace : work<Form> {
  float *bias, *weights, *inputs, *outputs, *strips;

  workplace(const winograd_shape& s, float* scratch)
      : work<Form>(s),
        bias(scratch),
        weights(bias + work<Form>::bias()),
        inputs(weights + this->v.size()),
        outputs(inputs + this->u.size()),
        strips(outputs + this->m.size()) {}
};

/// Calls f(tiles, next) for all tiles, some at a time; of `next` there may be none.
template <class F>
void each_range(const winograd_shape& s, std::size_t at_once, F f) {
  const std::size_t all = tiles_in(s);
  const auto from = [&](std::size_t first) {
    return tile_range{s.out, at_once, first, std::min(at_once, all - std::min(all, first))};
  };
  for (std::size_t first = 0; first < all; first += at_once) f(from(first), from(first + at_once));
}

template <class Form>
void convolve(const winograd_shape& s, const weight_order& order, const float* x,
              const float* weights, const winograd_ending& ending, float* y, float* scratch) {
  const workplace<Form> at(s, scratch);
  spread_weights<Form>(order, weights, at.weights);
  std::fill_n(at.bias, at.m.blocks * lanes, 0.0f);
  if (ending.bias != nullptr) std::copy_n(ending.bias, s.out.channels, at.bias);
  prefetcher ahead;
  each_range(s, at.tiles, [&](const tile_range& tiles, const tile_range& next) {
    transform_inputs<Form>(tiles, s.in, s.pad_h, s.pad_w, x, at.strips, at.inputs);
    ahead.clear();
    ahead.add(tiles, s.out, y);
    ahead.add(next, s.in, x);
    multiply(tiles.count, s.in.channels, at.u, at.inputs, at.v, at.weights, at.m, at.outputs,
             ahead);
    write_outputs<Form>(tiles, at.outputs, at.bias, ending.slope, y);
  });
}

template <class Form>
void forward(const winograd_shape& s, const float* x, const float* weights,
             const winograd_ending& ending, float* y, float* scratch) {
  convolve<Form>(s, forward_order<Form>(s), x, weights, ending, y, scratch);
}

/// The convolution from the gradient of y to that of x.
template <class Form>
winograd_shape turned(const winograd_shape& s) {
  return {s.samples, s.out, s.in, Form::taps - 1 - s.pad_h, Form::taps - 1 - s.pad_w};
}

template <class Form>
void backward_data(const winograd_shape& s, const float* dy, const float* weights, float* dx,
                   float* scratch) {
  convolve<Form>(turned<Form>(s), backward_order<Form>(s), dy, weights, {}, dx, scratch);
}

template <class Form>
void backward_weights(const winograd_shape& s, const float* x, const float* dy, float* dw,
                      float* db, float* scratch) {
  const workplace<Form> at(s, scratch);
  prefetcher ahead;
  each_range(s, at.tiles, [&](const tile_range& tiles, const tile_range& next) {
    transform_inputs<Form>(tiles, s.in, s.pad_h, s.pad_w, x, at.strips, at.inputs);
    transform_gradients<Form>(tiles, dy, at.strips, at.outputs);
    ahead.clear();
    ahead.add(next, s.in, x);
    ahead.add(next, s.out, dy);
    add_products(tiles.count, at.u, at.inputs, at.m, at.outputs, tiles.first == 0, at.v, at.weights,
                 ahead);
  });
  gather_gradient<Form>(forward_order<Form>(s), at.weights, dw);
  if (db == nullptr) return;
  sum_planes(s, dy, at.bias);
  std::copy_n(at.bias, s.out.channels, db);
}

template <class Form>
std::size_t scratch_floats(const winograd_shape& s) {
  return std::max(work<Form>(s).floats(), work<Form>(turned<Form>(s)).floats());
}

template <class Form>
constexpr passes all_passes{lanes,         Form::taps,          scratch_floats<Form>,
                            forward<Form>, backward_data<Form>, backward_weights<Form>};

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
