#include "actors/routes/route_plan.hpp"

#include "actors/run/compiled_run.hpp"
#include "actors/run/throughput_probe.hpp"
#include "actors/run/train_net.hpp"
#include "actors/run/view_shares.hpp"
#include "models/plan/lowrank_routes.hpp"
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
    r.round_s_value = probe.round_s_value();
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

/// What a format is worth depends on how long a pass takes, so for --lossy it is measured; a device that knows its times is asked in any case.
/// 0: not known.
double pass_s_where_wanted(const route_request& s, const net& n) {
  if (!s.node.compute->computes())
    return s.node.compute->told_pass_s(n, s.run.solver.spec.poseidon().replay().time_scale())
        .value_or(0);
  return s.lossy.is_none() ? 0 : pass_s_of(s.run, s.node);
}

const char* spelled(const route_option& option) {
  return option.what == route_option::kind::server    ? "ps"
         : option.what == route_option::kind::factors ? "sfb"
         : option.what == route_option::kind::lowrank ? "lowrank"
                                                      : option.file.c_str();
}

std::string as_option_says(const route_option& option) {
  return std::string("as --routes ") + spelled(option) + " says";
}

/// By layer: the rank that the option allows; 0: none. With --lossy lowrank the rank is that of the ladder's last rung.
std::vector<std::uint32_t> ranks_of(const route_request& request, const layer_routes& chosen) {
  using kind = route_option::kind;
  const auto& option = request.option;
  const bool all =
      option.what == kind::lowrank || (option.what == kind::automatic && !request.lossy.lowrank);
  const auto rank = option.what == kind::lowrank && option.rank == 0 ? default_rank : option.rank;
  std::vector<std::uint32_t> out;
  for (const auto r : chosen) out.push_back(all ? rank : rank_of(r));
  return out;
}

/// Whether the layer has any choice.
bool may_choose(const route_load& load) {
  return (load.factors.rows > 0 && load.refusal.empty()) || load.lowrank.rank > 0;
}

/// What low rank cannot be with.
void check_lowrank(const route_request& request, const std::vector<std::uint32_t>& ranks) {
  if (request.lossy.lowrank && request.option.what != route_option::kind::automatic)
    throw spec_error("--lossy lowrank chooses which layers go by low rank, and --routes " +
                     std::string(spelled(request.option)) +
                     " chooses for it. Leave out --routes, or give --lossy int4.");
  const bool asked =
      request.lossy.lowrank ||
      std::any_of(ranks.begin(), ranks.end(), [](std::uint32_t rank) { return rank > 0; });
  const auto share = request.run.solver.spec.poseidon().replay().byte_scale();
  if (asked && !request.node.compute->computes() && share != 1)
    throw spec_error(
        "--routes lowrank: with bytes=" + plain_number(static_cast<float>(share)) +
        " a replay has a part of each matrix, and P and Q are made of whole ones. Give "
        "it --devices replay:FILE without bytes=, or --routes ps, sfb or auto, without "
        "--rank and --lossy lowrank.");
}

/// By layer. Where nothing was predicted the reason is the option, or that this device gives no times to choose by.
std::vector<std::string> reasons_of(const std::vector<route_load>& loads,
                                    const std::vector<route_decision>& decisions,
                                    const layer_routes& chosen, const route_option& option) {
  const auto otherwise =
      option.what == route_option::kind::automatic
          ? "it is unknown how long this device takes to reconstruct gradients from factors"
          : as_option_says(option);
  std::vector<std::string> out;
  for (std::size_t l = 0; l < loads.size(); ++l)
    out.push_back(may_choose(loads[l]) || rank_of(chosen[l]) > 0 ? otherwise
                                                                 : loads[l].lowrank_refusal);
  for (const auto& d : decisions) out[d.layer] = d.why;
  return out;
}

layer_routes fastest(const std::vector<route_load>& loads, const route_rates& rates) {
  layer_routes chosen(loads.size(), route::parameter_server);
  for (const auto& d : decide_routes(loads, rates)) chosen[d.layer] = d.chosen;
  return chosen;
}

/// Chooses by predicted time how roughly each layer travels.
/// Writes   ladder and loads of `plan`, whose rates are known.
void choose_rungs(const route_request& request, const net& n, const layer_routes& listed,
                  const loads_by_rung& loads_of, route_plan& plan) {
  const bool automatic = request.option.what == route_option::kind::automatic;
  plan.ladder = choose_lossy(n, loads_of, plan.rates, request.lossy,
                             [&](const std::vector<route_load>& loads) {
                               return automatic ? fastest(loads, plan.rates) : listed;
                             });
  plan.loads = plan.ladder->loads;
}

/// Predicts the times of both routes for each layer and, where the option is automatic, chooses by them.
/// Writes   decisions of `plan`, whose rates are known; `chosen` where the option is automatic.
void predict(const route_request& request, layer_routes& chosen, route_plan& plan) {
  auto& r = plan.rates;
  plan.decisions = decide_routes(plan.loads, r);
  r.product_s = nullptr;  // `probe` may end before the plan
  for (auto& d : plan.decisions) {
    if (request.option.what == route_option::kind::automatic) {
      chosen[d.layer] = d.chosen;
    } else {
      d.chosen = chosen[d.layer];
      const bool refused = request.option.what == route_option::kind::lowrank
                               ? !d.load.lowrank_refusal.empty()
                               : !d.load.refusal.empty();
      if (!refused || d.chosen != route::parameter_server) d.why = as_option_says(request.option);
    }
  }
}

std::vector<std::string> notes_of(const route_request& request, const net& n,
                                  const layer_routes& chosen, const parameter_formats& wire) {
  std::vector<std::string> notes;
  for (const auto by : {route::factor_broadcast, route::lowrank_4, route::lowrank_8,
                        route::lowrank_4_bfloat16, route::lowrank_8_bfloat16}) {
    std::vector<std::string> names;
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (chosen[l] == by) names.push_back(n.layers[l].name);
    if (!names.empty())
      notes.push_back("routes: " + std::string(to_string(by)) + " for " + comma_list(names));
  }
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
  const auto ranks = ranks_of(request, chosen);
  check_lowrank(request, ranks);
  const std::vector<std::uint32_t> lowrank_all(n.layers.size(),
                                               option.rank > 0 ? option.rank : rank_of_ladder);
  const loads_by_rung loads_of = [&](const parameter_formats& of, bool lowrank) {
    return route_loads(n, passes, solver, of, lowrank ? lowrank_all : ranks);
  };
  plan.loads = loads_of(formats, false);
  const bool choice = option.what == route_option::kind::automatic &&
                      std::any_of(plan.loads.begin(), plan.loads.end(), may_choose);
  const bool knows_rates = request.node.compute->told_flop_s() != 0.0;
  const bool lossy = knows_rates && !request.lossy.is_none();
  if (knows_rates && (choice || lossy || request.explain)) {
    plan.rates = rates_of(request, resolved, probe);
    if (const auto pass_s = pass_s_where_wanted(request, n); pass_s > 0)
      take_pass_time(plan.rates, plan.loads, pass_s * static_cast<double>(passes));
    if (lossy) {
      choose_rungs(request, n, chosen, loads_of, plan);
      formats = plan.ladder->formats;
    }
    predict(request, chosen, plan);
    if (plan.ladder)
      plan.ladder->by_lowrank =
          std::any_of(chosen.begin(), chosen.end(), [](route r) { return rank_of(r) > 0; });
    plan.rate_assumed = (choice || lossy) && request.link_mbit_s <= 0;
    // A change would lose what rounding, or low rank, has kept back.
    plan.rate_decides = choice && formats.empty() && option.rank == 0 && !request.lossy.lowrank;
  }
  chosen = rounded_lowrank(n, std::move(chosen), formats);
  for (auto& d : plan.decisions) d.chosen = chosen[d.layer];
  plan.reasons = reasons_of(plan.loads, plan.decisions, chosen, option);
  plan.routes = routes_of(n, chosen);
  plan.wire = on_the_server(formats, plan.routes);
  if (!plan.later.empty() && !formats.empty())
    throw spec_error("--routes " + option.file +
                     " changes routes while training, and --wire or --lossy rounds: what rounding "
                     "has kept back would be lost. Leave out the lines with @, or that option.");
  plan.notes = notes_of(request, n, chosen, plan.wire);
  if (plan.ladder) plan.notes.push_back(lossy_note(*plan.ladder, request.lossy));
  if (!knows_rates && !request.lossy.is_none())
    plan.notes.push_back(
        "--lossy has no effect: it is unknown how long this device takes, so nothing can be "
        "predicted. --wire names a format without a prediction.");
  if (option.what == route_option::kind::lowrank &&
      plan.routes == routes_of(n, layer_routes(n.layers.size(), route::parameter_server))) {
    const auto of_run = why_no_lowrank(solver);
    plan.notes.push_back("--routes lowrank has no effect: " +
                         (of_run.empty()
                              ? "no layer of this net would save half of its values at rank " +
                                    std::to_string(option.rank > 0 ? option.rank : default_rank)
                              : of_run));
  }
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
