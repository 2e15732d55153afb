#include "actors/parameters/server_shard.hpp"

#include "actors/core/actor_failure.hpp"
#include "actors/core/logic_bug.hpp"
#include "actors/parameters/chunk_update.hpp"
#include "actors/parameters/send_order.hpp"
#include "messages/float_payload.hpp"
#include "models/plan/keepers.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace poseidon {

server_shard::server_shard(actor_context context, server_shard_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      history_(setup_.store->cut(), setup_.update.arrays(), setup_.updates.get(),
               setup_.former_states),
      pool_(std::numeric_limits<std::size_t>::max()) {
  updates_ = std::move(setup_.updates);
  const auto& cut = setup_.store->cut();
  std::size_t largest = 0;
  for (const auto id : cut.by_owner[setup_.self]) {
    const auto& c = cut.chunks[id];
    chunks_.try_emplace(id);
    history_.add(id);
    begin_with_state(id);
    if (!setup_.awaited_state.empty()) history_.await(id, setup_.awaited_state[id]);
    // The gradient of a node that is alone is the sum, unless it has to be decoded.
    if (setup_.workers > 1 || c.format != wire_format::float32)
      largest = std::max(largest, c.count);
  }
  scratch_.resize(largest);
  if (setup_.solver.clip_gradients() >= 0) start_clipping();
}

void server_shard::begin_with_state(chunk_id id) {
  const auto& c = setup_.store->cut().chunks[id];
  if (value(c.parameter) >= setup_.first_state.size()) return;
  std::uint32_t slot = 0;
  for (const auto* values : setup_.first_state[c.parameter]) {
    if (values != nullptr) history_.write(id, slot, 0, std::span(values + c.offset, c.count));
    ++slot;
  }
}

void server_shard::on(const connect_shard& m) {
  neighbours_ = m;
}

server_shard::owned& server_shard::at(chunk_id id) {
  const auto it = chunks_.find(id);
  if (it == chunks_.end()) throw logic_bug("a chunk of another shard", value(id), chunks_.size());
  return it->second;
}

void server_shard::on(const install_chunk& m) {
  auto& o = at(m.chunk);
  o.version = value(m.version);
  setup_.store->set_applied(m.chunk, o.version);
  if (setup_.store->cut().chunks[m.chunk].format != wire_format::float32) {
    const auto first = setup_.store->at(m.chunk, o.version);
    o.exact.assign(first.begin(), first.end());
  }
  o.installed = true;
  apply_if_complete(m.chunk);
}

void server_shard::on(const history_inherited& m) {
  history_.write(m.chunk, m.slot, m.first, floats(m.values));
  give_history_if_complete();  // before it is changed
  apply_if_complete(m.chunk);
}

void server_shard::on(const gradient_arrived& m) {
  auto& waiting = at(m.chunk).waiting;
  if (const auto other = waiting.steps_otherwise(m))
    throw nodes_differ(difference_of_steps(
        setup_.names[setup_.store->cut().chunks[m.chunk].parameter], value(m.clock), value(m.from),
        m.step, value(other->first), other->second));
  waiting.add(m, setup_.workers);
  apply_if_complete(m.chunk);
}

void server_shard::apply_if_complete(chunk_id id) {
  auto& o = at(id);
  while (o.installed && history_.is_complete(id) && !history_.is_released()) {
    const auto gradients = o.waiting.take(o.version);
    if (!gradients) return;
    const auto& c = setup_.store->cut().chunks[id];
    if (history_.on_device(c.parameter)) {
      apply_on_device(id, o);
      continue;
    }
    if (is_nothing(*gradients)) {
      apply_nothing(id, o);
      continue;
    }
    auto summed = sum(id, *gradients);
    if (clip_ && setup_.learned[c.parameter]) return hold(o, std::move(summed));
    apply(id, o, summed, 1, gradients->wire);
  }
}

/// What goes to keepers lies in memory of its own until the links have sent it; any other sum lies where the next one will.
payload server_shard::sum(chunk_id id, const worker_gradients::of_clock& gradients) {
  const auto& c = setup_.store->cut().chunks[id];
  std::shared_ptr<const void> owner;
  auto to = std::span(scratch_).first(std::min(scratch_.size(), c.count));
  if (c.keepers > 0) {
    auto buffer = pool_.take(c.count * sizeof(float));
    to = {reinterpret_cast<float*>(buffer.bytes.data()), c.count};
    owner = std::move(buffer.owner);
  }
  const auto format = gradients.wire != wire_format::float32 ? gradients.wire : c.format;
  return {std::move(owner), std::as_bytes(sum_of(gradients, format, *setup_.arithmetic, to))};
}

// -- clip_gradients -------------------------------------------------------------------------------------

void server_shard::start_clipping() {
  const auto& cut = setup_.store->cut();
  const auto learned = [&](chunk_id id) { return setup_.learned[cut.chunks[id].parameter]; };
  std::size_t shards = 0;
  for (const auto& chunks : cut.by_owner)
    if (std::any_of(chunks.begin(), chunks.end(), learned)) ++shards;
  const auto& own = cut.by_owner[setup_.self];
  const auto chunks = static_cast<std::size_t>(std::count_if(own.begin(), own.end(), learned));
  clip_.emplace(setup_.solver.clip_gradients(), setup_.replicas, chunks, shards);
}

void server_shard::hold(owned& o, payload sum) {
  const auto summed = floats(sum);
  o.held = sum.owner != nullptr ? std::move(sum)
                                : payload_of(std::vector<float>(summed.begin(), summed.end()));
  if (const auto squares = clip_->add_chunk(o.version, summed)) {
    const auto bytes = std::make_shared<std::array<std::byte, square_sum::bytes>>();
    squares->write(*bytes);
    for (const auto& link : neighbours_->links)
      tell(link, send_frame{frames::gradient_squares{clock_id{o.version}}, {bytes, *bytes}, 0},
           bytes->size());
  }
  apply_held();
}

void server_shard::on(const squares_arrived& m) {
  if (!clip_) throw logic_bug("squares without clip_gradients", value(m.from), value(m.clock));
  clip_->add_shard(value(m.clock), square_sum::read(m.values.bytes.first<square_sum::bytes>()));
  apply_held();
}

/// The norm is over all learned chunks, so all of them are updated together.
void server_shard::apply_held() {
  const auto first = std::find_if(chunks_.begin(), chunks_.end(),
                                  [](const auto& c) { return c.second.held.has_value(); });
  if (first == chunks_.end()) return;
  const auto factor = clip_->take_factor(first->second.version);
  if (!factor) return;
  for (auto& [id, o] : chunks_)
    if (const auto summed = std::exchange(o.held, std::nullopt)) apply(id, o, *summed, *factor);
  for (auto& [id, o] : chunks_) apply_if_complete(id);
}

// -- updates --------------------------------------------------------------------------------------------

/// `wire`: the format of a program's mean.
void server_shard::apply(chunk_id id, owned& o, const payload& sum, float factor,
                         wire_format wire) {
  const auto begin = setup_.trace != nullptr ? now_ns() : 0;
  const auto& c = setup_.store->cut().chunks[id];
  const auto& p = setup_.parameters[c.parameter];
  const bool reduced = c.format != wire_format::float32;
  const auto summed = floats(sum);
  const auto step = setup_.update.solver() != nullptr
                        ? step_of(setup_.solver, p, o.version, setup_.scale * factor)
                        : rule_step{};
  // This shard's newest version of the chunk, whether the parameter's other chunks have landed or not.
  const auto values = reduced ? std::span(o.exact) : setup_.store->at(id, o.version);
  const auto fresh = reduced ? std::span(o.exact) : setup_.store->at(id, o.version + 1);
  value_checksum made;
  if (p.given)
    std::memcpy(fresh.data(), summed.data(), summed.size_bytes());  // no arithmetic: any bits
  else if (p.average_momentum)
    setup_.arithmetic->update_average(momentum_over(*p.average_momentum, setup_.passes), summed,
                                      values, fresh);
  else if (const auto* const rule = setup_.update.solver())
    setup_.arithmetic->update(*rule, step, summed, values, fresh, history_.to_update(id, o.version),
                              c.keepers > 0 ? &made : nullptr);
  else if (!setup_.update.is_mean()) {
    const auto& lent = *setup_.lent[c.parameter];
    const auto base = base_of(*setup_.store, id, o.version, lent);
    if (reduced) take_over(base, setup_.store->at(id, o.version), o.exact);
    setup_.arithmetic->step(setup_.update.optimizer(), lent.step().value(), setup_.scale, summed,
                            reduced ? values : base, fresh, history_.to_update(id, o.version));
  } else
    setup_.arithmetic->scale(setup_.scale, summed, fresh);
  const auto sent = reduced                        ? land_rounded(id, o)
                    : wire != wire_format::float32 ? rounded(wire, fresh)
                                                   : payload{setup_.store, std::as_bytes(fresh)};
  ++o.version;
  const auto priority =
      setup_.by_magnitude
          ? magnitude_order(o.version, setup_.scale * factor * relative_magnitude(summed, values))
          : priority_of(id, o);
  setup_.store->set_applied(id, o.version);
  record_update(setup_.trace, setup_.names[c.parameter], begin, o.version, id, c.count);
  if (c.keepers == 0) return broadcast(id, o, sent, priority, wire);
  const auto kept = frame_to_keepers(id, step, made, sum, priority);
  broadcast(id, o, sent, priority, wire, &kept);
}

/// No worker has a gradient of it: there is nothing to send but this.
void server_shard::apply_nothing(chunk_id id, owned& o) {
  ++o.version;
  setup_.store->set_applied(id, o.version);
  broadcast(id, o, {}, priority_of(id, o), wire_format::float32);
}

std::uint64_t server_shard::priority_of(chunk_id id, const owned& o) const {
  const auto parameter = setup_.store->cut().chunks[id].parameter;
  const auto layer = setup_.first_uses[parameter];
  return forward_order(o.version,
                       setup_.places == nullptr ? layer : setup_.places->of_fresh(layer));
}

/// Only issues the update: kernels that read the fresh values wait for it on the device.
void server_shard::apply_on_device(chunk_id id, owned& o) {
  const auto begin = setup_.trace != nullptr ? now_ns() : 0;
  const auto of = history_.part(id);
  const auto parameter = setup_.store->cut().chunks[id].parameter;
  const auto& p = setup_.parameters[parameter];
  if (p.average_momentum)
    (*updates_)->update_average(of, momentum_over(*p.average_momentum, setup_.passes),
                                o.version + 1);
  else
    (*updates_)->update(of, step_of(setup_.solver, p, o.version, setup_.scale), o.version + 1);
  ++o.version;
  setup_.store->set_applied(id, o.version);
  record_update(setup_.trace, setup_.names[parameter], begin, o.version, id, of.count);
  tell(neighbours_->gather[parameter], chunk_fresh{id, version_id{o.version}});
}

/// Takes this node's own copy a rounded step towards the exact values, and returns that step.
payload server_shard::land_rounded(chunk_id id, const owned& o) {
  auto step = pool_.take(wire_bytes(setup_.store->cut().chunks[id].format, o.exact.size()));
  const auto& c = setup_.store->cut().chunks[id];
  const auto from = setup_.lent.size() == 0
                        ? std::span<const float>(setup_.store->at(id, o.version))
                        : base_of(*setup_.store, id, o.version, *setup_.lent[c.parameter]);
  poseidon::land_rounded(*setup_.store, id, o.version, from, o.exact, step.bytes);
  return {std::move(step.owner), step.bytes};
}

/// A program's mean as all nodes get it, this one included: without memory of what rounding takes, as it is this clock's alone.
payload server_shard::rounded(wire_format format, std::span<float> mean) {
  auto out = pool_.take(wire_bytes(format, mean.size()));
  encode_cast(format, mean, out.bytes);
  decode(format, out.bytes, mean);
  return {std::move(out.owner), out.bytes};
}

/// `format`: of the values, if they are a program's. `kept`: what keepers get in place of them.
void server_shard::broadcast(chunk_id id, const owned& o, const payload& fresh,
                             std::uint64_t priority, wire_format format, const send_frame* kept) {
  const auto& cut = setup_.store->cut();
  const auto& c = cut.chunks[id];
  const auto version = version_id{o.version};
  const bool nothing = fresh.bytes.empty();
  const send_frame values{frames::fresh_parameters{id, version, nothing, format}, fresh, priority};
  const auto& links = neighbours_->links;
  for (std::size_t w = 0; w < links.size(); ++w) {
    const auto& sent = kept != nullptr && is_keeper(cut, id, as_id<worker_id>(w)) ? *kept : values;
    tell(links[w], sent, sent.data.bytes.size());
  }
  tell(neighbours_->gather[c.parameter], chunk_fresh{id, version, nothing});
}

/// The version of a chunk's solver state. That of frozen parameters never changes: it belongs to every version.
version_id server_shard::history_version(chunk_id id, version_id wanted) const {
  const auto& o = chunks_.at(id);
  return o.installed ? version_id{o.version} : wanted;
}

void server_shard::on(const copy_history& m) {
  history_wanted_.emplace_back(std::nullopt, m.version);
  give_history_if_complete();
}

/// A run that loses a member after its last iteration writes its snapshot again, of the version that its last view begins with.
void server_shard::give_history_if_complete() {
  if (!history_.is_complete()) return;
  for (const auto& [to, version] : std::exchange(history_wanted_, {})) give_history(to, version);
}

void server_shard::give_history(const std::optional<worker_id>& to, version_id wanted) {
  history_.for_each([&](chunk_id id, std::uint32_t slot, std::vector<float> values) {
    auto data = payload_of(std::move(values));
    const auto version = history_version(id, wanted);
    if (!to)
      return tell(neighbours_->checkpointer,
                  history_arrived{setup_.self, id, slot, version, std::move(data)});
    const auto bytes = data.bytes.size();
    tell(neighbours_->links.at(value(*to)),
         send_frame{frames::history{id, slot, version}, std::move(data), 0}, bytes);
  });
}

void server_shard::on(const release_history& m) {
  for (const auto& [id, o] : chunks_)
    if (o.installed) require_reached(id, m.version, o.version);
  tell(m.to, history_released{history_.release(m.version)});
}

void server_shard::on(const control_passed& m) {
  const auto* wanted = std::get_if<frames::gather_history>(&m.header);
  if (wanted == nullptr) return;
  history_wanted_.emplace_back(m.from, wanted->version);
  give_history_if_complete();
}

void server_shard::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
