#include "actors/routes/route_plan.hpp"

#include "actors/run/compiled_run.hpp"
#include "actors/run/train_net.hpp"
#include "actors/run/view_shares.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace poseidon {

namespace {

constexpr double assumed_link_mbit_s = 1000;

/// How fast this device and its links are. `probe` has to live until the last call of product_s.
route_rates rates_of(const route_request& s, const train_net& n, device_probe& probe) {
  s.node.compute->arithmetic()->enter_thread(1);
  const bool computes = s.node.compute->computes();
  const auto& solver = s.run.solver.spec;
  route_rates r;
  r.workers = s.run.workers;
  r.keepers = s.run.survive;
  r.link_mbit_s = s.link_mbit_s > 0 ? s.link_mbit_s : assumed_link_mbit_s;
  r.cores = std::max(1u, std::thread::hardware_concurrency());
  const auto& told = s.run.shares;
  r.lanes = told.empty() ? replicas_of(s.node, n.batch) : told.front().replicas;
  if (!n.shares.empty()) {
    const auto own = static_cast<double>(samples_of_clock(n.shares.front()));
    std::uint64_t largest = 0;
    for (const auto& share : n.shares) largest = std::max(largest, samples_of_clock(share));
    r.largest_share = static_cast<double>(largest) / own;
    r.all_shares = static_cast<double>(samples_of_all(n.shares)) / own;
  }
  // Products are the host's where no device may update parameters.
  if (!computes || may_update_on_device(s.run)) probe.set_rate(s.node.compute->told_flop_s());
  r.product_s = [&probe](const factor_shape& shape) { return probe.product_s(shape); };
  r.flop_s = probe.flop_s();
  if (computes) {
    r.update_s_value = probe.update_s_value(rule_of(solver));
    // A device that makes such updates moves 20 bytes of its memory per value, which is negligible.
    if (may_update_on_device(s.run) && s.node.compute->told_flop_s()) r.factor_update_s_value = 0;
    r.add_s_value = probe.add_s_value();
    return r;
  }
  // Links and kernels stand in for faster ones, whose sums and updates take no time to speak of.
  const auto& replay = solver.poseidon().replay();
  r.link_mbit_s /= replay.byte_scale();
  r.flop_s /= replay.time_scale();
  r.product_s = [&probe, scale = replay.time_scale()](const factor_shape& shape) {
    return scale * probe.product_s(shape);
  };
  return r;
}

std::string as_option_says(const route_option& option) {
  const auto* said = option.what == route_option::kind::server    ? "ps"
                     : option.what == route_option::kind::factors ? "sfb"
                                                                  : option.file.c_str();
  return std::string("as --routes ") + said + " says";
}

/// By layer. Where nothing was predicted the reason is the option, or that this device gives no times to choose by.
std::vector<std::string> reasons_of(const std::vector<route_load>& loads,
                                    const std::vector<route_decision>& decisions,
                                    const route_option& option) {
  const auto otherwise =
      option.what == route_option::kind::automatic
          ? "it is unknown how long this device takes to reconstruct gradients from factors"
          : as_option_says(option);
  std::vector<std::string> out;
  for (const auto& load : loads)
    out.push_back(load.factors.rows == 0 || !load.refusal.empty() ? "" : otherwise);
  for (const auto& d : decisions) out[d.layer] = d.why;
  return out;
}

std::vector<bool> fastest(const std::vector<route_load>& loads, const route_rates& rates) {
  std::vector<bool> chosen(loads.size());
  for (const auto& d : decide_routes(loads, rates))
    chosen[d.layer] = d.chosen == route::factor_broadcast;
  return chosen;
}

/// Chooses the format of each layer by predicted time.
/// Writes   ladder and loads of `plan`, whose rates are known.
void choose_formats(const route_request& request, const net& n, std::size_t passes,
                    const std::vector<bool>& listed, route_plan& plan) {
  const auto& solver = request.run.solver.spec;
  const bool automatic = request.option.what == route_option::kind::automatic;
  plan.ladder = choose_lossy(n, passes, solver, plan.rates, request.lossy,
                             [&](const std::vector<route_load>& loads) {
                               return automatic ? fastest(loads, plan.rates) : listed;
                             });
  plan.loads = route_loads(n, passes, solver, plan.ladder->formats);
}

/// Predicts the times of both routes for each layer and, where the option is automatic, chooses by them.
/// Writes   decisions of `plan`, whose rates are known; `chosen` where the option is automatic.
void predict(const route_request& request, std::vector<bool>& chosen, route_plan& plan) {
  auto& r = plan.rates;
  plan.decisions = decide_routes(plan.loads, r);
  r.product_s = nullptr;  // `probe` may end before the plan
  for (auto& d : plan.decisions) {
    if (request.option.what == route_option::kind::automatic) {
      chosen[d.layer] = d.chosen == route::factor_broadcast;
    } else {
      d.chosen = chosen[d.layer] ? route::factor_broadcast : route::parameter_server;
      if (d.load.refusal.empty()) d.why = as_option_says(request.option);
    }
  }
}

std::vector<std::string> notes_of(const route_request& request, const net& n,
                                  const std::vector<bool>& chosen, const parameter_formats& wire) {
  std::vector<std::string> notes, names;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (chosen[l]) names.push_back(n.layers[l].name);
  if (!names.empty()) notes.push_back("routes: factor_broadcast for " + comma_list(names));
  if (request.option.what != route_option::kind::server)
    if (const auto why = why_no_factors_at_all(n, request.run.solver.spec); !why.empty())
      notes.push_back(why);
  for (auto& note : wire_notes(n, wire)) notes.push_back(std::move(note));
  return notes;
}

}  // namespace

route_plan plan_routes(const route_request& request, device_probe& probe) {
  const auto resolved = resolve_train_net(request.run, request.node);
  const auto& n = resolved.part;
  const auto& solver = request.run.solver.spec;
  const auto& option = request.option;
  const auto first_clock = request.run.first_clock;
  const auto passes =
      resolved.shares.empty() ? passes_of(request.run.solver) : resolved.shares.front().passes;
  route_plan plan;
  plan.batch = resolved.batch;
  auto formats = formats_of(n, request.wire);
  auto chosen = layers_of_option(n, option, solver, first_clock);
  for (const auto& [clock, layers] : changes_of_option(n, option, solver, first_clock))
    plan.later[clock] = routes_of(n, layers);
  plan.loads = route_loads(n, passes, solver, formats);
  const bool choice = option.what == route_option::kind::automatic &&
                      std::any_of(plan.loads.begin(), plan.loads.end(), [](const auto& load) {
                        return load.factors.rows > 0 && load.refusal.empty();
                      });
  const bool knows_rates = request.node.compute->told_flop_s() != 0.0;
  const bool lossy = knows_rates && request.lossy != wire_format::float32;
  if (knows_rates && (choice || lossy || request.explain)) {
    plan.rates = rates_of(request, resolved, probe);
    if (lossy) {
      choose_formats(request, n, passes, chosen, plan);
      formats = plan.ladder->formats;
    }
    predict(request, chosen, plan);
    plan.rate_assumed = (choice || lossy) && request.link_mbit_s <= 0;
    // With a reduced format a change would lose what rounding has kept back.
    plan.rate_decides = choice && formats.empty();
  }
  plan.reasons = reasons_of(plan.loads, plan.decisions, option);
  plan.routes = routes_of(n, chosen);
  plan.wire = on_the_server(formats, plan.routes);
  if (!plan.later.empty() && !formats.empty())
    throw spec_error("--routes " + option.file +
                     " changes routes while training, and --wire or --lossy rounds: what rounding "
                     "has kept back would be lost. Leave out the lines with @, or that option.");
  plan.notes = notes_of(request, n, chosen, plan.wire);
  if (plan.ladder) plan.notes.push_back(lossy_note(*plan.ladder, request.lossy));
  if (!knows_rates && request.lossy != wire_format::float32)
    plan.notes.push_back(
        "--lossy has no effect: it is unknown how long this device takes, so nothing can be "
        "predicted. --wire names a format without a prediction.");
  if (has_blocks(request.wire.all) && formats.empty())
    plan.notes.push_back("--wire " + std::string(to_string(request.wire.all)) +
                         " has no effect: no parameter of this net that is learned has " +
                         std::to_string(fewest_in_blocks) + " values or more");
  return plan;
}

std::vector<bool> chosen_layers(const route_plan& plan) {
  std::vector<bool> out(plan.loads.size());
  for (const auto& d : plan.decisions) out[d.layer] = d.chosen == route::factor_broadcast;
  return out;
}

}  // namespace poseidon
