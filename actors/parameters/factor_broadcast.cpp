#include "actors/parameters/factor_broadcast.hpp"

#include "actors/core/actor_failure.hpp"
#include "actors/core/logic_bug.hpp"
#include "actors/parameters/chunk_update.hpp"
#include "actors/parameters/send_order.hpp"
#include "messages/float_payload.hpp"
#include "models/no_memory.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace poseidon {

factor_broadcast::factor_broadcast(actor_context context, factor_broadcast_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      gate_(setup_.of_side_branch, setup_.staleness),
      copy_({setup_.store, setup_.parameters, setup_.frozen, setup_.update.arrays(),
             setup_.updates.get(), setup_.computes, setup_.awaited_state, setup_.former_states}) {
  updates_ = std::move(setup_.updates);
  // A device that does not compute makes no updates: its factors only have a size and take time.
  const bool makes_gradients = !setup_.update.is_mean() && computes() && !on_device();
  const memory_for use("a gradient made of factors");
  for (std::size_t i = 0; i < setup_.parameters.size(); ++i)
    gradients_.emplace_back(makes_gradients ? copy_.values_of(i) : 0);
}

void factor_broadcast::on(const connect_factor_broadcast& m) {
  neighbours_ = m;
}

// -- factors out, factors in ----------------------------------------------------------------------------

factor_broadcast::clock_state& factor_broadcast::at(clock_id clock) {
  if (copy_.has_first_values() && value(clock) < copy_.version())
    throw logic_bug("factors of a clock that has finished", value(clock), copy_.version());
  auto& c = clocks_[value(clock)];
  c.landed.resize(setup_.workers);
  c.steps.resize(setup_.workers);
  return c;
}

void factor_broadcast::on(const backward_done& m) {
  auto& packed = at(m.pass.clock).landed[setup_.self];
  if (++packed > setup_.passes)
    throw logic_bug("passes of a clock whose factors are packed", packed, setup_.passes);
  if (packed < setup_.passes) return;
  if (setup_.lent != nullptr) compare(m.pass.clock, setup_.self, mark_of(*setup_.lent));
  if (gate_.admits(m.pass.clock)) give(m.pass.clock);
}

void factor_broadcast::on(const parameters_whole& m) {
  gate_.open(m.version, [this](clock_id clock) { give(clock); });
}

/// This node's factors, to the others and for its own update.
void factor_broadcast::give(clock_id clock) {
  send(clock);
  take(clock, setup_.self, setup_.factors->rows_of_node(clock, setup_.self));
}

/// Every program is to make the same step with its mean.
void factor_broadcast::compare(clock_id clock, worker_id worker, const step_mark& step) {
  auto& steps = at(clock).steps;
  steps[worker] = step;
  for (const auto other : steps.ids())
    if (steps[other] && *steps[other] != step)
      throw nodes_differ(difference_of_steps(setup_.name, value(clock), value(worker), step,
                                             value(other), *steps[other]));
}

void factor_broadcast::send(clock_id clock) {
  const auto now = now_ns();
  sent_at_ns_[value(clock)] = now;
  setup_.overlap->began(now);
  auto shape = setup_.factors->of_node(setup_.self);
  shape.rows = setup_.factors->rows_of_node(clock, setup_.self);
  const auto rows = static_cast<std::uint32_t>(shape.rows);
  // Also where chunks go by magnitude: factors change much with few bytes, so they go before the chunks of their version.
  const auto place = place_of(setup_.places.get(), setup_.layer);
  const auto priority = forward_order(value(clock) + 1, place);
  setup_.factors->set_sent(clock_id{value(clock) + 1});
  const auto step = setup_.lent == nullptr ? step_mark{} : mark_of(*setup_.lent);
  std::size_t first = 0;
  do {  // factors of no rows are one frame without values
    const auto piece = setup_.factors->piece(clock, setup_.self, shape.rows, first);
    const payload values{setup_.factors, std::as_bytes(piece)};
    for (const auto& link : neighbours_->links)
      tell(link,
           send_frame{frames::factors{setup_.layer, clock, rows, first, step}, values, priority},
           values.bytes.size());
    first += piece.size();
  } while (first < shape.values());
}

void factor_broadcast::on(const factors_landed& m) {
  auto sent = setup_.factors->of_node(m.from);
  sent.rows = m.rows;
  auto& landed = at(m.clock).landed.at(m.from);
  landed += factor_piece(sent, m.first);
  if (setup_.lent != nullptr) compare(m.clock, m.from, m.step);
  if (landed < sent.values()) return;
  if (landed > sent.values())
    throw logic_bug("factors twice of worker " + std::to_string(value(m.from)), landed,
                    sent.values());
  setup_.factors->clear_behind(m.clock, m.from, m.rows);
  take(m.clock, m.from, m.rows);
}

/// All factors of a worker are here.
void factor_broadcast::take(clock_id clock, worker_id worker, std::size_t rows) {
  auto& c = at(clock);
  if (++c.complete > setup_.workers)
    throw logic_bug("factors twice of worker " + std::to_string(value(worker)), c.complete,
                    setup_.workers);
  c.rows += rows;
  update_if_complete();
}

// -- updates --------------------------------------------------------------------------------------------

void factor_broadcast::update_if_complete() {
  if (!copy_.is_ready()) return;
  // A worker's clocks come in order, so the clock after this one cannot be complete before it.
  const auto it = clocks_.find(copy_.version());
  if (it == clocks_.end() || it->second.complete < setup_.workers) return;
  const bool nothing = it->second.rows == 0;
  clocks_.erase(it);
  if (!std::exchange(entered_, true)) setup_.arithmetic->enter_thread(1);
  const auto begin = now_ns();
  if (on_device())
    update_on_device();
  else if (setup_.update.solver() != nullptr)
    update_here();
  else if (!setup_.update.is_mean() && !nothing)
    step_here();
  else
    make_mean(nothing);
  copy_.made();
  const auto end = now_ns();
  setup_.overlap->ended(end);
  const auto clock = copy_.version() - 1;
  const auto sent = sent_at_ns_.extract(clock);
  if (!setup_.trace.empty()) {
    auto* lane = setup_.trace[clock % setup_.trace.size()];
    lane->record({setup_.name, span_phase::exchange, sent.mapped(), begin, clock});
    lane->record({setup_.name, span_phase::reconstruct, begin, end, clock});
  }
  publish(nothing);
}

/// Only issues the update: kernels that read the fresh values wait for it on the device.
void factor_broadcast::update_on_device() {
  const auto [u, v] = setup_.factors->all(clock_id{copy_.version()});
  factor_update f{setup_.product, u, v, {}, setup_.factors};
  for (const auto p : setup_.parameters)
    f.parameters.emplace_back(
        value(p), step_of(setup_.solver, setup_.of_net[p], copy_.version(), setup_.scale));
  (*updates_)->update_by_factors(f, copy_.version() + 1);
}

void factor_broadcast::update_here() {
  const auto [u, v] = setup_.factors->all(clock_id{copy_.version()});
  const auto bias = gradients_.size() > 1 ? std::span(gradients_[1]) : std::span<float>();
  setup_.arithmetic->reconstruct_gradient(setup_.product, u, v, gradients_[0], bias);
  if (computes())
    copy_.update(*setup_.arithmetic,
                 {*setup_.update.solver(), setup_.solver, setup_.of_net, setup_.scale}, gradients_);
}

/// Where the program wants it, or the version is to lie: the memory of a parameter has no gaps between its chunks.
void factor_broadcast::make_mean(bool nothing) {
  using is = parameter_store::mean_is;
  auto mean = setup_.lent == nullptr ? std::span<float>() : setup_.lent->mean();
  setup_.store->set_mean(setup_.parameters.front(), copy_.version() + 1,
                         nothing        ? is::nothing
                         : mean.empty() ? is::here
                                        : is::with_program);
  if (nothing) return;  // nobody reads it
  const auto [u, v] = setup_.factors->all(clock_id{copy_.version()});
  if (mean.empty()) mean = setup_.store->values(setup_.parameters.front(), copy_.version() + 1);
  setup_.arithmetic->reconstruct_gradient(setup_.product, u, v, mean, {});
  if (computes()) setup_.arithmetic->scale(setup_.scale, mean, mean);
}

/// As the shards do where the gradient comes as a whole.
void factor_broadcast::step_here() {
  const auto [u, v] = setup_.factors->all(clock_id{copy_.version()});
  setup_.arithmetic->reconstruct_gradient(setup_.product, u, v, gradients_[0], {});
  if (!computes()) return;
  const auto step = setup_.lent->step().value();
  for (const auto id : setup_.store->cut().by_parameter[setup_.parameters.front()]) {
    const auto& c = setup_.store->cut().chunks[id];
    setup_.arithmetic->step(setup_.update.optimizer(), step, setup_.scale,
                            std::span(gradients_[0]).subspan(c.offset, c.count),
                            base_of(*setup_.store, id, copy_.version(), *setup_.lent),
                            setup_.store->at(id, copy_.version() + 1),
                            copy_.history().to_update(id, copy_.version()));
  }
}

void factor_broadcast::publish(bool nothing) {
  copy_.publish();
  const auto version = version_id{copy_.version()};
  for (const auto& layer : neighbours_->layers) tell(layer, parameters_fresh{version});
  tell(neighbours_->solver, layer_fresh{setup_.layer, version, nothing});
}

// -- first values, solver state -------------------------------------------------------------------------

void factor_broadcast::on(const chunk_landed& m) {
  if (!copy_.take_first(m.version)) return;
  if (m.nothing)
    setup_.store->set_mean(setup_.parameters.front(), copy_.version(),
                           parameter_store::mean_is::nothing);
  publish(m.nothing);
  update_if_complete();
}

void factor_broadcast::on(const history_inherited& m) {
  if (copy_.take_state(m)) on(copy_history{});
  update_if_complete();
}

/// As server_shard's.
void factor_broadcast::on(const copy_history&) {
  if (!copy_.gives_state()) return;
  copy_.history().for_each([&](chunk_id id, std::uint32_t slot, std::vector<float> values) {
    tell(neighbours_->checkpointer,
         history_arrived{setup_.self, id, slot, version_id{copy_.version()},
                         payload_of(std::move(values))});
  });
}

void factor_broadcast::on(const release_history& m) {
  tell(m.to, history_released{copy_.release(m.version)});
}

void factor_broadcast::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
