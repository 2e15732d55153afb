// What each layer computes and sends, and how fast the device is with it: the inputs of route_choice.hpp.
#include "models/plan/cost.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/plan/route_choice.hpp"

#include <algorithm>

namespace poseidon {

std::vector<route_load> route_loads(const net& n, std::size_t micro_batches,
                                    const ::caffe::SolverParameter& solver,
                                    const parameter_formats& formats,
                                    const std::vector<std::uint32_t>& ranks) {
  std::vector<route_load> out;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& layer = n.layers[l];
    auto& load = out.emplace_back();
    double bytes = 0;
    load.name = layer.name;
    load.backward_flop =
        static_cast<double>(flops_of(n, l).backward) * static_cast<double>(micro_batches);
    for (const auto p : layer.parameters)
      if (n.parameters[p].layer == l && is_learned(n, p)) {
        const auto values = static_cast<std::size_t>(count(n.parameters[p].shape));
        load.values += static_cast<double>(values);
        bytes +=
            static_cast<double>(wire_bytes(format_of(formats, as_id<parameter_id>(p)), values));
      }
    if (bytes > 0) load.value_bytes = bytes / load.values;
    if (!ranks.empty() && ranks[l] > 0 && load.values > 0 && has_matrix(layer)) {
      load.lowrank_refusal = why_no_lowrank(n, l, ranks[l], solver);
      if (load.lowrank_refusal.empty()) {
        load.lowrank = lowrank_shape_of(n, l, ranks[l]);
        load.values_beside = load.values - static_cast<double>(load.lowrank.values());
      }
    }
    if (layer.type != "InnerProduct") continue;
    load.refusal = why_no_factors(n, l, solver);
    load.factors = factors_of(n, l);
    load.factors.rows *= micro_batches;
  }
  return out;
}

void take_pass_time(route_rates& r, const std::vector<route_load>& loads, double pass_s) {
  double products_s = 0, rest_flop = 0;
  for (const auto& load : loads) {
    const auto& f = load.factors;
    if (f.rows > 0) products_s += r.product_s(f) / r.lanes;
    const auto product = 2.0 * static_cast<double>(f.rows) * static_cast<double>(f.outputs) *
                         static_cast<double>(f.inputs);
    rest_flop += std::max(0.0, load.backward_flop - product);
  }
  const double backward_s = pass_s / 1.5;  // a forward pass is half of a backward pass
  // Products that were timed alone can take longer than they do in the pass.
  const double rest_s = std::max(backward_s - products_s, 0.1 * backward_s);
  r.pass_s = pass_s;
  if (rest_flop > 0) r.flop_s = rest_flop / (rest_s * r.lanes);
}

}  // namespace poseidon
