#include "gpu/traffic.hpp"

#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/shared_gradient.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

class issuing_kernel final : public kernel {
 public:
  issuing_kernel(std::unique_ptr<kernel> layer, layer_traffic& traffic, context& with,
                 const layer_context& of)
      : layer_(std::move(layer)), traffic_(traffic), with_(with), of_(of) {}

  void feed(const batch& input) override { layer_->feed(input); }

  void forward(const pass& p) override {
    for (const auto& r : traffic_.reads) r->require(with_.copy_in, with_.compute);
    layer_->forward(p);
    for (const auto& r : traffic_.reads) r->has_been_read(with_.compute);
  }

  void backward(const pass& p) override {
    layer_->backward(p);
    for (const auto& r : traffic_.reads) r->has_been_read(with_.compute);
    if (traffic_.factors != nullptr) keep_factors(*traffic_.factors);
    for (std::size_t i = 0; i < traffic_.gradients.size(); ++i) {
      const auto& shared = of_.state.shared[traffic_.gradients[i]];
      traffic_.complete[i] = shared == nullptr || shared->complete();
      if (traffic_.complete[i]) add_up(traffic_.gradients[i], p.micro_batch == 0);
    }
    if (sends()) record(traffic_.made, with_.compute);
  }

  void factors(std::span<float> u, std::span<float> v) override {
    if (traffic_.factors == nullptr) return kernel::factors(u, v);
    const kept_factors& f = *traffic_.factors;
    if (u.size() < f.u_values || v.size() < f.v_values)
      throw std::invalid_argument("factors of " + std::to_string(f.u_values) + " and " +
                                  std::to_string(f.v_values) + " values do not fit into " +
                                  std::to_string(u.size()) + " and " + std::to_string(v.size()));
    const auto middle = f.on_host.begin() + static_cast<std::ptrdiff_t>(f.u_values);
    std::fill(std::copy(f.on_host.begin(), middle, u.begin()), u.end(), 0.0f);
    std::fill(std::copy(middle, f.on_host.end(), v.begin()), v.end(), 0.0f);
  }

 private:
  /// To the sum of the clock's passes, where that is another than the pass's own.
  void add_up(std::size_t parameter, bool is_first) {
    const float* const own = of_.state.gradients[parameter];
    float* const sum = of_.state.sums[parameter];
    if (sum == own) return;
    const auto values =
        static_cast<std::size_t>(count(of_.state.graph.parameters[parameter].shape));
    if (is_first)
      copy_values(with_.compute, values, own, sum);
    else
      add_scaled(with_.compute, values, 1, sum, 1, own, sum);
  }
  [[nodiscard]] bool sends() const {
    return traffic_.factors != nullptr || !traffic_.gradients.empty();
  }
  void keep_factors(kept_factors& f) {
    const gpu_blob &u = of_.top(0), &v = of_.bottom(0);
    float* const to = f.on_device.floats();
    keep_factor(u.diff, u.values(), to, f.u_values);
    keep_factor(v.data, v.values(), to + f.u_values, f.v_values);
  }
  /// Behind a Filter there may be fewer rows than the net says: zeros then.
  void keep_factor(const float* from, std::size_t values, float* to, std::size_t room) {
    copy_within_device(with_.compute, to, from, values * sizeof(float));
    clear(with_.compute, to + values, (room - values) * sizeof(float));
  }

  std::unique_ptr<kernel> layer_;
  layer_traffic& traffic_;
  context& with_;
  const layer_context of_;
};

}  // namespace

std::unique_ptr<kernel> make_issuing(std::unique_ptr<kernel> layer, layer_traffic& traffic,
                                     context& with, const layer_context& of) {
  return std::make_unique<issuing_kernel>(std::move(layer), traffic, with, of);
}

}  // namespace poseidon::gpu
