#include "gpu/shared_gradient.hpp"

#include "gpu/kernels/elementwise.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

void shared_gradient::written() {
  if (++written_ < parts_.size()) return;
  written_ = 0;
  for (std::size_t i = 1; i < parts_.size(); ++i)
    add_scaled(compute_, values_, 1, parts_[i], 1, parts_[0], parts_[0]);
}

void gradient_slot::end() {
  if (shared_ != nullptr) shared_->written();
}

}  // namespace poseidon::gpu
