#include "actors/cluster/frame_turns.hpp"

#include "messages/overloaded.hpp"
#include "messages/wire/codec.hpp"

#include <variant>

namespace poseidon {

namespace {

struct turn_limit {
  std::size_t most = 0;  // 0: any number
  bool of_view = false;  // else of the run
};

template <class F>
constexpr turn_limit limit_of(const F&) {
  if (one_of<F, frames::view>) return {2, false};  // as a prospect, and as a member
  if (one_of<F, frames::time_net, frames::net_timed, frames::factor_offer, frames::join_ready>)
    return {1, false};
  if (one_of<F, frames::member_ready, frames::start_training, frames::hold_training,
             frames::worker_done>)
    return {1, true};
  if (one_of<F, frames::worker_paused>) return {2, true};  // that it holds, and that it has drained
  return {};
}

}  // namespace

std::optional<std::string> frame_turns::refusal_of(const frame_header& h, seat_id from) {
  const auto limit = std::visit([](const auto& f) { return limit_of(f); }, h);
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
