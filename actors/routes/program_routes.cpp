#include "actors/routes/program_routes.hpp"

#include "models/plan/wire_choice.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace poseidon {

namespace {

route_load load_of(const declared_parameter& p, const parameter_load& measured, std::uint32_t rows,
                   wire_format format) {
  route_load out;
  out.name = p.name;
  const auto values = static_cast<std::size_t>(count(p.shape));
  out.values = static_cast<double>(values);
  out.value_bytes = static_cast<double>(wire_bytes(format_in_use(p, format), values)) / out.values;
  out.measured = {measured.backward_s, rows > 0 ? measured.product_s : 0};
  if (rows > 0)
    out.factors = {rows, static_cast<std::size_t>(p.shape[0]),
                   static_cast<std::size_t>(p.shape[1])};
  else
    out.refusal = "its program gives the gradient as a whole";
  return out;
}

route_rates rates_of(const route_request& request, device_probe& probe) {
  request.node.compute->arithmetic()->enter_thread(1);
  const bool computes = request.node.compute->computes();
  route_rates r;
  r.workers = request.run.workers;
  r.link_mbit_s = request.link_mbit_s;
  r.cores = std::max(1u, std::thread::hardware_concurrency());
  if (!computes) probe.set_rate(request.node.compute->told_flop_s());
  r.product_s = [&probe](const factor_shape& shape) { return probe.product_s(shape); };
  if (!computes) return r;
  // A shard adds the workers' gradients and scales the sum, which takes as long as adding one.
  r.add_s_value = probe.add_s_value();
  r.update_s_value = r.add_s_value;
  return r;
}

}  // namespace

program_plan plan_program(const route_request& request, const factors_offered& offered,
                          device_probe& probe) {
  program_plan plan;
  plan.parameters = offered.order;
  for (const auto p : plan.parameters)
    plan.loads.push_back(load_of(request.run.declared[value(p)], offered.loads.at(value(p)),
                                 offered.rows.at(value(p)), request.wire.all));
  plan.chosen.resize(plan.loads.size());
  if (request.option.what == route_option::kind::factors) {
    for (std::size_t l = 0; l < plan.loads.size(); ++l)
      plan.chosen[l] = plan.loads[l].refusal.empty();
    if (std::find(plan.chosen.begin(), plan.chosen.end(), true) != plan.chosen.end())
      plan.why = "factors wherever the programs can give them, as routes=sfb says";
  } else if (request.option.what == route_option::kind::automatic) {
    plan.rates = rates_of(request, probe);
    for (const auto& d : decide_routes(plan.loads, plan.rates)) {
      plan.chosen[d.layer] = d.chosen == route::factor_broadcast;
      if (plan.chosen[d.layer])
        plan.why += (plan.why.empty() ? "" : "; ") + d.load.name + " as factors " + d.why;
    }
  }
  return plan;
}

parameter_routes routes_of(const program_plan& plan, const std::vector<bool>& chosen) {
  parameter_routes routes(plan.parameters.size(), route::parameter_server);
  for (std::size_t l = 0; l < chosen.size(); ++l)
    if (chosen[l]) routes[plan.parameters[l]] = route::factor_broadcast;
  return routes;
}

}  // namespace poseidon
