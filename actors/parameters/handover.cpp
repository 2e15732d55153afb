#include "actors/parameters/handover.hpp"

#include "messages/wire/codec.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// To every other node that has the chunk's solver state.
void send_to_others(history_piece& piece, const partition& cut, worker_id self,
                    std::size_t workers) {
  for (const auto w : id_range<worker_id>(workers))
    if (w != self && has_state(cut, piece.chunk, w)) piece.away.push_back(w);
}

struct overlap {
  chunk_id with{};
  std::size_t begin = 0, end = 0;  // in values of the parameter
};

/// The chunks of the other partition that have values of `one`.
std::vector<overlap> overlaps(const chunk& one, const partition& other) {
  std::vector<overlap> out;
  for (const auto id : other.by_parameter[one.parameter]) {
    const auto& c = other.chunks[id];
    const auto begin = std::max(one.offset, c.offset);
    const auto end = std::min(one.offset + one.count, c.offset + c.count);
    if (begin < end) out.push_back({id, begin, end});
  }
  return out;
}

/// Every member of the view before has kept it.
void give_to_newcomers(history_piece& piece, const view_step& step) {
  if (donor_of(piece.chunk, step.before.by_owner.size(), step.lost) != step.former_self) return;
  for (const auto w : step.newcomers)
    if (has_state(step.now, piece.chunk, w)) piece.away.push_back(w);
}

/// The state of one chunk of the view before.
void give_chunk(const view_step& step, const std::shared_ptr<const chunk_histories>& history,
                chunk_id old_id, std::vector<history_piece>& out) {
  const auto& from = step.before.chunks[old_id];
  const auto& slots = history->at(old_id);
  for (const auto& part : overlaps(from, step.now)) {
    const auto& to = step.now.chunks[part.with];
    for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot].empty()) continue;  // a device that does not compute has none
      const auto values =
          std::span(slots[slot]).subspan(part.begin - from.offset, part.end - part.begin);
      auto& piece = out.emplace_back();
      piece.chunk = part.with;
      piece.slot = slot;
      piece.first = part.begin - to.offset;
      piece.values = {history, std::as_bytes(values)};
      piece.here = step.self != no_worker && has_state(step.now, part.with, step.self);
      if (from.owner == every_worker)
        give_to_newcomers(piece, step);
      else
        send_to_others(piece, step.now, step.self, step.now.by_owner.size());
    }
  }
}

bool is_lost(worker_id w, const std::vector<worker_id>& lost) {
  return std::find(lost.begin(), lost.end(), w) != lost.end();
}

}  // namespace

worker_id donor_of(chunk_id chunk, std::size_t members, const std::vector<worker_id>& lost) {
  for (std::size_t i = 0; i < members; ++i)
    if (const auto w = as_id<worker_id>((value(chunk) + i) % members); !is_lost(w, lost)) return w;
  return no_worker;
}

worker_id giver_of(const partition& before, chunk_id id, const std::vector<worker_id>& lost) {
  const auto owner = before.chunks[id].owner;
  if (!is_lost(owner, lost)) return owner;
  for (const auto keeper : keepers_of(before, id))
    if (!is_lost(keeper, lost)) return keeper;
  return no_worker;
}

worker_id giver_of(const partition& before, chunk_id id, const std::vector<worker_id>& lost,
                   bool zeroes_lost_state) {
  const auto giver = giver_of(before, id, lost);
  return giver == no_worker && zeroes_lost_state ? donor_of(id, before.by_owner.size(), lost)
                                                 : giver;
}

std::shared_ptr<const chunk_histories> zeros_for_lost(const net& train, const view_step& step,
                                                      std::size_t slots) {
  auto out = std::make_shared<chunk_histories>();
  for (const auto id : step.before.chunks.ids()) {
    const auto& c = step.before.chunks[id];
    if (c.owner == every_worker || !has_solver_state(train.parameters[value(c.parameter)]) ||
        giver_of(step.before, id, step.lost) != no_worker ||
        giver_of(step.before, id, step.lost, true) != step.former_self)
      continue;
    (*out)[id].assign(slots, std::vector<float>(c.count));
  }
  return out;
}

std::vector<history_piece> handover(
    const net& train, const view_step& step,
    const std::vector<std::shared_ptr<const chunk_histories>>& kept,
    const std::vector<std::shared_ptr<const chunk_histories>>& copies) {
  std::vector<history_piece> out;
  const auto learns = [&](chunk_id id) {
    return has_solver_state(train.parameters[value(step.before.chunks[id].parameter)]);
  };
  for (const auto& history : kept)
    for (const auto& [id, slots] : *history)
      if (learns(id)) give_chunk(step, history, id, out);
  for (const auto& copy : copies)
    for (const auto& [id, slots] : *copy)
      if (learns(id) &&
          giver_of(step.before, id, step.lost, step.zeroes_lost_state) == step.former_self)
        give_chunk(step, copy, id, out);
  return out;
}

std::size_t state_values(const net& train, const partition& before, const partition& now,
                         chunk_id chunk, std::size_t slots, bool computes) {
  const auto& to = now.chunks[chunk];
  if (!has_solver_state(train.parameters[value(to.parameter)])) return 0;
  std::size_t values = 0;
  for (const auto& part : overlaps(to, before))
    if (computes || before.chunks[part.with].owner != every_worker) values += part.end - part.begin;
  return values * slots;
}

}  // namespace poseidon
