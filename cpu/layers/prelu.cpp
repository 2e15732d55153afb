// cpu/layers/prelu.cpp - PReLU: y = x where x > 0, slope x elsewhere, with a learned slope for each channel
// or one for all.
#include "cpu/channels.hpp"
#include "cpu/layer.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

class prelu_kernel final : public kernel {
 public:
  explicit prelu_kernel(const layer_context& c)
      : form_(c.top(0).form),
        extent_(image_of(c.bottom_shape(0))),
        is_shared_(c.layer.spec.prelu_param().channel_shared()),
        slope_(c.parameter(0)),
        gradient_(c.gradient(0)),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, form_),
        slopes_(padded_channels(form_, extent_)) {
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, form_);
    if (c.in_place() && (dx_.exists() || gradient_.wanted())) kept_ = buffer(top_->stored());
  }

  void forward(const pass&) override {
    for (std::size_t k = 0; k < extent_.channels; ++k)
      slopes_[k] = slope_.values()[is_shared_ ? 0 : k];
    const float* x = x_.load();
    if (kept_.size() != 0) std::copy_n(x, kept_.size(), kept_.data());
    float* y = top_->data;
    each([&]<class V>(const channel_run& r) {
      const V slope = of_channel<V>(slopes_.data(), r);
      for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
        const V v = load<V>(x + i);
        store(y + i, where_positive(v, v, v * slope));
      }
    });
  }

  void backward(const pass&) override {
    const float* x = kept_.size() != 0 ? kept_.data() : x_.load();
    const float* dy = top_->diff;
    if (gradient_.wanted()) write_gradient(x, dy);
    if (!dx_.exists()) return;
    float* dx = dx_.memory();
    each([&]<class V>(const channel_run& r) {
      const V slope = of_channel<V>(slopes_.data(), r);
      for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
        const V d = load<V>(dy + i);
        store(dx + i, where_positive(load<V>(x + i), d, d * slope));
      }
    });
    dx_.store();
  }

 private:
  /// Calls f.operator()<V>(run) for every run.
  template <class F>
  void each(F f) const {
    with_lanes(form_, [&](auto like, auto) {
      each_run(form_, extent_,
               [&](const channel_run& r) { f.template operator()<decltype(like)>(r); });
    });
  }

  void write_gradient(const float* x, const float* dy) {
    std::vector<double> sums(slopes_.size());
    each([&]<class V>(const channel_run& r) {
      add_to_channels(sums.data(), r, sum_over<V>(r, [&]<class W>(std::size_t i) -> W {
                        const W v = load<W>(x + i);
                        return where_positive(v, W{}, v * load<W>(dy + i));
                      }));
    });
    float* g = gradient_.begin();
    double all = 0;
    for (std::size_t k = 0; k < extent_.channels; ++k) {
      all += sums[k];
      if (!is_shared_) g[k] = static_cast<float>(sums[k]);
    }
    if (is_shared_) g[0] = static_cast<float>(all);
    gradient_.end();
  }

  layout form_;
  image_extent extent_;
  bool is_shared_;
  parameter_reader slope_;
  gradient_slot gradient_;
  cpu_blob* top_;
  view x_, dx_;
  std::vector<float> slopes_;
  buffer kept_;
};

}  // namespace

std::unique_ptr<kernel> make_prelu(const layer_context& c) {
  return std::make_unique<prelu_kernel>(c);
}

}  // namespace poseidon::cpu
