#include "cpu/kernels/ave_pool.hpp"

#include <cstring>

namespace poseidon::cpu {

template <int Block>
void ave_pool_forward(const pool_shape& s, std::size_t planes, const float* x, float* y) {
  for (std::size_t p = 0; p < planes; ++p, x += s.in_plane() * Block) {
    for (int row = 0; row < s.out_height; ++row) {
      for (int column = 0; column < s.out_width; ++column, y += Block) {
        const pool_window w = window_at(s, row, column);
        float sum[Block] = {};
        for (int h = w.top; h < w.bottom; ++h) {
          const float* from = x + (static_cast<std::size_t>(h) * s.width + w.left) * Block;
          for (int c = w.left; c < w.right; ++c, from += Block) {
            for (int lane = 0; lane < Block; ++lane) sum[lane] += from[lane];
          }
        }
        for (int lane = 0; lane < Block; ++lane) y[lane] = sum[lane] / w.area;
      }
    }
  }
}

template <int Block>
void ave_pool_backward(const pool_shape& s, std::size_t planes, const float* dy, float* dx) {
  std::memset(dx, 0, planes * s.in_plane() * Block * sizeof(float));
  for (std::size_t p = 0; p < planes; ++p, dx += s.in_plane() * Block) {
    for (int row = 0; row < s.out_height; ++row) {
      for (int column = 0; column < s.out_width; ++column, dy += Block) {
        const pool_window w = window_at(s, row, column);
        float part[Block];
        for (int lane = 0; lane < Block; ++lane) part[lane] = dy[lane] / w.area;
        for (int h = w.top; h < w.bottom; ++h) {
          float* to = dx + (static_cast<std::size_t>(h) * s.width + w.left) * Block;
          for (int c = w.left; c < w.right; ++c, to += Block) {
            for (int lane = 0; lane < Block; ++lane) to[lane] += part[lane];
          }
        }
      }
    }
  }
}

template void ave_pool_forward<1>(const pool_shape&, std::size_t, const float*, float*);
template void ave_pool_forward<8>(const pool_shape&, std::size_t, const float*, float*);
template void ave_pool_forward<16>(const pool_shape&, std::size_t, const float*, float*);
template void ave_pool_backward<1>(const pool_shape&, std::size_t, const float*, float*);
template void ave_pool_backward<8>(const pool_shape&, std::size_t, const float*, float*);
template void ave_pool_backward<16>(const pool_shape&, std::size_t, const float*, float*);

}  // namespace poseidon::cpu
