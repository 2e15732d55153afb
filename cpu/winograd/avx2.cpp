// The passes on vectors of eight, and the choice between them and those of sixteen.
#include "cpu/winograd/group.hpp"
#include "cpu/winograd/wide.hpp"

namespace poseidon::cpu::winograd {

const passes& passes_for(layout form, std::size_t taps) {
  if (form != layout::c8) return wide_passes(form, taps);
  return taps == 3 ? avx2::all_passes<avx2::form<3>, float>
                   : avx2::all_passes<avx2::form<5>, float>;
}

}  // namespace poseidon::cpu::winograd
