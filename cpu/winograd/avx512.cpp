// The passes on vectors of sixteen.
#define POSEIDON_AVX512
#include "cpu/winograd/group.hpp"
#include "cpu/winograd/wide.hpp"

namespace poseidon::cpu::winograd {

namespace {

template <class T>
const passes& passes_over(std::size_t taps) {
  return taps == 3 ? avx512::all_passes<avx512::form<3>, T>
                   : avx512::all_passes<avx512::form<5>, T>;
}

}  // namespace

const passes& wide_passes(layout form, std::size_t taps) {
  return is_bf16(form) ? passes_over<bfloat16>(taps) : passes_over<float>(taps);
}

}  // namespace poseidon::cpu::winograd
