#include "actors/run/compiled_run.hpp"

#include "data/batch_filler.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <thread>

namespace poseidon {

std::uint32_t default_replicas(std::uint64_t batch, std::uint32_t cores) {
  for (auto r = std::max(1u, cores); r > 1; --r)
    if (batch % r == 0 && batch / r >= 8) return r;
  return 1;
}

std::uint32_t replicas_of(const node_spec& node, std::uint64_t batch) {
  if (node.replicas != 0) return node.replicas;
  if (const auto of_device = node.compute->replicas(); of_device != 0) return of_device;
  return default_replicas(batch, std::thread::hardware_concurrency());
}

std::size_t readers_of(const node_spec& node, std::size_t replicas) {
  return node.readers != 0 ? node.readers
                           : default_readers(node.compute->is_asynchronous(), replicas,
                                             std::thread::hardware_concurrency());
}

std::uint64_t batch_of(const net& n) {
  std::uint64_t batch = 0;
  for (const auto& layer : n.layers)
    if (is_source(layer))
      batch = static_cast<std::uint64_t>(n.blobs[layer.tops.front()].shape.front());
  return batch;
}

sample_schedule schedule_of(const run_definition& run, const compiled_run& compiled) {
  return {run.workers,          compiled.micro_batches, compiled.replicas,
          compiled.train.batch, run.data.samples,       compiled.shares};
}

std::uint64_t samples_of_node(const compiled_run& compiled) {
  std::uint64_t samples = 0;
  for (std::uint32_t r = 0; r < compiled.replicas; ++r) samples += compiled.train.batch_of(r);
  return samples * compiled.micro_batches;
}

bool may_update_on_device(const run_definition& run) {
  const bool keeps_versions = run.survive > 0 && run.workers > 1;  // of solver state, on the host
  return staleness_of(run) == 0 && !run.solver.spec.debug_info() && !keeps_versions;
}

std::uint32_t passes_added(const compiled_run& c, const run_definition& run,
                           const device& compute) {
  if (!compute.adds_passes() || c.replicas > 1 || run.solver.spec.debug_info()) return 1;
  const net& n = c.train.graph;
  const std::vector<bool> whole = have_whole_gradients(n);
  for (std::size_t p = 0; p < whole.size(); ++p)
    if (!whole[p] && is_updated(n, p)) return 1;
  return c.micro_batches;
}

// A gradient that this node alone computes and uses need not leave its device. Otherwise the host sees each clock's
// gradient anyway: it is clipped, goes to other nodes, or is the sum of several micro-batches on several devices.
std::shared_ptr<device_updates> updates_of(const compiled_run& c, const run_definition& run,
                                           device& compute) {
  const auto& solver = run.solver.spec;
  if (!may_update_on_device(run)) return nullptr;
  const auto& n = c.train.graph;
  const bool alone =
      run.workers == 1 && c.micro_batches == c.passes_added && solver.clip_gradients() < 0;
  updates_wanted wanted;
  wanted.rule = rule_of(solver);
  wanted.keeps_before = run.workers > 1;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) {
    const auto id = as_id<parameter_id>(p);
    const bool by_factors = on_factors(run.routes, id);
    const bool exact = format_of(run.wire, id) == wire_format::float32;
    wanted.by_factors.push_back(by_factors && is_updated(n, p));
    wanted.by_gradient.push_back(alone && exact && !on_every_node(run.routes, id) &&
                                 is_updated(n, p));
  }
  return compute.make_updates(c.train.replicas, wanted);
}

span_phase copy_phase_of(const compiled_run& c, parameter_id parameter, std::size_t replica) {
  const bool stays = c.updates != nullptr && c.updates->holds(value(parameter));
  if (c.joined > 1 && replica < c.joined && (replica > 0 || stays)) return span_phase::sum;
  return stays ? span_phase::gradient_ready : span_phase::copy_to_host;
}

}  // namespace poseidon
