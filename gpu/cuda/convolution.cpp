// gpu/cuda/convolution.cpp - gpu/runtime/library.hpp's convolutions: cuDNN's plans, run on the library's stream.
#include "gpu/cuda/library.hpp"
#include "gpu/tuning.hpp"

#include <algorithm>

namespace poseidon::gpu {

using cuda::convolution_plan;

std::shared_ptr<const convolution_plan> library::state::plan(library& with,
                                                             const convolution_shape& shape,
                                                             convolution_direction direction) {
  auto& known = plans[{shape, direction}];
  if (known == nullptr) {
    if (!properties) properties.emplace(device);
    const std::size_t most = with.options().autotune != nullptr ? most_ways : 1;
    auto ways = convolution_plan::several(*properties, shape, direction, with.options(), most);
    device_memory trial;  // workspace of the way that is being tried
    const auto chosen =
        fastest_way(with, {shape, direction}, ways.size(),
                    [&](std::size_t way, const_values x, const_values w, const_values y) {
                      if (ways[way].workspace_bytes() > trial.size())
                        trial = device_memory(device, ways[way].workspace_bytes());
                      enter_device(with.on());
                      ways[way].run(dnn, x.at(), w.at(), y.at(), trial.bytes());
                    });
    trial = {};
    known = std::make_shared<const convolution_plan>(std::move(ways.at(chosen)));
    if (known->workspace_bytes() > workspace.size()) {
      workspace = {};  // the old one first: both may not fit
      workspace = device_memory(device, known->workspace_bytes());
    }
  }
  return known;
}

struct convolution::state {
  library& with;
  value_type type;
  std::shared_ptr<const convolution_plan> forward, data_gradient, weight_gradient;

  void run(const std::shared_ptr<const convolution_plan>& plan, const_values x, const_values w,
           const_values y) const {
    for (const const_values& v : {x, w, y})
      if (v.type() != type)
        throw error(error_kind::misused, 0, "a convolution is given values of another type");
    if (plan == nullptr)
      throw error(error_kind::misused, 0,
                  "a convolution is asked for a direction it was not made for");
    enter_device(with.on());
    plan->run(with.get().dnn, x.at(), w.at(), y.at(), with.get().workspace.bytes());
  }
};

convolution::convolution(library& with, const convolution_shape& shape,
                         convolution_directions wanted)
    : state_(
          std::make_unique<state>(state{with, type_of(shape.order), nullptr, nullptr, nullptr})) {
  enter_device(with.on());
  const auto plan = [&](bool is_wanted, convolution_direction direction) {
    return is_wanted ? with.get().plan(with, shape, direction) : nullptr;
  };
  state_->forward = plan(wanted.forward, convolution_direction::forward);
  state_->data_gradient = plan(wanted.data_gradient, convolution_direction::data_gradient);
  state_->weight_gradient = plan(wanted.weight_gradient, convolution_direction::weight_gradient);
}
convolution::~convolution() = default;
convolution::convolution(convolution&&) noexcept = default;
convolution& convolution::operator=(convolution&&) noexcept = default;

void convolution::forward(const_values x, const_values w, values y) {
  state_->run(state_->forward, x, w, y);
}
void convolution::data_gradient(const_values w, const_values dy, values dx) {
  state_->run(state_->data_gradient, dx, w, dy);
}
void convolution::weight_gradient(const_values x, const_values dy, values dw) {
  state_->run(state_->weight_gradient, x, dw, dy);
}

}  // namespace poseidon::gpu
