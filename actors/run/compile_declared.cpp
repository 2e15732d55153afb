#include "actors/run/compile_declared.hpp"

#include "models/plan/lowrank_routes.hpp"
#include "models/plan/wire_choice.hpp"

#include <string>
#include <utility>

namespace poseidon {

namespace {

/// They come from worker 0, and each becomes memory.
void check_factors(const run_definition& run) {
  constexpr double most_values = 1e10;
  for (std::size_t p = 0; p < run.declared.size(); ++p) {
    const auto& name = run.declared[p].name;
    const auto& dims = run.declared[p].shape;
    const auto rows = p < run.factor_rows.size() ? run.factor_rows[p] : 0;
    if (rows > 0 && run.declared[p].given)
      throw spec_error("worker 0 gives \"" + name + "\" factors, and it is given as it is.");
    if (rows > 0 && dims.size() != 2)
      throw spec_error("worker 0 gives \"" + name + "\" factors, but it has " +
                       std::to_string(dims.size()) + " dimensions, expected 2.");
    if (rows > 0 &&
        static_cast<double>(rows) * static_cast<double>(dims[0] + dims[1]) > most_values)
      throw spec_error("worker 0 gives \"" + name + "\" factors of " + std::to_string(rows) +
                       " rows: too many values.");
    if (rows == 0 && on_factors(run.routes, as_id<parameter_id>(p)))
      throw spec_error("worker 0 gives \"" + name + "\" the route factor_broadcast without rows.");
  }
}

void check_lowrank(const net& n, const run_definition& run) {
  for (std::size_t p = 0; p < run.declared.size(); ++p) {
    const auto rank = rank_of(route_of(run.routes, as_id<parameter_id>(p)));
    if (rank == 0) continue;
    const auto head = "worker 0 gives \"" + run.declared[p].name + "\" a lowrank route, ";
    if (run.optimizer != optimizer_rule::none)
      throw spec_error(
          head + "and the workers make the optimizer's steps, which they do with whole gradients.");
    if (const auto why = why_no_lowrank(n, p, rank, {}); !why.empty())
      throw spec_error(head + "which it cannot take: " + why + ".");
  }
}

}  // namespace

std::unique_ptr<compiled_run> compile_declared(const run_definition& run, const node_spec& node,
                                               const parameter_store* before) {
  check_factors(run);
  auto out = std::make_unique<compiled_run>();
  out->train.graph = declared_net(run.declared, run.factor_rows);
  const auto& n = out->train.graph;
  check_lowrank(n, run);
  out->by_factors = factor_layers(n, run.routes);
  auto cut = make_partition(n, run.workers, run.routes);
  if (!run.wire.empty() && run.wire.size() != run.declared.size())
    throw spec_error("worker 0 gives " + std::to_string(run.wire.size()) + " wire formats for " +
                     std::to_string(run.declared.size()) + " parameters.");
  // Means travel as their frames say, from clock to clock.
  if (run.optimizer != optimizer_rule::none)
    set_formats(cut, on_the_server(formats_in_use(n, run.wire), run.routes));
  out->store = before != nullptr
                   ? std::make_shared<parameter_store>(*before, std::move(cut))
                   : std::make_shared<parameter_store>(n.parameters, std::move(cut), run.workers, 0,
                                                       node.compute->host_memory(), true);
  return out;
}

}  // namespace poseidon
