// cpu/winograd/group.hpp - the three passes of one group of channels.
#pragma once
#include "cpu/winograd/product.hpp"
#include "cpu/winograd/tile_transforms.hpp"
#include "cpu/winograd/weights.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// The room that a pass needs.
template <class Form>
struct work {
  portions at_once;
  spectrum u, v, m;  ///< inputs, weights and outputs

  /// Outputs are worked in parts, as weights are; their gradients are not.
  work(const winograd_shape& s, bool all_outputs)
      : at_once(portions_of<Form>(s)),
        u(tiles_of<Form>(s.in, at_once.tiles)),
        v(weights_of<Form>({0, at_once.rows, 0, at_once.blocks})),
        m(tiles_of<Form>(s.out, at_once.tiles)) {
    if (!all_outputs) m.blocks = at_once.blocks;
  }
  [[nodiscard]] std::size_t floats() const {
    return v.size() + u.size() + m.size() + strip<Form>(at_once.tiles).size();
  }
};

/// Where it lies in the scratch memory, one after the other.
template <class Form>
struct workplace : work<Form> {
  float *bias, *weights, *inputs, *outputs, *strips;

  workplace(const winograd_shape& s, bool all_outputs, float* scratch)
      : work<Form>(s, all_outputs),
        bias(scratch),
        weights(bias + bias_floats(s)),
        inputs(weights + this->v.size()),
        outputs(inputs + this->u.size()),
        strips(outputs + this->m.size()) {}
  static std::size_t bias_floats(const winograd_shape& s) {
    return (s.out.channels + 15) / 16 * 16;
  }
};

/// Calls f(part) for all parts of the weights: all rows of some blocks of columns one after the other.
template <class F>
void each_part(const winograd_shape& s, const portions& at_once, F f) {
  const std::size_t blocks = blocks_of(s.out.channels);
  for (std::size_t b = 0; b < blocks; b += at_once.blocks)
    for (std::size_t r = 0; r < s.in.channels; r += at_once.rows)
      f(weight_part{r, std::min(at_once.rows, s.in.channels - r), b,
                    std::min(at_once.blocks, blocks - b)});
}

/// Calls f(tiles, next) for all tiles, some at a time; of `next` there may be none.
template <class F>
void each_range(const winograd_shape& s, std::size_t at_once, F f) {
  const std::size_t all = tiles_in(s);
  const auto from = [&](std::size_t first) {
    return tile_range{s.out, at_once, first, std::min(at_once, all - std::min(all, first))};
  };
  for (std::size_t first = 0; first < all; first += at_once) f(from(first), from(first + at_once));
}

/// Which of all steps of the products of a group of tiles comes next, so that prefetching is spread over them.
class steps {
 public:
  steps(const winograd_shape& s, const portions& at_once, std::size_t points,
        const prefetcher& ahead)
      : ahead_(ahead) {
    each_part(s, at_once, [&](const weight_part&) { all_ += points; });
  }
  void next() { ahead_.part(done_++, all_); }

 private:
  const prefetcher& ahead_;
  std::size_t all_ = 0, done_ = 0;
};

template <class Form, class T>
void convolve(const winograd_shape& s, const weight_order& order, const T* x, const float* weights,
              const winograd_ending& ending, T* y, float* scratch) {
  const workplace<Form> at(s, false, scratch);
  std::fill_n(at.bias, at.bias_floats(s), 0.0f);
  if (ending.bias != nullptr) std::copy_n(ending.bias, s.out.channels, at.bias);
  prefetcher ahead;
  each_range(s, at.at_once.tiles, [&](const tile_range& tiles, const tile_range& next) {
    transform_inputs<Form>(tiles, s.in, s.pad_h, s.pad_w, x, at.strips, at.inputs);
    ahead.clear();
    ahead.add(tiles, s.out, y);
    ahead.add(next, s.in, x);
    steps step(s, at.at_once, at.u.points, ahead);
    each_part(s, at.at_once, [&](const weight_part& part) {
      const spectrum v = weights_of<Form>(part);
      if (tiles.first == 0 || !at.at_once.whole)
        spread_weights<Form>(order, part, weights, at.weights);
      multiply(tiles.count, part, at.u, at.inputs, v, at.weights, at.m, at.outputs, step);
      if (part.row + part.rows == s.in.channels)
        write_outputs<Form>(tiles, part.block, part.blocks, at.m, at.outputs, at.bias, ending.slope,
                            y);
    });
  });
}

template <class Form, class T>
void forward(const winograd_shape& s, const float* x, const float* weights,
             const winograd_ending& ending, float* y, float* scratch) {
  convolve<Form>(s, forward_order<Form>(s), as<T>(x), weights, ending, as<T>(y), scratch);
}

/// The convolution from the gradient of y to that of x.
template <class Form>
winograd_shape turned(const winograd_shape& s) {
  return {s.samples, s.out, s.in, Form::taps - 1 - s.pad_h, Form::taps - 1 - s.pad_w};
}

template <class Form, class T>
void backward_data(const winograd_shape& s, const float* dy, const float* weights, float* dx,
                   float* scratch) {
  convolve<Form>(turned<Form>(s), backward_order<Form>(s), as<T>(dy), weights, {}, as<T>(dx),
                 scratch);
}

template <class Form, class T>
void backward_weights(const winograd_shape& s, const float* x_memory, const float* dy_memory,
                      float* dw, float* db, float* scratch) {
  const T *x = as<T>(x_memory), *dy = as<T>(dy_memory);
  const workplace<Form> at(s, true, scratch);
  const weight_order order = forward_order<Form>(s);
  prefetcher ahead;
  each_range(s, at.at_once.tiles, [&](const tile_range& tiles, const tile_range& next) {
    const bool first = tiles.first == 0, last = next.count == 0;
    transform_inputs<Form>(tiles, s.in, s.pad_h, s.pad_w, x, at.strips, at.inputs);
    transform_gradients<Form>(tiles, dy, at.strips, at.outputs);
    ahead.clear();
    ahead.add(next, s.in, x);
    ahead.add(next, s.out, dy);
    steps step(s, at.at_once, at.u.points, ahead);
    each_part(s, at.at_once, [&](const weight_part& part) {
      const bool whole = at.at_once.whole;
      const spectrum v = weights_of<Form>(part);
      add_products(tiles.count, part, at.u, at.inputs, at.m, at.outputs, first || !whole, v,
                   at.weights, step);
      if (last || !whole) gather_gradient<Form>(order, part, at.weights, dw, !whole && !first);
    });
  });
  if (db == nullptr) return;
  sum_planes(s, dy, at.bias);
  std::copy_n(at.bias, s.out.channels, db);
}

template <class Form>
std::size_t scratch_floats(const winograd_shape& s) {
  const auto floats = [](const winograd_shape& s, bool all_outputs) {
    return workplace<Form>::bias_floats(s) + work<Form>(s, all_outputs).floats();
  };
  return std::max({floats(s, false), floats(turned<Form>(s), false), floats(s, true)});
}

template <class Form, class T>
constexpr passes all_passes{lanes,
                            Form::taps,
                            sizeof(T),
                            scratch_floats<Form>,
                            forward<Form, T>,
                            backward_data<Form, T>,
                            backward_weights<Form, T>};

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
