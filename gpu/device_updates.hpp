// gpu/device_updates.hpp
//
// Solver updates on the first of a node's GPUs, which holds values and gradients. They have a stream of their own:
//
//   compute    backward of layer l ..read|  backward below ...          arrived> forward of l
//   updates                          read> values, solver state |arrived
//   others     their copy-in streams copy the values from the first GPU when they need them (gpu/device_parameter.hpp)
//
// An update waits, on the device, for the kernels that have read the values before: the last of them has also computed
// the gradient. Kernels wait for an update as they wait for a copy from the host. For several GPUs the gradients are
// sums, which the first one's copy_out stream adds up.
#pragma once
#include "gpu/context.hpp"
#include "models/device/device_updates.hpp"

#include <mutex>
#include <optional>
#include <string>

namespace poseidon::gpu {

/// A parameter that gpu_updates updates. Without `values` it does not.
struct held_parameter {
  std::string name;
  std::shared_ptr<device_parameter> values;
  std::size_t count = 0;
  const float* gradient = nullptr;  ///< null: reconstructed from factors
  std::vector<device_memory> history;
  device_memory before;  ///< values of the version before, where they may be asked for
  std::optional<std::uint64_t> version;  ///< none: not updated yet
  std::size_t to_come = 0;               ///< values that do not have `version` yet
};

class gpu_updates final : public device_updates {
 public:
  /// Errors   gpu::error (memory): solver state that does not fit, with its parameter.
  gpu_updates(std::vector<std::shared_ptr<replica>> replicas, std::shared_ptr<context> with,
              std::vector<held_parameter> held, const updates_wanted& wanted);
  ~gpu_updates() override;

  bool holds(std::size_t parameter) const override { return held_.at(parameter).values != nullptr; }
  void update(const parameter_part& of, const rule_step& step, std::uint64_t version) override;
  void update_average(const parameter_part& of, float momentum, std::uint64_t version) override;
  void update_by_factors(const factor_update& f, std::uint64_t version) override;
  void finish() override;
  bool read_values(std::size_t parameter, std::uint64_t version, std::span<float> to) override;
  void read_history(const parameter_part& of, std::size_t slot, std::span<float> to) override;
  void write_history(const parameter_part& of, std::size_t slot,
                     std::span<const float> from) override;

 private:
  /// Memory for factors, and for the gradient that is reconstructed from them, one layer at a time.
  struct workbench {
    workbench(stream& on, const library_options& options) : products(on, options) {}
    library products;
    device_memory factors, gradient;
  };
  held_parameter& at(std::size_t parameter);
  float* at(const parameter_part& of, std::size_t slot);
  void await_sum();
  void reconstruct_gradient(const factor_update& f);
  /// `apply` enqueues the kernel that turns the values of a part into those of `version`.
  template <class F>
  void change(const parameter_part& of, const float* gradient, std::uint64_t version, F&& apply);
  device_memory& room(device_memory& m, std::size_t values, const std::string& what);

  const std::vector<std::shared_ptr<replica>> replicas_;  // they own the gradients
  const std::shared_ptr<context> with_;
  const solver_rule rule_;
  std::vector<held_parameter> held_;
  std::mutex mutex_;
  event summed_;
  stream on_;
  std::optional<workbench> bench_;
};

}  // namespace poseidon::gpu
