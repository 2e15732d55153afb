// tests/actors/watched_device.hpp
//
// A device that computes as another one does, and looks at what its kernels read: which version of each parameter a
// forward pass finds, and whether the backward pass of it finds the same bits.
#pragma once
#include "models/device/device.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::test {

/// One parameter as a forward kernel found it.
struct parameter_seen {
  std::string layer;
  bool training = true;
  std::uint64_t clock = 0, version = 0;
  bool updated = true;  ///< by training
};

struct watch_log {
  std::vector<parameter_seen> forward;
  std::size_t backward = 0;
  /// A backward kernel that found other values than its forward kernel.
  std::vector<std::string> wrong;
};

class watched_kernel : public kernel {
 public:
  watched_kernel(kernel& it, const net& n, std::size_t layer,
                 std::span<const parameter_values* const> parameters,
                 std::shared_ptr<watch_log> log)
      : it_(it), net_(n), layer_(n.layers[layer]), log_(std::move(log)) {
    for (const auto p : layer_.parameters) reads_.push_back({p, parameters[p], 0, {}});
  }
  void feed(const batch& input) override { it_.feed(input); }
  void factors(std::span<float> u, std::span<float> v) override { it_.factors(u, v); }
  void forward(const pass& p) override {
    for (auto& r : reads_) {
      r.version = r.source->version.load();
      r.values = bits(r);
      log_->forward.push_back({layer_.name, net_.phase == ::caffe::TRAIN, p.clock, r.version,
                               is_updated(net_, r.parameter)});
    }
    it_.forward(p);
  }
  void backward(const pass& p) override {
    it_.backward(p);
    ++log_->backward;
    for (const auto& r : reads_)
      if (r.source->version.load() != r.version || bits(r) != r.values)
        log_->wrong.push_back(layer_.name + " at clock " + std::to_string(p.clock));
  }

 private:
  struct read {
    std::size_t parameter;
    const parameter_values* source;
    std::uint64_t version;
    std::vector<float> values;
  };
  [[nodiscard]] std::vector<float> bits(const read& r) const {
    const float* from = r.source->values.load();
    return {from, from + count(net_.parameters[r.parameter].shape)};
  }

  kernel& it_;
  const net& net_;
  const net_layer& layer_;
  std::vector<read> reads_;
  std::shared_ptr<watch_log> log_;
};

class watched_replica : public replica {
 public:
  watched_replica(std::unique_ptr<replica> it, const net& n,
                  std::span<const parameter_values* const> parameters,
                  const std::shared_ptr<watch_log>& log)
      : it_(std::move(it)) {
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      kernels_.push_back(std::make_unique<watched_kernel>(it_->at(l), n, l, parameters, log));
  }
  kernel& at(std::size_t layer) override { return *kernels_[layer]; }
  std::span<float> gradient(std::size_t p) override { return it_->gradient(p); }
  shape extents(std::size_t blob) const override { return it_->extents(blob); }
  void read_data(std::size_t b, std::span<float> to) const override { it_->read_data(b, to); }
  void write_data(std::size_t b, std::span<const float> v) override { it_->write_data(b, v); }
  void read_diff(std::size_t b, std::span<float> to) const override { it_->read_diff(b, to); }
  void write_diff(std::size_t b, std::span<const float> v) override { it_->write_diff(b, v); }
  std::optional<std::string> first_nonfinite() const override { return it_->first_nonfinite(); }

 private:
  std::unique_ptr<replica> it_;
  std::vector<std::unique_ptr<watched_kernel>> kernels_;
};

class watched_device : public device {
 public:
  explicit watched_device(std::shared_ptr<device> it) : it_(std::move(it)) {}
  std::shared_ptr<watch_log> log = std::make_shared<watch_log>();

  std::string describe() const override { return "watched " + it_->describe(); }
  std::unique_ptr<replica> make_replica(const net& n,
                                        std::span<const parameter_values* const> parameters,
                                        replica_options options) override {
    return std::make_unique<watched_replica>(it_->make_replica(n, parameters, options), n,
                                             parameters, log);
  }
  bool supports(std::string_view type) const override { return it_->supports(type); }
  std::shared_ptr<const host_arithmetic> arithmetic() const override { return it_->arithmetic(); }

 private:
  std::shared_ptr<device> it_;
};

}  // namespace poseidon::test
