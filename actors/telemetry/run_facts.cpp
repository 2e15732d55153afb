#include "actors/telemetry/run_facts.hpp"

#include "actors/telemetry/graph_plan.hpp"
#include "models/net/parameter_groups.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/plan/routes.hpp"
#include "models/plan/wire_choice.hpp"

#include <algorithm>

namespace poseidon {

namespace {

const route_decision* decision_on(const std::vector<route_decision>& decisions, std::size_t layer) {
  for (const auto& d : decisions)
    if (d.layer == layer) return &d;
  return nullptr;
}

std::string reason(const net& n, std::size_t layer, const run_definition& spec, route by) {
  if (rank_of(by) > 0)
    return layer < spec.reasons.size() && !spec.reasons[layer].empty()
               ? spec.reasons[layer]
               : "as the first node was told or has chosen";
  if (n.layers[layer].type != "InnerProduct")
    return "only an InnerProduct has factors; this is a " + n.layers[layer].type;
  if (const auto why = why_no_factors(n, layer, spec.solver.spec); !why.empty()) return why;
  if (layer < spec.reasons.size() && !spec.reasons[layer].empty()) return spec.reasons[layer];
  return "as the first node was told or has chosen";
}

}  // namespace

run_facts facts_of(const compiled_run& run, const run_definition& spec,
                   const std::vector<route_decision>& decisions) {
  struct nets {
    net train;
    partition cut;
    std::vector<net> tests;
  };
  auto kept = std::make_shared<nets>();
  kept->train = run.train.graph;
  kept->cut = run.store->cut();
  for (const auto& t : run.tests) kept->tests.push_back(t.graph);

  run_facts f;
  const auto& n = kept->train;
  f.model = n.name;
  f.replicas = run.replicas;
  f.first_clock = iteration_of(spec, spec.first_clock);
  f.last_clock = static_cast<std::uint64_t>(std::max(0, spec.solver.spec.max_iter()));
  f.iterations_per_clock = iterations_per_clock(spec.solver.spec);
  f.staleness = staleness_of(spec);
  if (spec.declared.empty()) f.images_per_clock = schedule_of(spec, run).samples_per_clock();
  for (const auto& share : run.shares.empty() ? spec.shares : run.shares)
    f.shares.push_back(samples_of_clock(share));
  f.plan = [kept, workers = spec.workers](std::uint32_t worker, std::uint32_t replicas) {
    return plan_graph(kept->train, kept->cut, {workers, replicas, worker}, kept->tests);
  };
  for (const auto& group : parameter_groups(n)) {
    if (group.learned.empty()) continue;
    const auto layer = group.layers.front();
    const auto* decision = decision_on(decisions, layer);
    const bool factors = run.by_factors[layer];
    const auto by = route_of(spec.routes, group.learned.front());
    run_facts::layer_route r;
    r.layer = n.layers[layer].name;
    r.route = std::string(to_string(by));
    r.why = spec.workers > 1 ? reason(n, layer, spec, by) : "one node: nothing travels";
    for (const auto p : group.learned) {
      const auto of_view = format_of(spec.wire, p);
      const auto format =
          spec.declared.empty() ? of_view : format_in_use(n.parameters[value(p)], of_view);
      r.wire = to_string(!on_every_node(spec.routes, p) ? format
                         : is_rounded(by)               ? wire_format::bfloat16
                                                        : wire_format::float32);
      if (!on_every_node(spec.routes, p))
        r.bytes +=
            wire_bytes(format, static_cast<std::size_t>(count(n.parameters[value(p)].shape)));
    }
    if (factors) {
      auto of_node = factors_of(n, layer);
      of_node.rows = run.shares.empty() ? of_node.rows * run.replicas
                                        : of_node.rows / run.train.batch * samples_of_node(run) /
                                              run.micro_batches;
      r.bytes = of_node.values() * sizeof(float);
    }
    if (rank_of(by) > 0) r.bytes = lowrank_bytes_of(n, layer, by).both();
    if (decision != nullptr && decision->load.factors.rows > 0 && decision->load.refusal.empty()) {
      r.server_ms = decision->server.total_ms();
      r.factors_ms = decision->factors.total_ms();
    }
    f.routes.push_back(std::move(r));
  }
  return f;
}

void keep_reasons(const std::vector<run_facts::layer_route>& before, const std::string& changed,
                  std::vector<run_facts::layer_route>& now) {
  for (auto& layer : now) {
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const auto& b) { return b.layer == layer.layer; });
    if (old == before.end()) continue;
    layer.why = old->route == layer.route ? old->why : changed;
  }
}

}  // namespace poseidon
