#include "gpu/device_updates.hpp"

#include "gpu/blob_memory.hpp"
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/solver.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon::gpu {

gpu_updates::gpu_updates(std::vector<std::shared_ptr<replica>> replicas,
                         std::shared_ptr<context> with, std::vector<held_parameter> held,
                         const updates_wanted& wanted)
    : replicas_(std::move(replicas)),
      with_(std::move(with)),
      rule_(wanted.rule),
      held_(std::move(held)),
      summed_(with_->device),
      on_(with_->device, stream_use::copy_out) {
  for (held_parameter& h : held_) {
    if (h.values == nullptr) continue;
    const auto bytes = h.count * sizeof(float);
    for (std::size_t slot = 0; slot < history_count(rule_.kind); ++slot)
      h.history.push_back(claim(on_, bytes, "the solver state of " + h.name, larger_device));
    if (wanted.keeps_before)
      h.before = claim(on_, bytes, "the version before of " + h.name, larger_device);
    if (h.gradient == nullptr && !bench_) {
      // In float32, whatever the layers do: see models/device/device_updates.hpp.
      library_options exact;
      exact.precision = math::fp32;
      exact.deterministic = true;
      bench_.emplace(on_, exact);
    }
  }
}

gpu_updates::~gpu_updates() {
  try {
    gpu::finish(on_);
  } catch (const error&) {
    // The device is lost; its next user gets the error.
  }
}

held_parameter& gpu_updates::at(std::size_t parameter) {
  if (!holds(parameter))
    throw std::logic_error("parameter " + std::to_string(parameter) +
                           " is not updated on the device");
  return held_[parameter];
}

// -- updates --------------------------------------------------------------------------------------------

void gpu_updates::await_sum() {
  if (replicas_.size() == 1) return;
  record(summed_, with_->copy_out);
  wait(on_, summed_);
}

template <class F>
void gpu_updates::change(const parameter_part& of, const float* gradient, std::uint64_t version,
                         F&& apply) {
  held_parameter& h = at(of.parameter);
  updated_values v;
  v.gradient = gradient + of.first;
  v.values = h.values->begin_update(on_) + of.first;
  if (h.before.size() != 0) v.before = h.before.floats() + of.first;
  v.first = at(of, 0);
  if (h.history.size() > 1) v.second = at(of, 1);
  apply(v);
  if (std::exchange(h.version, version) != version) h.to_come = h.count;
  h.to_come -= of.count;
  if (h.to_come == 0) h.values->end_update(on_, version);
}

void gpu_updates::update(const parameter_part& of, const rule_step& step, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  await_sum();
  change(of, at(of.parameter).gradient, version,
         [&](const auto& v) { update_values(on_, rule_, step, of.count, v); });
}

void gpu_updates::update_average(const parameter_part& of, float momentum, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  await_sum();
  change(of, at(of.parameter).gradient, version,
         [&](const auto& v) { average_values(on_, momentum, of.count, v); });
}

void gpu_updates::update_by_factors(const factor_update& f, std::uint64_t version) {
  const std::lock_guard lock(mutex_);
  reconstruct_gradient(f);
  const float* gradient = bench_->gradient.floats();
  for (const auto& [parameter, step] : f.parameters) {
    const std::size_t values = at(parameter).count;
    change({parameter, 0, values}, gradient, version,
           [&](const auto& v) { update_values(on_, rule_, step, values, v); });
    gradient += values;
  }
}

/// The gradient of the weights, then that of the bias if there is one.
void gpu_updates::reconstruct_gradient(const factor_update& f) {
  if (!bench_) throw std::logic_error("no parameter is updated by factors on the device");
  const factor_shape& s = f.shape;
  const std::size_t weights = s.outputs * s.inputs;
  float* const u = room(bench_->factors, s.values(), "factors").floats();
  float* const v = u + s.u_values();
  float* const gradient = room(bench_->gradient, weights + s.outputs, "a gradient").floats();
  copy_to_device(on_, u, f.u.data(), s.u_values() * sizeof(float));
  copy_to_device(on_, v, f.v.data(), s.rows * s.inputs * sizeof(float));
  with_->waits.after(on_, [held = f.memory](const std::exception_ptr&) {});
  gemm_shape g;
  g.transpose_a = true;
  g.m = s.transposed ? s.inputs : s.outputs;
  g.n = g.ldb = g.ldc = s.transposed ? s.outputs : s.inputs;
  g.lda = g.m;
  g.k = s.rows;
  bench_->products.gemm(g, s.transposed ? v : u, s.transposed ? u : v, gradient);
  if (f.parameters.size() > 1) sum_channels(on_, {s.rows, s.outputs, 1}, u, gradient + weights);
}

/// Memory for at least `values` values. It is only allocated again before a layer's first update.
device_memory& gpu_updates::room(device_memory& m, std::size_t values, const std::string& what) {
  const auto bytes = values * sizeof(float);
  if (m.size() >= bytes) return m;
  gpu::finish(on_);
  m = device_memory();
  return m = claim(on_, bytes, what + " of layers that broadcast factors", larger_device);
}

void gpu_updates::finish() {
  const std::lock_guard lock(mutex_);
  gpu::finish(on_);
}

// -- what the host wants to know -------------------------------------------------------------------------

bool gpu_updates::read_values(std::size_t parameter, std::uint64_t version, std::span<float> to) {
  const std::lock_guard lock(mutex_);
  const held_parameter& h = at(parameter);
  if (!h.version) return false;
  const bool older = h.before.size() != 0 && version + 1 == h.version;
  if (version != h.version && !older)
    throw std::logic_error("parameter " + h.name + " stands at version " +
                           std::to_string(*h.version) + " on the device, version " +
                           std::to_string(version) + " is wanted");
  copy_to_host(on_, to.data(), older ? h.before.floats() : h.values->values(),
               h.count * sizeof(float));
  gpu::finish(on_);
  return true;
}

float* gpu_updates::at(const parameter_part& of, std::size_t slot) {
  return at(of.parameter).history.at(slot).floats() + of.first;
}

void gpu_updates::read_history(const parameter_part& of, std::size_t slot, std::span<float> to) {
  const std::lock_guard lock(mutex_);
  copy_to_host(on_, to.data(), at(of, slot), of.count * sizeof(float));
  gpu::finish(on_);
}

void gpu_updates::write_history(const parameter_part& of, std::size_t slot,
                                std::span<const float> from) {
  const std::lock_guard lock(mutex_);
  copy_to_device(on_, at(of, slot), from.data(), of.count * sizeof(float));
  gpu::finish(on_);
}

}  // namespace poseidon::gpu
