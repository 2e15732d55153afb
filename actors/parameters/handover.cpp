#include "actors/parameters/handover.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// Where the solver state of a chunk of `owner` is kept, as seen from `self`.
void set_places(history_piece& piece, worker_id owner, worker_id self, std::size_t workers,
                bool travels) {
  piece.here = owner == every_worker || owner == self;
  if (!travels) return;
  for (const auto w : id_range<worker_id>(workers))
    if (w != self && (owner == every_worker || owner == w)) piece.away.push_back(w);
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
    set_places(piece, c.owner, self, workers, true);
  }
  return out;
}

std::vector<history_piece> handover(const net& train, const partition& before, const partition& now,
                                    const std::vector<std::shared_ptr<const chunk_histories>>& kept,
                                    worker_id self, std::size_t workers) {
  std::vector<history_piece> out;
  for (const auto& history : kept)
    for (const auto& [old_id, slots] : *history) {
      const auto& from = before.chunks[old_id];
      if (!is_updated(train, value(from.parameter))) continue;
      for (const auto id : now.by_parameter[from.parameter]) {
        const auto& to = now.chunks[id];
        const auto begin = std::max(from.offset, to.offset);
        const auto end = std::min(from.offset + from.count, to.offset + to.count);
        for (std::uint32_t slot = 0; begin < end && slot < slots.size(); ++slot) {
          if (slots[slot].empty()) continue;  // a device that does not compute has none
          const auto values = std::span(slots[slot]).subspan(begin - from.offset, end - begin);
          auto& piece = out.emplace_back();
          piece.chunk = id;
          piece.slot = slot;
          piece.first = begin - to.offset;
          piece.values = {history, std::as_bytes(values)};
          set_places(piece, to.owner, self, workers, from.owner != every_worker);
        }
      }
    }
  return out;
}

}  // namespace poseidon
