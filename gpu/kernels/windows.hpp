// gpu/kernels/windows.hpp - kernels of Im2col and LSTMUnit.
#pragma once
#include "gpu/runtime/convolution_shape.hpp"
#include "gpu/runtime/runtime.hpp"

namespace poseidon::gpu {

/// columns [planes, taps, results] = the values of each plane [image] under each tap of each window; zero where the
/// window lies outside the image. Only the spatial extents of `c` count.
void spread_windows(stream& s, const convolution_shape& c, std::size_t planes, const float* images,
                    float* columns);
/// The gradient: images = sum of the columns' values that are theirs, in the order of the taps.
void gather_windows(stream& s, const convolution_shape& c, std::size_t planes, const float* columns,
                    float* images);

/// The cell of an LSTM: c = f c_before + i g and h = o tanh(c), with i, f, o = sigmoid and g = tanh of the four parts of
/// a row of `sums` [rows, 4, size]. Where a sequence begins (continues[row] is 0) c_before counts as 0.
struct lstm_shape {
  std::size_t rows = 0, size = 0;
};
void lstm_unit(stream& s, const lstm_shape& l, const float* before, const float* sums,
               const float* continues, float* c, float* h);
/// `d_before` and `d_sums` may be null.
void lstm_unit_backward(stream& s, const lstm_shape& l, const float* before, const float* sums,
                        const float* continues, const float* c, const float* dc, const float* dh,
                        float* d_before, float* d_sums);

}  // namespace poseidon::gpu
