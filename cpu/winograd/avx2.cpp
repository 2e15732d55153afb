// The passes on vectors of eight, and the choice between them and those of sixteen.
#include "cpu/winograd/group.hpp"
#include "cpu/winograd/wide.hpp"

namespace poseidon::cpu::winograd {

const passes& passes_for(std::size_t lanes, std::size_t taps) {
  if (lanes == 16) return wide_passes(taps);
  return taps == 3 ? avx2::all_passes<avx2::form<3>> : avx2::all_passes<avx2::form<5>>;
}

}  // namespace poseidon::cpu::winograd
