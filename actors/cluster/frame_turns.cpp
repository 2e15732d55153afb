#include "actors/cluster/frame_turns.hpp"

#include "messages/frame_table.hpp"
#include "messages/wire/codec.hpp"

namespace poseidon {

std::optional<std::string> frame_turns::refusal_of(const frame_header& h, seat_id from) {
  const auto limit = row_of_kind(h).turns;
  if (limit.most == 0) return std::nullopt;
  auto& times = (limit.of_view ? of_view_ : of_run_)[{from, h.index()}];
  if (++times <= limit.most) return std::nullopt;
  const auto text = [](std::size_t n) { return n == 1 ? "once" : std::to_string(n) + " times"; };
  return bad_frame(kind_name(h), limit.of_view ? "times in a view" : "times in a run", text(times),
                   text(limit.most) + " at most")
      .what();
}

void frame_turns::forget(seat_id from) {
  for (auto* const counted : {&of_view_, &of_run_})
    std::erase_if(*counted, [&](const auto& e) { return e.first.first == from; });
}

}  // namespace poseidon
