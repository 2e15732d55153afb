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

}  // namespace

std::vector<history_piece> first_history(
    const partition& cut, chunk_id id, const std::vector<std::shared_ptr<parameter_arrays>>& slots,
    worker_id self, std::size_t workers) {
  std::vector<history_piece> out;
  const auto& c = cut.chunks[id];
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    const auto values = std::span((*slots[slot])[value(c.parameter)]).subspan(c.offset, c.count);
    auto& piece = out.emplace_back();
    piece.chunk = id;
    piece.slot = slot;
    piece.values = {slots[slot], std::as_bytes(values)};
    piece.here = has_state(cut, id, self);
    send_to_others(piece, cut, self, workers);
  }
  return out;
}

namespace {

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
  if (donor_of(piece.chunk, step.before.by_owner.size()) != step.former_self) return;
  for (const auto w : step.newcomers)
    if (has_state(step.now, piece.chunk, w)) piece.away.push_back(w);
}

}  // namespace

std::vector<history_piece> handover(
    const net& train, const view_step& step,
    const std::vector<std::shared_ptr<const chunk_histories>>& kept) {
  std::vector<history_piece> out;
  for (const auto& history : kept)
    for (const auto& [old_id, slots] : *history) {
      const auto& from = step.before.chunks[old_id];
      if (!is_updated(train, value(from.parameter))) continue;
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
  return out;
}

std::size_t state_values(const net& train, const partition& before, const partition& now,
                         chunk_id chunk, std::size_t slots, bool computes) {
  const auto& to = now.chunks[chunk];
  if (!is_updated(train, value(to.parameter))) return 0;
  std::size_t values = 0;
  for (const auto& part : overlaps(to, before))
    if (computes || before.chunks[part.with].owner != every_worker) values += part.end - part.begin;
  return values * slots;
}

}  // namespace poseidon
