// gpu/cuda/convolution.cpp - gpu/library.hpp's convolutions: cuDNN's plans, run on the library's stream.
#include "gpu/cuda/library.hpp"

namespace poseidon::gpu {

using cuda::convolution_plan;

std::shared_ptr<const convolution_plan> library::state::plan(const convolution_shape& shape,
                                                             convolution_direction direction,
                                                             const library_options& options) {
  auto& known = plans[{shape, direction}];
  if (known == nullptr) {
    if (!properties) properties.emplace(device);
    known = std::make_shared<const convolution_plan>(*properties, shape, direction, options);
    if (known->workspace_bytes() > workspace.size()) {
      workspace = {};  // the old one first: both may not fit
      workspace = device_memory(device, known->workspace_bytes());
    }
  }
  return known;
}

struct convolution::state {
  library& with;
  std::shared_ptr<const convolution_plan> forward, data_gradient, weight_gradient;

  void run(const std::shared_ptr<const convolution_plan>& plan, const float* x, const float* w,
           const float* y) const {
    if (plan == nullptr)
      throw error(error_kind::misused, 0,
                  "a convolution is asked for a direction it was not made for");
    enter_device(with.on());
    plan->run(with.get().dnn, x, w, y, with.get().workspace.bytes());
  }
};

convolution::convolution(library& with, const convolution_shape& shape,
                         convolution_directions wanted)
    : state_(std::make_unique<state>(state{with, nullptr, nullptr, nullptr})) {
  enter_device(with.on());
  const auto plan = [&](bool is_wanted, convolution_direction direction) {
    return is_wanted ? with.get().plan(shape, direction, with.options()) : nullptr;
  };
  state_->forward = plan(wanted.forward, convolution_direction::forward);
  state_->data_gradient = plan(wanted.data_gradient, convolution_direction::data_gradient);
  state_->weight_gradient = plan(wanted.weight_gradient, convolution_direction::weight_gradient);
}
convolution::~convolution() = default;
convolution::convolution(convolution&&) noexcept = default;
convolution& convolution::operator=(convolution&&) noexcept = default;

void convolution::forward(const float* x, const float* w, float* y) {
  state_->run(state_->forward, x, w, y);
}
void convolution::data_gradient(const float* w, const float* dy, float* dx) {
  state_->run(state_->data_gradient, dx, w, dy);
}
void convolution::weight_gradient(const float* x, const float* dy, float* dw) {
  state_->run(state_->weight_gradient, x, dw, dy);
}

}  // namespace poseidon::gpu
