#include "actors/parameters/lowrank_exchange.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/parameters/lowrank_frame.hpp"
#include "actors/parameters/send_order.hpp"
#include "messages/float_payload.hpp"
#include "models/no_memory.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

lowrank_exchange::lowrank_exchange(actor_context context, lowrank_exchange_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      gate_(setup_.of_side_branch, setup_.staleness),
      copy_({setup_.store, setup_.parameters, setup_.frozen, setup_.update.arrays(), nullptr, true,
             setup_.awaited_state, setup_.former_states}),
      parts_(setup_.workers) {
  const memory_for use("a gradient made of P and Q");
  for (std::size_t i = 0; i < setup_.parameters.size() && !of_program(); ++i)
    gradients_.emplace_back(copy_.values_of(i));
  q_.resize(setup_.shape.q_values());
}

void lowrank_exchange::on(const connect_lowrank_exchange& m) {
  neighbours_ = m;
}

// -- this node's part -----------------------------------------------------------------------------------

void lowrank_exchange::on(const backward_done& m) {
  // Counted by pass: streams keep their order, but their messages to two layers may cross.
  const std::pair pass{value(m.pass.clock), m.pass.index};
  if (++done_[pass] < setup_.contributions) return;
  done_.erase(pass);
  if (setup_.tells_taken)
    for (const auto& layer : neighbours_->layers_taken) tell(layer, gradient_taken{m.pass});
  if (m.pass.index + 1 == setup_.micro_batches && gate_.admits(m.pass.clock))
    complete(m.pass.clock);
}

void lowrank_exchange::on(const parameters_whole& m) {
  gate_.open(m.version, [this](clock_id clock) { complete(clock); });
}

void lowrank_exchange::complete(clock_id clock) {
  ready_.insert(value(clock));
  begin_if_possible();
}

/// Q and the error memory of a clock come from the clock before. The gradient waits where it lies: it stays valid until this layer's
/// version of this clock is here.
void lowrank_exchange::begin_if_possible() {
  if (step_ != step::waiting || !copy_.is_ready() || ready_.erase(copy_.version()) == 0) return;
  if (setup_.own_thread && !std::exchange(entered_, true)) setup_.arithmetic->enter_thread(1);
  sent_at_ns_ = now_ns();
  setup_.overlap->began(sent_at_ns_);
  const auto m = setup_.memory->make_from(copy_.version());
  const auto gradient = setup_.gradient->total(copy_.version(), 0);
  if (!gradient.empty()) setup_.arithmetic->add(m, gradient);
  std::vector<float> values(setup_.shape.p_values());
  lowrank_p(setup_.shape, m, q_, values);
  for (std::size_t i = 1; i < setup_.parameters.size(); ++i) {
    const auto beside = setup_.gradient->total(copy_.version(), i);
    values.insert(values.end(), beside.begin(), beside.end());
  }
  if (of_program()) values.push_back(gradient.empty() ? 0.0f : 1.0f);
  step_ = step::first;
  give(packed(std::move(values)));
}

/// Of the frames of this step.
std::size_t lowrank_exchange::rounded_values() const {
  if (!setup_.rounded) return 0;
  return step_ == step::second ? setup_.shape.q_values() : setup_.shape.p_values();
}

payload lowrank_exchange::packed(std::vector<float> values) const {
  return pack_lowrank(std::move(values), rounded_values());
}

payload lowrank_exchange::unpacked(const payload& part) const {
  return unpack_lowrank(part, rounded_values());
}

/// The owner rounds its own part, too, so that a sum does not depend on who owns it.
void lowrank_exchange::give(const payload& part) {
  if (owns()) return take_part(setup_.self, part);
  setup_.turns->set_told(clock_id{copy_.version()}, step_ == step::second);
  send(setup_.turns->owner, part);
}

void lowrank_exchange::send(worker_id to, const payload& values) {
  tell(neighbours_->links[value(to)],
       send_frame{
           frames::lowrank_factor{setup_.layer, clock_id{copy_.version()}, step_ == step::second},
           values, forward_order(copy_.version() + 1, place_of(setup_.places.get(), setup_.layer))},
       values.bytes.size());
}

// -- the sums -------------------------------------------------------------------------------------------

void lowrank_exchange::on(const lowrank_landed& m) {
  if (copy_.history().is_released()) return;  // of a view that has ended for this node
  if (owns()) return take_part(m.from, m.values);
  if (value(m.clock) != copy_.version() || m.second != (step_ == step::second) ||
      step_ == step::waiting)
    throw logic_bug("P or Q out of turn", value(m.clock), copy_.version());
  take_sum(m.values);
}

/// Another worker's may come before this node has begun the clock.
void lowrank_exchange::take_part(worker_id from, payload values) {
  auto& part = parts_.at(from);
  if (part.owner != nullptr)
    throw logic_bug("a part twice of worker " + std::to_string(value(from)), value(from),
                    copy_.version());
  part = std::move(values);
  if (++parts_there_ == setup_.workers) add_up();
}

/// In worker order, whatever the order in which they came.
void lowrank_exchange::add_up() {
  const auto first = unpacked(parts_[worker_id{0}]);
  std::vector<float> sum(floats(first).begin(), floats(first).end());
  for (std::size_t w = 1; w < setup_.workers; ++w)
    setup_.arithmetic->add(sum, floats(unpacked(parts_[as_id<worker_id>(w)])));
  if (step_ == step::first) orthogonalise(setup_.shape, sum);
  parts_.assign(setup_.workers, {});
  parts_there_ = 0;
  const auto all = packed(sum);
  if (step_ == step::second && setup_.rounded) keep_what_rounding_takes(sum, floats(unpacked(all)));
  setup_.turns->set_told(clock_id{copy_.version()}, step_ == step::second);
  for (std::size_t w = 0; w < setup_.workers; ++w)
    if (const auto to = as_id<worker_id>(w); to != setup_.self) send(to, all);
  take_sum(all);
}

/// Of a sum of Q, for the next clock. What it takes of P needs no keeping: Q is made with the P that has arrived.
void lowrank_exchange::keep_what_rounding_takes(std::span<const float> sum,
                                                std::span<const float> sent) {
  if (nothing_ || std::isnan(floats(p_).front())) return;
  std::vector<float> more(sum.size());
  std::transform(sent.begin(), sent.end(), sum.begin(), more.begin(),
                 [](float s, float exact) { return std::isfinite(exact) ? s - exact : 0.0f; });
  lowrank_take_off(setup_.shape, floats(p_), more, setup_.memory->being_made(copy_.version() + 1));
}

void lowrank_exchange::take_sum(const payload& sum) {
  const auto values = unpacked(sum);
  step_ == step::first ? take_p(values) : take_q(values);
}

/// The error memory keeps what this node's own Q does not hold. With the sum of all Q in its place it would keep differences between workers,
/// too, that add up to nothing: of a node that is lost they would be lost alone. After a gradient that is not finite, which a program that
/// scales its loss meets and leaves out, the memory begins with zeros: it would be NaN for ever.
void lowrank_exchange::take_p(const payload& sum) {
  const auto values = floats(sum);
  p_ = sum;
  auto beside = values.subspan(setup_.shape.p_values());
  for (std::size_t i = 1; i < gradients_.size(); ++i) {
    std::copy_n(beside.begin(), gradients_[i].size(), gradients_[i].begin());
    beside = beside.subspan(gradients_[i].size());
  }
  nothing_ = of_program() && values.back() == 0;
  const auto m = setup_.memory->being_made(copy_.version() + 1);
  std::vector<float> q(setup_.shape.q_values());
  lowrank_q(setup_.shape, m, values, q);
  step_ = step::second;
  const auto part = packed(std::move(q));
  if (std::isnan(values.front()))
    std::fill(m.begin(), m.end(), 0.0f);
  else if (!nothing_)
    lowrank_take_off(setup_.shape, values, floats(unpacked(part)), m);
  setup_.memory->made(copy_.version() + 1);
  give(part);
}

void lowrank_exchange::take_q(const payload& sum) {
  if (of_program()) {
    make_mean(sum);
  } else {
    lowrank_gradient(setup_.shape, floats(p_), floats(sum), gradients_[0]);
    copy_.update(*setup_.arithmetic,
                 {*setup_.update.solver(), setup_.solver, setup_.of_net, setup_.scale}, gradients_);
  }
  p_ = {};
  copy_.made();
  if (!nothing_)
    warm_start(setup_.shape, {setup_.seed, setup_.layer, copy_.version()}, floats(sum), q_);
  step_ = step::waiting;
  const auto end = now_ns();
  setup_.overlap->ended(end);
  const auto clock = copy_.version() - 1;
  if (!setup_.trace.empty())
    setup_.trace[clock % setup_.trace.size()]->record(
        {setup_.name, span_phase::exchange, sent_at_ns_, end, clock});
  publish(nothing_);
  begin_if_possible();
}

/// The memory of a parameter has no gaps between its chunks.
void lowrank_exchange::make_mean(const payload& sum) {
  using is = parameter_store::mean_is;
  const auto version = copy_.version() + 1;
  const auto parameter = setup_.parameters.front();
  setup_.store->set_mean(parameter, version, nothing_ ? is::nothing : is::here);
  if (nothing_) return;  // nobody reads it
  const auto mean = setup_.store->values(parameter, version);
  lowrank_gradient(setup_.shape, floats(p_), floats(sum), mean);
  setup_.arithmetic->scale(setup_.scale, mean, mean);
}

void lowrank_exchange::publish(bool nothing) {
  copy_.publish();
  const auto version = version_id{copy_.version()};
  for (const auto& layer : neighbours_->layers) tell(layer, parameters_fresh{version});
  tell(neighbours_->solver, layer_fresh{setup_.layer, version, nothing});
}

// -- first values, solver state -------------------------------------------------------------------------

void lowrank_exchange::on(const chunk_landed& m) {
  if (!copy_.take_first(m.version)) return;
  first_q(setup_.shape, {setup_.seed, setup_.layer, copy_.version()}, q_);
  if (m.nothing)
    setup_.store->set_mean(setup_.parameters.front(), copy_.version(),
                           parameter_store::mean_is::nothing);
  publish(m.nothing);
  begin_if_possible();
}

void lowrank_exchange::on(const history_inherited& m) {
  if (copy_.take_state(m)) on(copy_history{});
  begin_if_possible();
}

/// As server_shard's.
void lowrank_exchange::on(const copy_history&) {
  if (!copy_.gives_state()) return;
  copy_.history().for_each([&](chunk_id id, std::uint32_t slot, std::vector<float> values) {
    tell(neighbours_->checkpointer,
         history_arrived{setup_.self, id, slot, version_id{copy_.version()},
                         payload_of(std::move(values))});
  });
}

void lowrank_exchange::on(const release_history& m) {
  tell(m.to, history_released{copy_.release(m.version)});
}

void lowrank_exchange::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
