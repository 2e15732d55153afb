#include "actors/routes/protocol_selector.hpp"

#include "actors/run/train_net.hpp"
#include "models/net/declared_net.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/words.hpp"

#include <chrono>
#include <cmath>
#include <utility>

namespace poseidon {

protocol_selector::protocol_selector(actor_context context, route_request setup)
    : actor(context), setup_(std::move(setup)), device_(setup_.node.compute->arithmetic()) {}

/// On one machine a rate says how busy the machine is. A replay imitates a cluster on it.
bool protocol_selector::follows_links(bool choice) const {
  return probe_ && choice && (!within_machine_ || !setup_.node.compute->computes());
}

void protocol_selector::plan() {
  routes_chosen answer;
  try {
    setup_.run.declared.empty() ? plan_net(answer) : plan_program(answer);
    if (probe_)
      answer.notes.insert(answer.notes.begin(),
                          "routes: this node's links carry " +
                              std::to_string(std::lround(setup_.link_mbit_s)) +
                              " Mbit/s together, as measured");
  } catch (const std::exception& e) {
    answer.error = e.what();
  }
  tell(asked_->reply, std::move(answer));
}

void protocol_selector::plan_net(routes_chosen& answer) {
  auto plan = plan_routes(setup_, device_);
  if (follows_links(plan.rate_decides)) {
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
}

namespace {

/// Programs begin with this route: what it takes of a parameter is known from its shape.
void lowrank_of_program(const route_request& request, routes_chosen& answer) {
  if (request.run.optimizer != optimizer_rule::none)
    throw spec_error(
        "routes=lowrank, but the workers make the optimizer's steps, which they do with whole "
        "gradients. Leave out routes, or let the program make its steps");
  const auto n = declared_net(request.run.declared, {});
  const auto formats = formats_in_use(n, formats_asked(n, request.wire.all));
  const auto chosen = rounded_lowrank(n, layers_of_option(n, request.option, {}), formats);
  answer.routes = routes_of(n, chosen);
  std::size_t taken = 0, rounded = 0;
  for (const auto r : chosen) {
    answer.reasons.emplace_back(rank_of(r) > 0 ? "as routes=lowrank says" : "");
    taken += rank_of(r) > 0 ? 1 : 0;
    rounded += is_rounded(r) ? 1 : 0;
  }
  const auto rank = request.option.rank > 0 ? request.option.rank : default_rank;
  answer.notes.push_back(
      taken > 0
          ? "routes: " + std::string(to_string(lowrank_of(rank))) + " for " +
                plural(taken, "parameter") + " of " + std::to_string(chosen.size()) +
                (rounded > 0 ? ", P and Q of " + std::to_string(rounded) + " as bfloat16" : "")
          : "routes=lowrank has no effect: no parameter would save half of its values at rank " +
                std::to_string(rank));
}

}  // namespace

void protocol_selector::plan_program(routes_chosen& answer) const {
  const bool choice = setup_.option.what == route_option::kind::automatic;
  if (setup_.option.what == route_option::kind::lowrank) lowrank_of_program(setup_, answer);
  answer.needs_rate = choice && setup_.link_mbit_s <= 0;
  answer.follow_links = follows_links(choice);
  answer.wire = formats_asked(declared_net(setup_.run.declared, {}), setup_.wire.all);
  if (!answer.wire.empty())
    answer.notes.push_back("gradients and what comes back for them travel as " +
                           std::string(to_string(setup_.wire.all)) + ", rounded" +
                           (has_blocks(setup_.wire.all) ? "; small parameters as float32" : ""));
}

void protocol_selector::on(const choose_by_offers& m) {
  const bool choice = setup_.option.what == route_option::kind::automatic;
  // On one machine nothing is gained, and the server's route keeps the bits.
  if (program_ || (choice && !follows_links(choice))) return;
  program_ = poseidon::plan_program(setup_, m.all, device_);
  const bool changes = !program_->why.empty();
  if (choice) {
    auto& next = changes ? next_ : replanner_;
    next.emplace(program_->loads, program_->rates, setup_.link_mbit_s, program_->chosen);
  }
  if (changes)
    tell(asked_->proposals, routes_proposed{routes_of(*program_, program_->chosen), program_->why});
}

void protocol_selector::on(const send_rate_measured& m) {
  if (!replanner_) return;
  const auto better =
      replanner_->hear(m.from, m.mbit_s, m.probed, m.clocks_left, std::chrono::steady_clock::now());
  if (!better) return;
  if (program_)
    return tell(asked_->proposals,
                routes_proposed{routes_of(*program_, better->factors), better->why});
  const auto n = resolve_train_net(setup_.run, setup_.node).part;
  tell(asked_->proposals, routes_proposed{routes_of(n, better->factors), better->why});
}

void protocol_selector::on(const routes_changed& m) {
  if (next_)
    replanner_ = std::exchange(next_, std::nullopt);
  else if (replanner_)
    replanner_->changed(m.paused, std::chrono::steady_clock::now());
}

void protocol_selector::on(const choose_routes& m) {
  asked_ = m;
  setup_.run.shares = m.shares;
  plan();
}

void protocol_selector::on(const measure_links& m) {
  timed_ = m;
  within_machine_ = m.within_machine;
  probe_.emplace(m.links.size());
  send(probe_->begin(std::chrono::steady_clock::now()));
}

void protocol_selector::send(const bandwidth_probe::round& r) {
  for (const auto& f : frames_of(r))
    for (const auto& link : timed_->links) tell(link, f, f.data.bytes.size());
}

void protocol_selector::on(const probe_answered& m) {
  if (!probe_ || setup_.link_mbit_s > 0) return;
  if (const auto next = probe_->heard(m.from, m.round, std::chrono::steady_clock::now()))
    return send(*next);
  if (probe_->mbit_s() <= 0) return;
  setup_.link_mbit_s = probe_->mbit_s();
  timed_ = {};
  plan();
}

void protocol_selector::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
