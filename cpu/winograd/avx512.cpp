// The passes on vectors of sixteen.
#define POSEIDON_AVX512
#include "cpu/winograd/group.hpp"
#include "cpu/winograd/wide.hpp"

namespace poseidon::cpu::winograd {

const passes& wide_passes(std::size_t taps) {
  return taps == 3 ? avx512::all_passes<avx512::form<3>> : avx512::all_passes<avx512::form<5>>;
}

}  // namespace poseidon::cpu::winograd
