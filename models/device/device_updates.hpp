// models/device/device_updates.hpp - solver updates of parameters whose values and gradients lie in a device's memory.
#pragma once
#include "models/device/factors.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poseidon {

/// A run of values of one parameter.
struct parameter_part {
  std::size_t parameter = 0, first = 0, count = 0;
};

/// The request to device::make_updates(), by parameter of the train net.
struct updates_wanted {
  solver_rule rule;
  std::vector<bool> by_gradient;  ///< updated with the gradient that the replicas compute
  std::vector<bool> by_factors;   ///< updated with the gradient that is reconstructed from factors
  bool keeps_before = false;      ///< read_values() also reads the version before the newest
};

/// One update of an inner product's parameters with the gradient that reconstruct_gradient() would compute.
struct factor_update {
  factor_shape shape;
  std::span<const float> u, v;  ///< read until a kernel that has waited for the new values has run
  /// The weights and, if it is learned, the bias.
  std::vector<std::pair<std::size_t, rule_step>> parameters;
  /// Holds the memory of u and v until they have been read, even if the caller has ended by then.
  std::shared_ptr<const void> memory;
};

/// Updates of those parameters of a training net whose gradient a device has or can reconstruct. From the first update on
/// the values and the solver state in the device's memory count; the host has older ones. Kernels of all replicas that
/// read such a parameter, in nets for training and for tests, find each version when it has been published
/// (parameter_values::version). Updates only issue their work, which waits on the device for the backward passes that
/// have been issued.
///
/// The bits are those of the CPU's update() and update_average(). Products of factors are sums of float32, whatever the
/// precision of the device's layers, because each node of a cluster computes its own.
///
/// Threads  any; a parameter is not read during its update.
/// Errors   those of the device, also of work that was issued before.
class device_updates {
 public:
  virtual ~device_updates() = default;

  [[nodiscard]] virtual bool holds(std::size_t parameter) const = 0;

  /// As host_arithmetic::update(), for a part. All parts of a parameter are updated to `version` before it is published.
  virtual void update(const parameter_part& of, const rule_step& step, std::uint64_t version) = 0;
  /// As host_arithmetic::update_average(), for a part, with the change that the replicas compute.
  virtual void update_average(const parameter_part& of, float momentum, std::uint64_t version) = 0;
  /// Updates whole parameters. Not both this and update() for one parameter.
  virtual void update_by_factors(const factor_update& f, std::uint64_t version) = 0;

  /// Waits until all updates issued so far have finished. Outside of training.
  virtual void finish() = 0;
  /// Waits for the device. False, and nothing written, where there has been no update: the host's values count.
  /// Errors   std::logic_error for a version that the device does not have.
  virtual bool read_values(std::size_t parameter, std::uint64_t version, std::span<float> to) = 0;
  /// Waits for the device.
  virtual void read_history(const parameter_part& of, std::size_t slot, std::span<float> to) = 0;
  /// Solver state of a resumed run.
  virtual void write_history(const parameter_part& of, std::size_t slot,
                             std::span<const float> from) = 0;
};

}  // namespace poseidon
