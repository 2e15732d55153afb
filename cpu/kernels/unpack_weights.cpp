#include "cpu/kernels/unpack_weights.hpp"

#include <cstring>

namespace poseidon::cpu {

void unpack_weights(const float* blocks, std::size_t out, std::size_t in, float* rows) {
  constexpr std::size_t b = 16;
  for (std::size_t o = 0; o < out; o += b) {
    for (std::size_t i = 0; i < in; i += b, blocks += b * b) {
      float turned[b][b];
      for (std::size_t r = 0; r < b; ++r)
        for (std::size_t c = 0; c < b; ++c) turned[r][c] = blocks[c * b + r];
      // A row of a block is a whole cache line.
      for (std::size_t r = 0; r < b; ++r)
        std::memcpy(rows + (o + r) * in + i, turned[r], sizeof turned[r]);
    }
  }
}

}  // namespace poseidon::cpu
