#include "gpu/blob_memory.hpp"
#include "gpu/gpu_replica.hpp"
#include "gpu/host_layer.hpp"
#include "gpu/normalization.hpp"
#include "gpu/residual.hpp"
#include "gpu/resizing.hpp"
#include "gpu/shared_gradient.hpp"
#include "gpu/source.hpp"

#include <algorithm>

namespace poseidon::gpu {

gpu_replica::gpu_replica(std::shared_ptr<context> with,
                         std::shared_ptr<std::pmr::memory_resource> host,
                         std::shared_ptr<poseidon::device> cpu, const net& n,
                         std::span<const parameter_values* const> parameters,
                         replica_options options)
    : with_(std::move(with)),
      host_(std::move(host)),
      cpu_(std::move(cpu)),
      sources_(parameters.begin(), parameters.end()),
      state_{{n, std::move(options)}, with_->device, with_->compute, with_->libraries} {
  for (const net_blob& b : n.blobs) state_.extents.push_back(b.shape);
  state_.blobs.resize(n.blobs.size());
  layouts chosen = choose_layouts(n, with_->libraries.options().images);
  state_.orders = std::move(chosen.layers);
  for (std::size_t b = 0; b < n.blobs.size(); ++b) {
    state_.blobs[b].extents = &state_.extents[b];
    state_.blobs[b].order = chosen.blobs[b];
  }
  check_types();
  state_.residuals = find_residuals(state_);
  allocate_blobs(state_);
  take_parameters();
  make_kernels();
  finish();  // the zeros are written before another stream reads them
}

void gpu_replica::check_types() {
  for (std::size_t l = 0; l < state_.graph.layers.size(); ++l) {
    const net_layer& layer = state_.graph.layers[l];
    if (!is_source(layer) && find_layer_type(layer.type) == nullptr &&
        !runs_on_host(layer.type, *cpu_))
      layer_context{state_, layer, l}.refuse("the GPU has no kernel for this type. It has " +
                                             known_layer_types() +
                                             ". Train this net with --devices cpu.");
  }
}

/// Device memory for the parameters' values and gradients.
void gpu_replica::take_parameters() {
  const net& n = state_.graph;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
    try {
      parameters_.push_back(with_->parameter(*sources_[p], values));
    } catch (const error& e) {
      if (e.kind() != error_kind::memory) throw;
      throw explained(e, with_->device, values * sizeof(float), "parameter " + n.parameters[p].name,
                      larger_device);
    }
    state_.parameters.push_back(parameters_.back()->values());
  }
  state_.gradients.resize(n.parameters.size());
  state_.shared.resize(n.parameters.size());
  state_.sums.resize(n.parameters.size());
  if (!state_.has_backward()) return;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    const auto values = state_.by_factors(n.parameters[p].layer)
                            ? 0
                            : static_cast<std::size_t>(count(n.parameters[p].shape));
    gradients_.emplace_back(values, host_.get());
    if (values != 0) state_.gradients[p] = gradient_memory(p, values);
  }
  state_.sums = state_.gradients;
  for (std::size_t p = 0; p < n.parameters.size() && state_.options.passes > 1; ++p)
    if (state_.gradients[p] != nullptr)
      state_.sums[p] = gradient_memory(p, static_cast<std::size_t>(count(n.parameters[p].shape)));
}

float* gpu_replica::gradient_memory(std::size_t parameter, std::size_t values) {
  state_.memory.push_back(
      claim(with_->compute, values * sizeof(float),
            "the gradient of parameter " + state_.graph.parameters[parameter].name, larger_device));
  return state_.memory.back().floats();
}

void gpu_replica::make_kernels() {
  const net& n = state_.graph;
  const std::vector<bool> resized = resized_blobs(n);
  find_shared_gradients();
  keep_inputs_of_normalizations(state_);
  share_gradients(state_);
  state_.faults = std::make_unique<fault_board>(with_->compute, n.layers.size());
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const net_layer& layer = n.layers[l];
    auto& converted = *converted_.emplace_back(
        std::make_unique<converted_blobs>(layer_context{state_, layer, l}));
    const layer_context c{state_, layer, l, &converted};
    auto& traffic = *traffic_.emplace_back(std::make_unique<layer_traffic>(with_->device));
    for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) {
      const std::size_t p = layer.parameters[slot];
      traffic.reads.push_back(parameters_[p]);
      auto& written = traffic.gradients;
      if (state_.gradients[p] != nullptr &&
          std::find(written.begin(), written.end(), p) == written.end())
        written.push_back(p);
    }
    traffic.complete.resize(traffic.gradients.size(), true);
    if (state_.by_factors(l) && state_.has_backward()) traffic.factors = make_factors(c);
    const bool resizes = std::any_of(layer.bottoms.begin(), layer.bottoms.end(),
                                     [&](std::size_t b) { return resized[b]; });
    auto made = resizes ? make_resizing(c, [this](const auto& now) { return make_kernel(now); })
                        : make_kernel(c);
    if (!converted.empty()) made = make_converting(c, std::move(made));
    kernels_.push_back(make_issuing(std::move(made), traffic, *with_, c));
  }
}

std::unique_ptr<kernel> gpu_replica::make_kernel(const layer_context& c) const {
  if (is_source(c.layer)) return make_source(c, *with_);
  if (const auto* type = find_layer_type(c.layer.type)) return type->make(c);
  return make_host_layer(c, *cpu_, *host_);
}

std::unique_ptr<kept_factors> gpu_replica::make_factors(const layer_context& c) const {
  auto f = std::make_unique<kept_factors>();
  f->u_values = c.top(0).values();
  f->v_values = c.bottom(0).values();
  const std::size_t values = f->u_values + f->v_values;
  f->on_device = claim(with_->compute, values * sizeof(float),
                       "the factors of layer \"" + c.layer.name + "\"", smaller_batch);
  f->on_host = host_values(values, host_.get());
  return f;
}

/// Parameters that several layers learn: memory for each of those.
void gpu_replica::find_shared_gradients() {
  const net& n = state_.graph;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    const std::size_t writers = gradient_writers(n, p).size();
    if (writers < 2 || state_.gradients[p] == nullptr) continue;
    const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
    std::vector<float*> parts{state_.gradients[p]};
    while (parts.size() < writers) parts.push_back(gradient_memory(p, values));
    state_.shared[p] = std::make_shared<shared_gradient>(with_->compute, std::move(parts), values);
  }
}

std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                 std::shared_ptr<std::pmr::memory_resource> host,
                                 std::shared_ptr<poseidon::device> cpu, const net& n,
                                 std::span<const parameter_values* const> parameters,
                                 replica_options options) {
  return std::make_unique<gpu_replica>(std::move(with), std::move(host), std::move(cpu), n,
                                       parameters, std::move(options));
}

}  // namespace poseidon::gpu
