// gpu/replica_in_use.cpp - what travels between a replica and the host once it has been made.
#include "gpu/fetched_blobs.hpp"
#include "gpu/gpu_replica.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>

namespace poseidon::gpu {
namespace {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

last_to_leave::~last_to_leave() {
  for (stream* s : {&with_.copy_in, &with_.compute, &with_.copy_out}) {
    try {
      gpu::finish(*s);
      std::promise<void> told;
      with_.waits.after(*s, [&told](const std::exception_ptr&) { told.set_value(); });
      told.get_future().wait();
    } catch (const error&) {
      // The device is lost; its next user gets the error.
    }
  }
}

gpu_replica::~gpu_replica() {
  if (group_ != nullptr) group_->leave();
}

std::span<float> gpu_replica::gradient(std::size_t parameter) {
  if (gradients_.empty()) return {};
  return gradients_.at(parameter);
}

void gpu_replica::read_data(std::size_t blob, std::span<float> to) const {
  const gpu_blob& b = checked(blob, to.size());
  read(b, b.data, to.first(b.values()));
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(b.values()), to.end(), 0.0f);
}
void gpu_replica::write_data(std::size_t blob, std::span<const float> from) {
  const gpu_blob& b = checked(blob, from.size());
  write(b, b.data, from.first(b.values()));
}
void gpu_replica::read_diff(std::size_t blob, std::span<float> to) const {
  const gpu_blob& b = checked_diff(blob, to.size());
  read(b, b.diff, to.first(b.values()));
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(b.values()), to.end(), 0.0f);
}
void gpu_replica::write_diff(std::size_t blob, std::span<const float> from) {
  const gpu_blob& b = checked_diff(blob, from.size());
  write(b, b.diff, from.first(b.values()));
}

void gpu_replica::bring_gradients(std::size_t layer, completion done) {
  layer_traffic& t = *traffic_.at(layer);
  wait(with_->copy_out, t.made);
  std::vector<std::size_t> added;
  for (std::size_t i = 0; i < t.gradients.size(); ++i) {
    const std::size_t p = t.gradients[i];
    if (!t.complete[i]) continue;
    if (!is_added(p))
      copy_home(p);
    else if (std::find(added.begin(), added.end(), p) == added.end())
      added.push_back(p);
  }
  if (t.factors != nullptr) copy_home(*t.factors);
  if (added.empty()) return with_->waits.after(with_->copy_out, std::move(done));
  group_->contribute(place_, added, t.made, std::move(done));
}

void gpu_replica::join(std::shared_ptr<gradient_group> group, std::size_t place) {
  group_ = std::move(group);
  place_ = place;
  for (std::size_t p = 0; place > 0 && p < gradients_.size(); ++p)
    if (group_->adds(p)) gradients_[p] = host_values(host_.get());
}

void gpu_replica::keep_gradient(std::size_t parameter) {
  gradients_.at(parameter) = host_values(host_.get());
  if (is_added(parameter)) group_->keep(parameter);
}

std::shared_ptr<fetched_values> gpu_replica::fetch(std::span<const std::size_t> blobs) {
  return std::make_shared<fetched_blobs>(*with_, state_, blobs, host_);
}

void gpu_replica::bring_parameters(std::size_t layer) {
  for (const auto& p : traffic_.at(layer)->reads) p->bring(with_->copy_in);
}

void gpu_replica::keep(std::shared_ptr<const void> what) {
  // Only batches live outside, and they are read by the copies in.
  with_->waits.after(with_->copy_in, [held = std::move(what)](const std::exception_ptr&) {});
}

void gpu_replica::finish_kernels() {
  gpu::finish(with_->compute);
}

void gpu_replica::finish() {
  for (const auto& t : traffic_) wait(with_->copy_out, t->made);
  for (const auto& t : traffic_) {
    for (const std::size_t p : t->gradients)
      if (!is_added(p)) copy_home(p);
    if (t->factors != nullptr) copy_home(*t->factors);
  }
  gpu::finish(with_->copy_out);
  std::vector<std::byte> faults(state_.faults->bytes());
  state_.faults->copy(with_->compute, faults.data());
  gpu::finish(with_->compute);
  if (const auto fault = state_.faults->read(faults.data())) throw std::invalid_argument(*fault);
}

std::optional<std::string> gpu_replica::first_nonfinite() const {
  std::vector<float> found;
  for (const net_layer& l : state_.graph.layers) {
    for (const std::size_t p : l.parameters) {
      found.resize(static_cast<std::size_t>(count(state_.graph.parameters[p].shape)));
      read(parameters_[p]->values(), std::as_writable_bytes(std::span(found)));
      if (!all_finite(found)) return l.name;
    }
    for (const std::size_t t : l.tops) {
      const gpu_blob& b = state_.blobs[t];
      if (b.data == nullptr) continue;
      found.resize(b.values());
      read(b, b.data, found);
      if (!all_finite(found)) return l.name;
    }
  }
  return std::nullopt;
}

void gpu_replica::copy_home(std::size_t parameter) {
  host_values& to = gradients_[parameter];
  if (to.empty()) return;  // used where it is
  copy_to_host(with_->copy_out, to.data(), state_.sums[parameter], to.size() * sizeof(float));
}
void gpu_replica::copy_home(kept_factors& f) {
  copy_to_host(with_->copy_out, f.on_host.data(), f.on_device.bytes(), f.on_device.size());
}

void gpu_replica::read(const void* from, std::span<std::byte> to) const {
  if (from == nullptr) return std::fill(to.begin(), to.end(), std::byte{0});
  copy_to_host(with_->compute, to.data(), from, to.size());
  gpu::finish(with_->compute);
}
void gpu_replica::write(void* to, std::span<const std::byte> from) {
  if (to == nullptr) return;
  copy_to_device(with_->compute, to, from.data(), from.size());
  gpu::finish(with_->compute);
}

/// A blob's values, on the host always in Caffe's order.
void gpu_replica::read(const gpu_blob& b, const_values from, std::span<float> to) const {
  if (b.order == layout::nchw) return read(from.at(), std::as_writable_bytes(to));
  std::vector<std::byte> there(b.bytes());
  read(from.at(), there);
  to_nchw(*b.extents, b.order, there, to);
}
void gpu_replica::write(const gpu_blob& b, values to, std::span<const float> from) {
  if (b.order == layout::nchw) return write(to.at(), std::as_bytes(from));
  std::vector<std::byte> there(b.bytes());
  from_nchw(*b.extents, from, b.order, there);
  write(to.at(), there);
}

const gpu_blob& gpu_replica::checked(std::size_t blob, std::size_t size) const {
  const gpu_blob& b = state_.blobs.at(blob);
  const std::size_t whole = whole_size(state_, blob);
  if (size != whole)
    throw std::invalid_argument("blob \"" + state_.graph.blobs[blob].name + "\" holds " +
                                std::to_string(whole) + " values, not " + std::to_string(size));
  return b;
}
const gpu_blob& gpu_replica::checked_diff(std::size_t blob, std::size_t size) const {
  const gpu_blob& b = checked(blob, size);
  if (b.diff == nullptr)
    throw std::invalid_argument(
        "blob \"" + state_.graph.blobs[blob].name +
        "\" has no diff: no layer needs it (replica_options::keep_all_diffs)");
  return b;
}

}  // namespace poseidon::gpu
