#include "gpu/device.hpp"

#include "gpu/host_layer.hpp"
#include "gpu/host_memory.hpp"
#include "gpu/product_speed.hpp"
#include "gpu/replica.hpp"
#include "gpu/tuning.hpp"
#include "models/net/layer_rules.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace poseidon::gpu {
namespace {

std::string describe_one(int ordinal) {
  const auto p = properties(ordinal);
  char text[160];
  std::snprintf(text, sizeof text, "GPU %d: %s, %.1f GiB, compute capability %d.%d", ordinal,
                p.name.c_str(), static_cast<double>(p.total_bytes) / (1 << 30), p.major, p.minor);
  return text;
}

library_options options_of(const plugin_choice& choice) {
  library_options o;
  switch (choice.math) {
    case device_math::fp32:
      o.precision = math::fp32;
      break;
    case device_math::tf32:
      o.precision = math::tf32;
      break;
    case device_math::bf16:
      o.precision = math::bf16;
      break;
  }
  o.deterministic = choice.deterministic;
  // Tensor cores want the channels side by side; what strict products use does not care.
  const bool tensor_cores = o.precision != math::fp32;
  const bool nhwc = choice.layout == device_layout::nhwc ||
                    (choice.layout == device_layout::automatic && tensor_cores);
  o.images = !nhwc ? layout::nchw : o.precision == math::bf16 ? layout::nhwc_bf16 : layout::nhwc;
  return o;
}

std::string name_of(math precision) {
  return precision == math::fp32 ? "fp32" : precision == math::tf32 ? "tf32" : "bf16";
}

std::string arithmetic_of(const library_options& o) {
  return "products in " + name_of(o.precision) + ", images in " +
         (channels_last(o.images) ? "NHWC" : "NCHW") +
         (type_of(o.images) == value_type::bfloat16 ? " of bfloat16" : "");
}

class gpu_device final : public device {
 public:
  gpu_device(const plugin_choice& choice, std::shared_ptr<device> cpu)
      : choice_(choice), cpu_(std::move(cpu)) {
    const int have = device_count();
    for (const int ordinal : choice_.ordinals)
      if (ordinal < 0 || ordinal >= have)
        throw error(error_kind::absent, 0,
                    "there is no GPU " + std::to_string(ordinal) + ": this machine has " +
                        std::to_string(have) +
                        (have == 1 ? " (0)" : " (0 to " + std::to_string(have - 1) + ")") +
                        ". poseidon-node device-query lists them.");
    if (choice_.ordinals.empty()) throw std::invalid_argument("a GPU device without GPUs");
    if (choice_.autotune && choice_.deterministic)
      throw std::invalid_argument(
          "a GPU that is to compute the same bits in every run cannot take the way that was "
          "measured to be the fastest: another run may measure otherwise");
    if (choice_.autotune)
      for (const int ordinal : choice_.ordinals) tuned_.try_emplace(ordinal);
    host_ = make_host_memory();
    contexts_.resize(choice_.ordinals.size());
  }

  std::string describe() const override {
    std::string text;
    for (const int ordinal : choice_.ordinals)
      text += (text.empty() ? "" : "; ") + describe_one(ordinal);
    return text + "; " + describe_runtime() + "; " + arithmetic_of(options_of(choice_));
  }

  fingerprint traits() const override {
    const auto o = options_of(choice_);
    fingerprint out{{std::string(trait_names::device), names()},
                    {"GPU libraries", describe_runtime()},
                    {"GPU arithmetic", arithmetic_of(o)}};
    if (!choice_.deterministic)
      out.push_back({std::string(trait_names::varies), "products in " + name_of(o.precision)});
    for (const auto& t : cpu_->traits())
      if (t.name == trait_names::c_library) out.push_back(t);  // updates on the host
    return out;
  }

  bool is_asynchronous() const override { return true; }
  bool adds_passes() const override { return true; }
  std::optional<double> told_flop_s() const override {
    std::call_once(timed_, [this] { flop_s_ = time_products(choice_.ordinals.front()); });
    return flop_s_;
  }
  std::shared_ptr<std::pmr::memory_resource> host_memory() const override { return host_; }
  std::uint32_t replicas() const override {
    return static_cast<std::uint32_t>(choice_.ordinals.size());
  }

  std::unique_ptr<replica> make_replica(const net& n,
                                        std::span<const parameter_values* const> parameters,
                                        replica_options options) override {
    if (parameters.size() != n.parameters.size())
      throw std::invalid_argument(
          "net \"" + n.name + "\" has " + std::to_string(n.parameters.size()) +
          " parameters, make_replica was given " + std::to_string(parameters.size()));
    const std::size_t place = options.index % contexts_.size();
    auto with = contexts_[place].lock();
    if (with == nullptr) {
      auto library = options_of(choice_);
      if (choice_.autotune) library.autotune = tuned_.at(choice_.ordinals[place]).found;
      with = std::make_shared<context>(choice_.ordinals[place], library);
      contexts_[place] = with;
    }
    return compile(std::move(with), host_, cpu_, n, parameters, std::move(options));
  }

  std::size_t join_gradients(std::span<const std::shared_ptr<replica>> replicas) override {
    return join(replicas);
  }

  std::shared_ptr<device_updates> make_updates(std::span<const std::shared_ptr<replica>> replicas,
                                               const updates_wanted& wanted) override {
    return gpu::make_updates(replicas, wanted);
  }

  bool supports(std::string_view layer_type) const override {
    const auto* known = poseidon::find_layer_type(layer_type);
    return find_layer_type(layer_type) != nullptr || (known != nullptr && known->source) ||
           on_host(layer_type);
  }
  bool on_host(std::string_view layer_type) const override {
    return runs_on_host(layer_type, *cpu_);
  }

  std::vector<std::string> take_remarks() override {
    std::vector<std::string> lines;
    for (auto& [ordinal, t] : tuned_) {
      const auto g = t.found->gained();
      if (std::exchange(t.said, g.tried + g.untried) != g.tried + g.untried)
        lines.push_back("autotune on GPU " + std::to_string(ordinal) + ": " + to_string(g));
    }
    return lines;
  }

  std::shared_ptr<const host_arithmetic> arithmetic() const override { return cpu_->arithmetic(); }

 private:
  /// "NVIDIA H100 80GB HBM3 (9.0)", of each in turn.
  std::string names() const {
    std::string text;
    for (const int ordinal : choice_.ordinals) {
      const auto p = properties(ordinal);
      text += (text.empty() ? "" : ", ") + p.name + " (" + std::to_string(p.major) + "." +
              std::to_string(p.minor) + ")";
    }
    return text;
  }

  struct tuned {
    std::shared_ptr<tuning> found = std::make_shared<tuning>();
    std::size_t said = 0;  // products, when the last remark was taken
  };

  const plugin_choice choice_;
  const std::shared_ptr<device> cpu_;
  std::shared_ptr<std::pmr::memory_resource> host_;
  mutable std::once_flag timed_;
  mutable std::optional<double> flop_s_;  // rate of its own products, after the first request
  std::map<int, tuned> tuned_;            // by GPU; none without autotune
  std::vector<std::weak_ptr<context>> contexts_;  // by ordinal of the choice; replicas keep them
};

}  // namespace

std::shared_ptr<device> make_device(const plugin_choice& choice, std::shared_ptr<device> cpu) {
  return std::make_shared<gpu_device>(choice, std::move(cpu));
}

std::vector<std::string> list_devices() {
  std::vector<std::string> lines;
  const int n = device_count();
  for (int i = 0; i < n; ++i) lines.push_back(describe_one(i));
  return lines;
}

}  // namespace poseidon::gpu

extern "C" const poseidon::device_plugin* poseidon_gpu_plugin() {
  static constexpr poseidon::device_plugin plugin{poseidon::device_contract, POSEIDON_VERSION,
                                                  &poseidon::gpu::make_device,
                                                  &poseidon::gpu::list_devices};
  return &plugin;
}
