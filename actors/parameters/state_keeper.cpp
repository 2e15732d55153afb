#include "actors/parameters/state_keeper.hpp"

#include "actors/core/actor_failure.hpp"
#include "actors/core/logic_bug.hpp"
#include "actors/parameters/chunk_update.hpp"
#include "messages/float_payload.hpp"
#include "models/plan/keepers.hpp"

#include <cstdio>
#include <utility>

namespace poseidon {

state_keeper::state_keeper(actor_context context, state_keeper_setup setup)
    : actor(context),
      setup_(std::move(setup)),
      history_(setup_.store->cut(), history_count(setup_.rule.kind), {}, setup_.former_states) {
  const auto& cut = setup_.store->cut();
  for (const auto id : cut.chunks.ids()) {
    if (!is_keeper(cut, id, setup_.self)) continue;
    chunks_[id].version = value(setup_.first_clock);
    history_.add(id);
    if (!setup_.awaited_state.empty()) history_.await(id, setup_.awaited_state[id]);
  }
}

void state_keeper::on(const connect_keeper& m) {
  neighbours_ = m;
}

state_keeper::kept& state_keeper::at(chunk_id id) {
  const auto it = chunks_.find(id);
  if (it == chunks_.end()) throw logic_bug("a chunk of another keeper", value(id), chunks_.size());
  return it->second;
}

/// This node's gradient is part of the sum, so the values that it was computed with are in the store, and what solver state came
/// before them is in the history.
void state_keeper::on(const sum_arrived& m) {
  auto& k = at(m.of.chunk);
  const auto next = k.version + k.waiting.size();
  if (value(m.of.clock) != next)
    throw logic_bug("a sum that is not the next one", value(m.of.clock), next);
  k.waiting.push_back(m);
  apply_if_complete(m.of.chunk);
}

void state_keeper::on(const history_inherited& m) {
  history_.write(m.chunk, m.slot, m.first, floats(m.values));
  apply_if_complete(m.chunk);
}

void state_keeper::apply_if_complete(chunk_id id) {
  auto& k = at(id);
  while (!k.waiting.empty() && history_.is_complete(id)) {
    const auto sum = std::move(k.waiting.front());
    k.waiting.pop_front();
    apply(id, k, sum);
  }
}

void state_keeper::apply(chunk_id id, kept& k, const sum_arrived& m) {
  const auto begin = setup_.trace != nullptr ? now_ns() : 0;
  const auto& c = setup_.store->cut().chunks[id];
  const bool reduced = c.format != wire_format::float32;
  if (reduced && k.exact.empty()) begin_exact(id, k);
  const auto values = reduced ? std::span(k.exact) : setup_.store->at(id, k.version);
  const auto fresh = reduced ? std::span(k.exact) : setup_.store->at(id, k.version + 1);
  value_checksum made;
  setup_.arithmetic->update(setup_.rule, step_of(m.of), floats(m.values), values, fresh,
                            history_.to_update(id, k.version), &made);
  compare(id, made.value(), m.of);
  if (reduced) {
    step_.resize(wire_bytes(c.format, c.count));
    land_rounded(*setup_.store, id, k.version, setup_.store->at(id, k.version), k.exact, step_);
  }
  ++k.version;
  setup_.store->set_applied(id, k.version);
  record_update(setup_.trace, setup_.layers[c.parameter], begin, k.version, id, c.count);
  tell(neighbours_->gather[c.parameter], chunk_fresh{id, version_id{k.version}});
}

/// A view begins with the values that all nodes have.
void state_keeper::begin_exact(chunk_id id, kept& k) const {
  const auto first = setup_.store->at(id, k.version);
  k.exact.assign(first.begin(), first.end());
}

void state_keeper::compare(chunk_id id, std::uint32_t here,
                           const frames::summed_gradient& sum) const {
  if (here == sum.checksum) return;
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%08x here and %08x there", here, sum.checksum);
  const auto parameter = setup_.store->cut().chunks[id].parameter;
  throw nodes_differ(
      "iteration " + std::to_string(value(sum.clock)) + ": of parameter " +
      setup_.names[parameter] + ", chunk " + std::to_string(value(id)) +
      ", the values that this node has computed are not those of the node that owns it, which were "
      "computed from the same sum of gradients: their checksums are " +
      numbers +
      ". The processors or libraries of the two nodes round differently, or memory is damaged. "
      "With "
      "--survive 0 no node computes what another one owns.");
}

void state_keeper::on(const release_history& m) {
  const auto& cut = setup_.store->cut();
  for (const auto& [id, k] : chunks_) require_reached(id, m.version, k.version);
  std::map<worker_id, std::shared_ptr<chunk_histories>> by_owner;
  const auto all = history_.release(m.version);
  for (auto& [id, state] : *all) {
    auto& of = by_owner[cut.chunks[id].owner];
    if (of == nullptr) of = std::make_shared<chunk_histories>();
    (*of)[id] = std::move(state);
  }
  history_released out{nullptr, {}, m.version};
  for (auto& [owner, states] : by_owner) out.copies[owner] = std::move(states);
  tell(m.to, std::move(out));
}

void state_keeper::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
