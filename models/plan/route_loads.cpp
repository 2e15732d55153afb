// What each layer of a net computes and sends: the inputs of route_choice.hpp.
#include "models/plan/cost.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/plan/route_choice.hpp"

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

}  // namespace poseidon
