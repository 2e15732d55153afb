#include "actors/protocol_selector.hpp"

#include "actors/compiled_run.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace poseidon {

namespace {

constexpr double assumed_link_mbit_s = 1000;
constexpr int repetitions = 3;
constexpr double most_flop = 2e8;  // of a product that is timed: a few milliseconds

template <class F>
double best_seconds(F&& run) {
  run();  // code and memory get warm
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return std::max(best, 1e-9);
}

double flop_of(const factor_shape& s) {
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.outputs) *
         static_cast<double>(s.inputs);
}

}  // namespace

double device_probe::product_s(const factor_shape& wanted) {
  auto s = wanted;
  while (flop_of(s) > most_flop) {
    auto& largest =
        std::max({std::ref(s.rows), std::ref(s.outputs), std::ref(s.inputs)}, [](auto a, auto b) {
          return a.get() < b.get();
        }).get();
    largest = (largest + 1) / 2;
  }
  const auto key = std::array{s.rows, s.outputs, s.inputs, std::size_t{s.transposed}};
  auto known = flop_s_.find(key);
  if (known == flop_s_.end()) {
    const std::vector<float> u(s.u_values(), 0.5f), v(s.rows * s.inputs, 0.25f);
    std::vector<float> gradient(s.outputs * s.inputs);
    const auto seconds = best_seconds([&] { device_->rebuild(s, u, v, gradient, {}); });
    known = flop_s_.emplace(key, flop_of(s) / seconds).first;
  }
  return flop_of(wanted) / known->second;
}

double device_probe::update_s_value(const solver_rule& rule) {
  constexpr std::size_t values = std::size_t{1} << 18;  // no cache holds all of it
  const std::vector<float> gradient(values, 1.0f), now(values, 1.0f);
  std::vector<float> fresh(values);
  std::vector<std::vector<float>> slots(history_count(rule.kind), std::vector<float>(values, 1.0f));
  const std::vector<std::span<float>> history(slots.begin(), slots.end());
  return best_seconds([&] { device_->update(rule, {}, gradient, now, fresh, history); }) /
         static_cast<double>(values);
}

double device_probe::add_s_value() {
  std::vector<float> into(std::size_t{1} << 18);
  const std::vector<float> x(into.size(), 1.0f);
  return best_seconds([&] { device_->add(into, x); }) / static_cast<double>(into.size());
}

route_plan plan_routes(const protocol_selector_setup& s) {
  const auto n = resolve_train_net(s.run, s.node);
  const auto& solver = s.run.solver.spec;
  const auto micro_batches = static_cast<std::size_t>(std::max(1, solver.iter_size()));
  route_plan plan;
  // A device that does not compute has the sizes of blobs, scaled perhaps, but no factors of them.
  const bool computes = s.node.compute->computes();
  if (!computes && s.wish.what != route_wish::kind::automatic &&
      s.wish.what != route_wish::kind::server)
    throw spec_error(
        "--routes: a replayed net has no factors, only times and sizes. Use --routes ps, or none.");
  auto chosen = wished_layers(n, s.wish, solver);
  const bool automatic = s.wish.what == route_wish::kind::automatic;
  if (computes && (automatic || s.explain)) {
    const auto loads = route_loads(n, micro_batches, solver);
    device_probe probe(s.node.compute);
    s.node.compute->enter_thread(1);
    auto& r = plan.rates;
    r.workers = s.run.workers;
    r.link_mbit_s = s.link_mbit_s > 0 ? s.link_mbit_s : assumed_link_mbit_s;
    r.cores = std::max(1u, std::thread::hardware_concurrency());
    std::uint64_t batch = 1;
    for (const auto& layer : n.layers)
      if (is_source(layer)) {
        batch = static_cast<std::uint64_t>(n.blobs[layer.tops.front()].shape.front());
        break;
      }
    r.lanes = s.node.replicas != 0 ? s.node.replicas
                                   : default_replicas(batch, std::thread::hardware_concurrency());
    r.product_s = [&](const factor_shape& shape) { return probe.product_s(shape); };
    r.flop_s = flop_of({128, 256, 256}) / probe.product_s({128, 256, 256});
    r.update_s_value = probe.update_s_value(rule_of(solver));
    r.add_s_value = probe.add_s_value();
    plan.decisions = decide_routes(loads, r);
    r.product_s = nullptr;  // the probe ends here
    for (auto& d : plan.decisions) {
      if (automatic) {
        chosen[d.layer] = d.chosen == route::factor_broadcast;
      } else {
        d.chosen = chosen[d.layer] ? route::factor_broadcast : route::parameter_server;
        if (d.load.refusal.empty()) d.why = "as --routes says";
      }
    }
    const bool choice = std::any_of(plan.decisions.begin(), plan.decisions.end(),
                                    [](const auto& d) { return d.load.refusal.empty(); });
    if (automatic && choice && s.link_mbit_s <= 0)
      plan.notes.push_back(
          "routes: the links' rate is not known; 1000 Mbit/s is assumed (--link-rate says better)");
  }
  std::vector<std::string> names;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (chosen[l]) names.push_back(n.layers[l].name);
  if (!names.empty()) plan.notes.push_back("routes: factor_broadcast for " + comma_list(names));
  if (s.wish.what != route_wish::kind::server)
    if (const auto why = why_no_factors_at_all(n, solver); !why.empty()) plan.notes.push_back(why);
  plan.routes = routes_of(n, chosen);
  return plan;
}

protocol_selector::protocol_selector(actor_context context, protocol_selector_setup setup)
    : actor(context), setup_(std::move(setup)) {}

void protocol_selector::on(const choose_routes& m) {
  try {
    auto plan = plan_routes(setup_);
    tell(m.reply, routes_chosen{std::move(plan.routes), std::move(plan.notes), {}});
  } catch (const std::exception& e) {
    tell(m.reply, routes_chosen{{}, {}, e.what()});
  }
}

void protocol_selector::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
