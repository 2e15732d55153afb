#include "apps/node/measured_profile.hpp"

#include "models/plan/cost.hpp"

#include <algorithm>

namespace poseidon::app {

namespace {

/// On a GPU the time of a layer includes a wait for the device, which training has not. The shortest time is that of such a wait, behind a layer
/// that another one has computed. Without waits kernels also begin as soon as the ones before them end, so the rest is scaled.
/// `all_ms`: of all layers in an iteration without waits.
void take_off_waits(profile& p, double all_ms) {
  if (all_ms <= 0)
    return;  // the update, which has waits too, takes longer than an iteration without them
  double wait = all_ms, sum = 0;
  for (const auto& l : p.layers)
    for (const double ms : {l.forward_ms, l.backward_ms})
      if (ms > 0) wait = std::min(wait, ms);
  for (auto& l : p.layers)
    for (double* const ms : {&l.forward_ms, &l.backward_ms})
      sum += * ms = std::max(0.0, *ms - wait);
  if (sum <= 0) return;
  for (auto& l : p.layers)
    for (double* const ms : {&l.forward_ms, &l.backward_ms}) *ms *= all_ms / sum;
}

}  // namespace

profile measured_profile(const bare_run& run, std::uint64_t iterations, double wall) {
  const auto& net = run.compiled().train;
  profile p;
  p.net = net.graph.name;
  p.measured = run.compute().describe() + ", " + std::to_string(run.compiled().replicas) +
               " replicas, " + (run.compute().is_asynchronous() ? "" : "CPU ") +
               "time of the first over " + std::to_string(iterations) + " iterations" +
               (run.compute().is_asynchronous() ? ", less the waits for the device" : "");
  p.batch = net.batch * run.compiled().replicas;
  const auto ms = 1e3 / static_cast<double>(iterations);
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l)
    p.layers.push_back(
        {net.graph.layers[l].name, ms * run.times()[l].forward, ms * run.times()[l].backward, {}});
  if (run.compute().is_asynchronous()) take_off_waits(p, ms * (wall - run.update_seconds()));
  double flop = 0, product_ms = 0;
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l) {
    if (net.graph.layers[l].type != "InnerProduct") continue;
    flop += static_cast<double>(flops_of(net.graph, l).forward);
    product_ms += p.layers[l].forward_ms;
  }
  if (product_ms > 0) p.gflop_s = 1e-6 * flop / product_ms;
  return p;
}

}  // namespace poseidon::app
