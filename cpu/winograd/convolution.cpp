#include "cpu/winograd/convolution.hpp"

namespace poseidon::cpu {

winograd_convolution::winograd_convolution(const winograd_shape& s, std::size_t groups, layout form,
                                           std::size_t taps)
    : shape_(s), groups_(groups), passes_(winograd::passes_for(form, taps)) {}

template <class F>
void winograd_convolution::each_group(F f) const {
  const auto floats = [this](const winograd_image& i) {
    const std::size_t blocks = (i.channels + passes_.lanes - 1) / passes_.lanes;
    return blocks * passes_.lanes * i.height * i.width * passes_.value_bytes / sizeof(float);
  };
  const std::size_t weights =
      shape_.in.channels * shape_.out.channels * passes_.taps * passes_.taps;
  for (std::size_t g = 0; g < groups_; ++g)
    f(g * floats(shape_.in), g * floats(shape_.out), g * weights, g * shape_.out.channels);
}

void winograd_convolution::forward(const float* x, const float* weights,
                                   const winograd_ending& ending, float* y, float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t b) {
    const float* bias = ending.bias != nullptr ? ending.bias + b : nullptr;
    passes_.forward(shape_, x + in, weights + w, {bias, ending.slope}, y + out, scratch);
  });
}

void winograd_convolution::backward_data(const float* dy, const float* weights, float* dx,
                                         float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t) {
    passes_.backward_data(shape_, dy + out, weights + w, dx + in, scratch);
  });
}

void winograd_convolution::backward_weights(const float* x, const float* dy, float* dw, float* db,
                                            float* scratch) const {
  each_group([&](std::size_t in, std::size_t out, std::size_t w, std::size_t b) {
    passes_.backward_weights(shape_, x + in, dy + out, dw + w, db != nullptr ? db + b : nullptr,
                             scratch);
  });
}

}  // namespace poseidon::cpu
