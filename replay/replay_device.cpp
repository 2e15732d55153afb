#include "replay/replay_device.hpp"

#include "models/plan/cost.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>

namespace poseidon {
namespace {

using replay::sleep_clock;

/// When the last kernel of the replica's one stream has ended.
struct stream_time {
  std::shared_ptr<sleep_clock> clock;
  std::int64_t free_ns = 0;

  void take(std::int64_t duration_ns, const pass& p) {
    const auto issued = p.issued_ns != 0 ? p.issued_ns : clock->now_ns();
    free_ns = std::max(free_ns, issued) + duration_ns;
    if (duration_ns > 0) clock->sleep_until(free_ns);
  }
};

class sleeping_kernel final : public kernel {
 public:
  sleeping_kernel(std::int64_t forward_ns, std::int64_t backward_ns, stream_time& stream)
      : forward_ns_(forward_ns), backward_ns_(backward_ns), stream_(stream) {}

  void feed(const batch&) override {}
  void forward(const pass& p) override { stream_.take(forward_ns_, p); }
  void backward(const pass& p) override { stream_.take(backward_ns_, p); }
  void factors(std::span<float>, std::span<float>) override {}

 private:
  std::int64_t forward_ns_, backward_ns_;
  stream_time& stream_;
};

/// The share of an inner product's backward pass that is left without the gradient of its weights.
double without_weights(const net& n, std::size_t layer) {
  const auto flops = flops_of(n, layer);
  if (flops.backward == 0) return 1;
  return 1 - static_cast<double>(flops.forward) / static_cast<double>(flops.backward);
}

class replay_replica final : public replica {
 public:
  replay_replica(const net& n, const std::vector<pass_ms>& times, const replica_options& options,
                 std::shared_ptr<sleep_clock> clock)
      : net_(n), stream_{std::move(clock)} {
    const auto ns = [&](double ms) { return std::llround(1e6 * options.time_scale * ms); };
    const auto by_factors = [&](std::size_t layer) {
      return layer < options.by_factors.size() && options.by_factors[layer];
    };
    kernels_.reserve(times.size());
    for (std::size_t l = 0; l < times.size(); ++l) {
      const auto backward = times[l].backward * (by_factors(l) ? without_weights(n, l) : 1);
      kernels_.emplace_back(ns(times[l].forward), ns(backward), stream_);
    }
    if (n.phase != ::caffe::TRAIN) return;
    for (const auto& p : n.parameters) {
      auto& g = gradients_.emplace_back(
          by_factors(p.layer) ? 0 : static_cast<std::size_t>(count(p.shape)));
      // Positive and negative values that change from place to place, so that a lost or doubled value shows.
      for (std::size_t i = 0; i < g.size(); ++i) g[i] = (static_cast<float>(i % 5) - 2) * 0x1p-10f;
    }
  }

  kernel& at(std::size_t layer) override { return kernels_.at(layer); }
  std::span<float> gradient(std::size_t parameter) override {
    if (gradients_.empty()) return {};
    return gradients_.at(parameter);
  }
  shape extents(std::size_t blob) const override { return net_.blobs.at(blob).shape; }
  void read_data(std::size_t, std::span<float> to) const override {
    std::fill(to.begin(), to.end(), 1.0f);
  }
  void write_data(std::size_t, std::span<const float>) override {}
  void read_diff(std::size_t, std::span<float> to) const override {
    std::fill(to.begin(), to.end(), 0.0f);
  }
  void write_diff(std::size_t, std::span<const float>) override {}
  std::optional<std::string> first_nonfinite() const override { return std::nullopt; }

 private:
  const net& net_;
  stream_time stream_;
  std::vector<sleeping_kernel> kernels_;
  std::vector<std::vector<float>> gradients_;
};

std::uint64_t batch_of(const net& n) {
  for (const auto& layer : n.layers)
    if (is_source(layer) && !layer.tops.empty() && !n.blobs[layer.tops[0]].shape.empty())
      return static_cast<std::uint64_t>(n.blobs[layer.tops[0]].shape[0]);
  throw spec_error("net \"" + n.name + "\" has no data layer, so its times cannot be told.");
}

/// Sums and updates are the host's. The product of factors takes time, and makes no values.
class replay_arithmetic final : public forwarding_arithmetic {
 public:
  replay_arithmetic(std::shared_ptr<const host_arithmetic> host, double gflop_s,
                    std::shared_ptr<sleep_clock> clock)
      : forwarding_arithmetic(std::move(host)), gflop_s_(gflop_s), clock_(std::move(clock)) {}

  void scale_times(double by) { time_scale_ = by; }

  void enter_thread(int threads) const override {
    forwarding_arithmetic::enter_thread(threads);
    clock_->enter_thread();
  }
  void reconstruct_gradient(const factor_shape& shape, std::span<const float>,
                            std::span<const float>, std::span<float>,
                            std::span<float>) const override {
    const auto flop = 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.outputs) *
                      static_cast<double>(shape.inputs);
    const auto took = std::llround(time_scale_ * flop / gflop_s_);
    std::int64_t end = 0;
    {
      const std::lock_guard lock(products_);
      end = products_end_ns_ = std::max(products_end_ns_, clock_->now_ns()) + took;
    }
    clock_->sleep_until(end);
  }

 private:
  const double gflop_s_;
  std::shared_ptr<sleep_clock> clock_;
  std::atomic<double> time_scale_{1};
  mutable std::mutex products_;
  mutable std::int64_t products_end_ns_ = 0;
};

class replay_device final : public device {
 public:
  replay_device(profile times, std::shared_ptr<device> host, std::shared_ptr<sleep_clock> clock)
      : times_(std::move(times)),
        host_(std::move(host)),
        clock_(std::move(clock)),
        arithmetic_(
            std::make_shared<replay_arithmetic>(host_->arithmetic(), times_.gflop_s, clock_)) {}

  std::string describe() const override {
    return "replay: " + times_.net + ", " + times_.measured + "; sums and updates on " +
           host_->describe();
  }
  bool computes() const override { return false; }
  std::optional<double> told_flop_s() const override { return 1e9 * times_.gflop_s; }

  std::optional<double> told_pass_s(const net& n, double time_scale) const override {
    double ms = 0;
    for (const auto& t : times_on(times_, n, batch_of(n))) ms += t.forward + t.backward;
    return 1e-3 * time_scale * ms;
  }

  std::unique_ptr<replica> make_replica(const net& n,
                                        std::span<const parameter_values* const> /*parameters*/,
                                        replica_options options) override {
    if (!std::isfinite(options.time_scale) || options.time_scale <= 0)
      throw spec_error("time_scale is " + std::to_string(options.time_scale) +
                       ", it has to be above 0: how much longer than recorded a layer takes.");
    const auto& factors = options.by_factors;
    if (times_.gflop_s == 0 && std::find(factors.begin(), factors.end(), true) != factors.end())
      throw spec_error(
          times_.where,
          "the profile has no gflop_s, so nobody knows how long a gradient takes that is "
          "made of factors. Add the line gflop_s: RATE, of big matrix products on that "
          "device, or use --routes ps.");
    if (!factors.empty()) arithmetic_->scale_times(options.time_scale);
    return std::make_unique<replay_replica>(n, times_on(times_, n, batch_of(n)), options, clock_);
  }
  bool supports(std::string_view) const override { return true; }

  std::shared_ptr<const host_arithmetic> arithmetic() const override { return arithmetic_; }

 private:
  profile times_;
  std::shared_ptr<device> host_;
  std::shared_ptr<sleep_clock> clock_;
  std::shared_ptr<replay_arithmetic> arithmetic_;
};

}  // namespace

std::shared_ptr<device> make_replay_device(profile times, std::shared_ptr<device> host,
                                           std::shared_ptr<replay::sleep_clock> clock) {
  return std::make_shared<replay_device>(std::move(times), std::move(host), std::move(clock));
}

}  // namespace poseidon
