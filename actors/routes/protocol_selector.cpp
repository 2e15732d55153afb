#include "actors/routes/protocol_selector.hpp"

#include "actors/run/compiled_run.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
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
  const auto told = asks_host_ ? std::nullopt : device_->told_flop_s();
  if (told) return flop_of(wanted) / *told;
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
    const auto seconds =
        best_seconds([&] { device_->reconstruct_gradient(s, u, v, gradient, {}); });
    known = flop_s_.emplace(key, flop_of(s) / seconds).first;
  }
  return flop_of(wanted) / known->second;
}

double device_probe::flop_s() {
  constexpr factor_shape typical{128, 1024, 1024};
  return flop_of(typical) / product_s(typical);
}

double device_probe::update_s_value(const solver_rule& rule) {
  if (update_s_value_) return *update_s_value_;
  constexpr std::size_t values = std::size_t{1} << 18;  // no cache holds all of it
  const std::vector<float> gradient(values, 1.0f), now(values, 1.0f);
  std::vector<float> fresh(values);
  std::vector<std::vector<float>> slots(history_count(rule.kind), std::vector<float>(values, 1.0f));
  const std::vector<std::span<float>> history(slots.begin(), slots.end());
  update_s_value_ =
      best_seconds([&] { device_->update(rule, {}, gradient, now, fresh, history); }) /
      static_cast<double>(values);
  return *update_s_value_;
}

double device_probe::add_s_value() {
  if (add_s_value_) return *add_s_value_;
  std::vector<float> into(std::size_t{1} << 18);
  const std::vector<float> x(into.size(), 1.0f);
  add_s_value_ = best_seconds([&] { device_->add(into, x); }) / static_cast<double>(into.size());
  return *add_s_value_;
}

namespace {

/// What this device and its links do in a second. `probe` is used as long as product_s is.
route_rates rates_of(const protocol_selector_setup& s, const net& n, device_probe& probe) {
  s.node.compute->enter_thread(1);
  const bool computes = s.node.compute->computes();
  const auto& solver = s.run.solver.spec;
  route_rates r;
  r.workers = s.run.workers;
  r.link_mbit_s = s.link_mbit_s > 0 ? s.link_mbit_s : assumed_link_mbit_s;
  r.cores = std::max(1u, std::thread::hardware_concurrency());
  const auto& shares = s.run.shares;
  r.lanes = shares.empty() ? replicas_of(s.node, batch_of(n)) : shares.front().replicas;
  if (uneven(shares)) {
    const auto own = static_cast<double>(shares.front().samples);
    const auto largest = std::max_element(shares.begin(), shares.end(),
                                          [](auto& a, auto& b) { return a.samples < b.samples; });
    r.largest_share = static_cast<double>(largest->samples) / own;
    r.all_shares = static_cast<double>(samples_of_all(shares)) / own;
  }
  if (computes && !may_update_on_device(s.run)) probe.ask_host();
  r.product_s = [&probe](const factor_shape& shape) { return probe.product_s(shape); };
  r.flop_s = probe.flop_s();
  if (computes) {
    r.update_s_value = probe.update_s_value(rule_of(solver));
    // A device that makes such updates takes 20 bytes of its memory's traffic for a value: nothing beside the rest.
    if (may_update_on_device(s.run) && s.node.compute->told_flop_s()) r.factor_update_s_value = 0;
    r.add_s_value = probe.add_s_value();
    return r;
  }
  // Links and kernels stand for others; sums and updates are small change on what computes like that.
  const auto& replay = solver.poseidon().replay();
  r.link_mbit_s /= replay.byte_scale();
  r.flop_s /= replay.time_scale();
  r.product_s = [&probe, scale = replay.time_scale()](const factor_shape& shape) {
    return scale * probe.product_s(shape);
  };
  return r;
}

std::string wished(const route_option& w) {
  const auto* said = w.what == route_option::kind::server    ? "ps"
                     : w.what == route_option::kind::factors ? "sfb"
                                                             : w.file.c_str();
  return std::string("as --routes ") + said + " says";
}

/// Where nothing was predicted: what was wished, or, where the choice was free, that it was none.
std::vector<std::string> reasons_of(const std::vector<route_load>& loads,
                                    const std::vector<route_decision>& decisions,
                                    const route_option& option) {
  const auto otherwise =
      option.what == route_option::kind::automatic
          ? "nobody knows how long this device takes to make gradients of factors"
          : wished(option);
  std::vector<std::string> out;
  for (const auto& load : loads)
    out.push_back(load.factors.rows == 0 || !load.refusal.empty() ? "" : otherwise);
  for (const auto& d : decisions) out[d.layer] = d.why;
  return out;
}

}  // namespace

route_plan plan_routes(const protocol_selector_setup& s, device_probe& probe) {
  const auto n = resolve_train_net(s.run, s.node);
  const auto& solver = s.run.solver.spec;
  const auto micro_batches = static_cast<std::size_t>(std::max(1, solver.iter_size()));
  route_plan plan;
  plan.batch = batch_of(n);
  const auto formats = formats_of(n, s.wire);
  auto chosen = layers_of_option(n, s.option, solver, s.run.first_clock);
  for (const auto& [clock, layers] : changes_of_option(n, s.option, solver, s.run.first_clock))
    plan.later[clock] = routes_of(n, layers);
  const bool automatic = s.option.what == route_option::kind::automatic;
  const auto& loads = plan.loads = route_loads(n, micro_batches, solver, formats);
  const bool choice = std::any_of(loads.begin(), loads.end(), [](const auto& load) {
    return load.factors.rows > 0 && load.refusal.empty();
  });
  const bool rebuilds = s.node.compute->told_flop_s() != 0.0;
  if (rebuilds && ((automatic && choice) || s.explain)) {
    auto& r = plan.rates = rates_of(s, n, probe);
    plan.decisions = decide_routes(loads, r);
    r.product_s = nullptr;  // the probe ends here
    for (auto& d : plan.decisions) {
      if (automatic) {
        chosen[d.layer] = d.chosen == route::factor_broadcast;
      } else {
        d.chosen = chosen[d.layer] ? route::factor_broadcast : route::parameter_server;
        if (d.load.refusal.empty()) d.why = wished(s.option);
      }
    }
    plan.rate_assumed = automatic && choice && s.link_mbit_s <= 0;
    // With a reduced format a change would lose what rounding has kept back.
    plan.rate_decides = automatic && choice && formats.empty();
  }
  std::vector<std::string> names;
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (chosen[l]) names.push_back(n.layers[l].name);
  if (!names.empty()) plan.notes.push_back("routes: factor_broadcast for " + comma_list(names));
  if (s.option.what != route_option::kind::server)
    if (const auto why = why_no_factors_at_all(n, solver); !why.empty()) plan.notes.push_back(why);
  plan.reasons = reasons_of(loads, plan.decisions, s.option);
  plan.routes = routes_of(n, chosen);
  plan.wire = on_the_server(formats, plan.routes);
  if (!plan.later.empty() && !formats.empty())
    throw spec_error("--routes " + s.option.file +
                     " changes routes while training, and --wire rounds: what rounding has kept "
                     "back would be lost. Leave out the lines with @, or --wire.");
  for (auto& note : wire_notes(n, plan.wire)) plan.notes.push_back(std::move(note));
  return plan;
}

namespace {

std::vector<bool> chosen_layers(const route_plan& plan) {
  std::vector<bool> out(plan.loads.size());
  for (const auto& d : plan.decisions) out[d.layer] = d.chosen == route::factor_broadcast;
  return out;
}

}  // namespace

protocol_selector::protocol_selector(actor_context context, protocol_selector_setup setup)
    : actor(context), setup_(std::move(setup)), device_(setup_.node.compute) {}

void protocol_selector::plan() {
  routes_chosen answer;
  try {
    auto plan = plan_routes(setup_, device_);
    if (probe_ && plan.rate_decides) {
      auto& r = plan.rates;
      const double scale = setup_.node.compute->computes()
                               ? 1
                               : setup_.run.solver.spec.poseidon().replay().time_scale();
      r.product_s = [this, scale](const factor_shape& s) { return scale * device_.product_s(s); };
      replanner_.emplace(plan.loads, r, setup_.link_mbit_s, chosen_layers(plan));
      answer.follow_links = true;
    }
    answer.batch = plan.batch;
    answer.needs_rate = plan.rate_assumed;
    answer.routes = std::move(plan.routes);
    answer.later = std::move(plan.later);
    answer.wire = std::move(plan.wire);
    answer.decisions = std::move(plan.decisions);
    answer.reasons = std::move(plan.reasons);
    answer.notes = std::move(plan.notes);
    if (probe_)
      answer.notes.insert(answer.notes.begin(),
                          "routes: this node's links carry " +
                              std::to_string(std::lround(setup_.link_mbit_s)) +
                              " Mbit/s together, as measured");
  } catch (const std::exception& e) {
    answer.error = e.what();
  }
  tell(reply_, std::move(answer));
}

void protocol_selector::on(const send_rate_measured& m) {
  if (!replanner_) return;
  const auto better =
      replanner_->told(m.from, m.mbit_s, m.probed, std::chrono::steady_clock::now());
  if (!better) return;
  const auto n = resolve_train_net(setup_.run, setup_.node);
  tell(proposals_, routes_proposed{routes_of(n, better->factors), better->why});
}

void protocol_selector::on(const routes_changed& m) {
  if (replanner_) replanner_->changed(m.stood, std::chrono::steady_clock::now());
}

void protocol_selector::on(const choose_routes& m) {
  reply_ = m.reply;
  proposals_ = m.proposals;
  setup_.run.shares = m.shares;
  plan();
}

void protocol_selector::on(const measure_links& m) {
  links_ = m.links;
  probe_.emplace(links_.size());
  send(probe_->begin(std::chrono::steady_clock::now()));
}

void protocol_selector::send(const bandwidth_probe::round& r) {
  for (const auto& f : frames_of(r))
    for (const auto& link : links_) tell(link, f, f.data.bytes.size());
}

void protocol_selector::on(const probe_answered& m) {
  if (!probe_ || setup_.link_mbit_s > 0) return;
  if (const auto next = probe_->heard(m.from, m.round, std::chrono::steady_clock::now()))
    return send(*next);
  if (probe_->mbit_s() <= 0) return;
  setup_.link_mbit_s = probe_->mbit_s();
  links_.clear();
  plan();
}

void protocol_selector::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
