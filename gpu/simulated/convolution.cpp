// gpu/simulated/convolution.cpp - convolutions of gpu/runtime/library.hpp as sums over windows, in the stream's thread.
#include "gpu/layout.hpp"
#include "gpu/runtime/launch_simulated.hpp"
#include "gpu/runtime/library.hpp"
#include "gpu/simulated/machine.hpp"
#include "gpu/simulated/product.hpp"
#include "gpu/tuning.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace poseidon::gpu {
namespace {

using simulated::add_product;
using extents = convolution_shape::extents;

/// A shape of three spatial axes; those that it has not are 1, in front.
convolution_shape in_three_axes(convolution_shape s) {
  const auto move_back = [&](extents& e, std::int64_t otherwise) {
    extents moved;
    moved.fill(otherwise);
    for (std::size_t a = 0; a < s.axes; ++a) moved[3 - s.axes + a] = e[a];
    e = moved;
  };
  move_back(s.image, 1);
  move_back(s.result, 1);
  move_back(s.kernel, 1);
  move_back(s.stride, 1);
  move_back(s.pad, 0);
  move_back(s.dilation, 1);
  s.axes = 3;
  return s;
}

/// One product of a plane of images with a plane of weights: which values, and whose result.
struct product {
  std::int32_t image, tap, result;
};

/// All of them, results in order and each one's taps in order.
std::vector<product> products_of(const convolution_shape& s) {
  std::vector<product> all;
  std::array<std::int64_t, 3> r{}, t{};
  std::int32_t result = 0;
  for (r[0] = 0; r[0] < s.result[0]; ++r[0])
    for (r[1] = 0; r[1] < s.result[1]; ++r[1])
      for (r[2] = 0; r[2] < s.result[2]; ++r[2], ++result) {
        std::int32_t tap = 0;
        for (t[0] = 0; t[0] < s.kernel[0]; ++t[0])
          for (t[1] = 0; t[1] < s.kernel[1]; ++t[1])
            for (t[2] = 0; t[2] < s.kernel[2]; ++t[2], ++tap) {
              std::int64_t image = 0;
              bool inside = true;
              for (std::size_t a = 0; a < 3; ++a) {
                const std::int64_t at = r[a] * s.stride[a] - s.pad[a] + t[a] * s.dilation[a];
                inside = inside && at >= 0 && at < s.image[a];
                image = image * s.image[a] + at;
              }
              if (inside) all.push_back({static_cast<std::int32_t>(image), tap, result});
            }
      }
  return all;
}

/// One image's channels of one group beside the weights that they meet: values [taps of all channels, results], or,
/// `by_result`, [results, taps]. Zero where a window hangs over.
class window_matrix {
 public:
  window_matrix(const convolution_shape& s, const std::vector<product>& products, bool by_result)
      : products_(products),
        channels_(static_cast<std::size_t>(s.in / s.groups)),
        image_(static_cast<std::size_t>(s.area(s.image))),
        taps_(static_cast<std::size_t>(s.area(s.kernel))),
        results_(static_cast<std::size_t>(s.area(s.result))),
        by_result_(by_result),
        values_(channels_ * taps_ * results_) {}

  [[nodiscard]] std::size_t taps() const { return channels_ * taps_; }
  [[nodiscard]] float* values() { return values_.data(); }
  void clear() { std::fill(values_.begin(), values_.end(), 0.0f); }
  void gather(const float* images) {
    each([&](float& value, std::size_t at) { value = images[at]; });
  }
  void scatter(float* images) {
    each([&](float& value, std::size_t at) { images[at] += value; });
  }

 private:
  /// Calls f(value, place in the images) for each that is no zero of the padding.
  template <class F>
  void each(F f) {
    for (std::size_t c = 0; c < channels_; ++c) {
      for (const product& p : products_) {
        const std::size_t tap = c * taps_ + static_cast<std::size_t>(p.tap),
                          result = static_cast<std::size_t>(p.result);
        f(values_[by_result_ ? result * taps() + tap : tap * results_ + result],
          c * image_ + static_cast<std::size_t>(p.image));
      }
    }
  }

  const std::vector<product>& products_;
  std::size_t channels_, image_, taps_, results_;
  bool by_result_;
  std::vector<float> values_;
};

/// One operand of a convolution in NCHW and float32, whatever it is in: the one that is written goes back when this ends.
class in_nchw {
 public:
  in_nchw(const convolution_shape& s, std::int64_t outer, std::int64_t channels,
          const extents& area, const_values given, const_values written)
      : order_(s.order),
        given_(static_cast<std::byte*>(const_cast<void*>(given.at()))),
        is_written_(given == written) {
    if (!channels_last(order_)) return;
    shape_ = {outer, channels, area[1], area[2]};
    turned_.resize(static_cast<std::size_t>(count(shape_)));
    if (!is_written_) to_nchw(shape_, order_, there(), turned_);
  }
  ~in_nchw() {
    if (is_written_ && !turned_.empty()) from_nchw(shape_, turned_, order_, there());
  }
  in_nchw(const in_nchw&) = delete;
  in_nchw& operator=(const in_nchw&) = delete;
  [[nodiscard]] float* floats() {
    return channels_last(order_) ? turned_.data() : reinterpret_cast<float*>(given_);
  }

 private:
  [[nodiscard]] std::span<std::byte> there() const {
    return {given_, turned_.size() * width(type_of(order_))};
  }

  layout order_;
  std::byte* given_;
  bool is_written_;
  shape shape_;
  std::vector<float> turned_;
};

/// Adds up every product into what `direction` writes, which is zero at first.
void convolve(const convolution_shape& s, const std::vector<product>& products,
              convolution_direction direction, float* x, float* w, float* y) {
  window_matrix windows(s, products, direction == convolution_direction::weight_gradient);
  const auto out = static_cast<std::size_t>(s.out / s.groups),
             results = static_cast<std::size_t>(s.area(s.result)), taps = windows.taps();
  for (std::int64_t n = 0; n < s.batch * s.groups; ++n, y += out * results) {
    float* const images = x + n * (s.image_values() / s.groups);
    float* const own = w + n % s.groups * (s.weight_values() / s.groups);
    windows.clear();
    if (direction != convolution_direction::data_gradient) windows.gather(images);
    switch (direction) {
      case convolution_direction::forward:
        add_product(out, results, taps, {own, taps, 1}, windows.values(), results, y, results);
        break;
      case convolution_direction::weight_gradient:
        add_product(out, taps, results, {y, results, 1}, windows.values(), taps, own, taps);
        break;
      case convolution_direction::data_gradient:
        add_product(taps, results, out, {own, 1, taps}, y, results, windows.values(), results);
        windows.scatter(images);
    }
  }
}

}  // namespace

struct convolution::state {
  library& with;
  convolution_shape shape;
  convolution_directions wanted;
  std::shared_ptr<const std::vector<product>> products;
  std::array<std::size_t, 3> ways{};  // by direction

  /// One of the three is written, whatever its type says.
  void enqueue(convolution_direction direction, bool was_wanted, const_values x, const_values w,
               const_values y, values written, std::int64_t count) {
    if (!was_wanted)
      throw error(error_kind::misused, 0,
                  "a convolution is asked for a direction it was not made for");
    for (const const_values& v : {x, w, y})
      if (v.type() != type_of(shape.order))
        throw error(error_kind::misused, 0, "a convolution is given values of another type");
    auto& machine = simulated::the_machine();
    const double ms =
        machine.options().convolution_ms.at(ways[static_cast<std::size_t>(direction)]);
    simulated::enqueue_kernel(
        with.on(), [=, &machine, s = shape, all = products, device = with.on().device()] {
          machine.spend(device, ms);
          std::memset(written.at(), 0, static_cast<std::size_t>(count) * width(written.type()));
          in_nchw images(s, s.batch, s.in, s.image, x, written),
              weights(s, s.out, s.in / s.groups, s.kernel, w, written),
              results(s, s.batch, s.out, s.result, y, written);
          convolve(s, *all, direction, images.floats(), weights.floats(), results.floats());
        });
  }
};

convolution::convolution(library& with, const convolution_shape& shape,
                         convolution_directions wanted)
    : state_(std::make_unique<state>(state{with, in_three_axes(shape), wanted, nullptr})) {
  state_->products = std::make_shared<const std::vector<product>>(products_of(state_->shape));
  const std::size_t count = simulated::the_machine().options().convolution_ms.size();
  const auto choose = [&](bool is_wanted, convolution_direction direction, auto run) {
    if (!is_wanted) return;
    std::size_t& way = state_->ways[static_cast<std::size_t>(direction)];
    way = fastest_way(with, {shape, direction}, count,
                      [&](std::size_t i, values x, values w, values y) {
                        way = i;
                        run(x, w, y);
                      });
  };
  choose(wanted.forward, convolution_direction::forward,
         [this](values x, values w, values y) { forward(x, w, y); });
  choose(wanted.data_gradient, convolution_direction::data_gradient,
         [this](values x, values w, values y) { data_gradient(w, y, x); });
  choose(wanted.weight_gradient, convolution_direction::weight_gradient,
         [this](values x, values w, values y) { weight_gradient(x, y, w); });
}
convolution::~convolution() = default;
convolution::convolution(convolution&&) noexcept = default;
convolution& convolution::operator=(convolution&&) noexcept = default;

void convolution::forward(const_values x, const_values w, values y) {
  const auto& s = state_->shape;
  state_->enqueue(convolution_direction::forward, state_->wanted.forward, x, w, y, y,
                  s.batch * s.result_values());
}

void convolution::data_gradient(const_values w, const_values dy, values dx) {
  const auto& s = state_->shape;
  state_->enqueue(convolution_direction::data_gradient, state_->wanted.data_gradient, dx, w, dy, dx,
                  s.batch * s.image_values());
}

void convolution::weight_gradient(const_values x, const_values dy, values dw) {
  const auto& s = state_->shape;
  state_->enqueue(convolution_direction::weight_gradient, state_->wanted.weight_gradient, x, dw, dy,
                  dw, s.weight_values());
}

}  // namespace poseidon::gpu
