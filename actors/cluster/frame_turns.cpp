#include "actors/cluster/frame_turns.hpp"

#include "messages/wire/codec.hpp"

#include <variant>

namespace poseidon {

namespace {

struct turn_limit {
  std::size_t most = 0;  // 0: any number
  bool of_view = false;  // else of the run
};

constexpr turn_limit any_number{};
constexpr turn_limit once_a_run{1, false};
constexpr turn_limit once_a_view{1, true};

template <class F>
constexpr turn_limit limit_of(const F&) {
  return any_number;
}
constexpr turn_limit limit_of(const frames::time_net&) {
  return once_a_run;
}
constexpr turn_limit limit_of(const frames::net_timed&) {
  return once_a_run;
}
constexpr turn_limit limit_of(const frames::view&) {
  return once_a_run;
}
constexpr turn_limit limit_of(const frames::worker_done&) {
  return once_a_run;
}
constexpr turn_limit limit_of(const frames::member_ready&) {
  return once_a_view;
}
constexpr turn_limit limit_of(const frames::start_training&) {
  return once_a_view;
}
constexpr turn_limit limit_of(const frames::hold_training&) {
  return once_a_view;
}
constexpr turn_limit limit_of(const frames::rebuild_graph&) {
  return once_a_view;
}
/// That it holds, and that it has drained.
constexpr turn_limit limit_of(const frames::worker_paused&) {
  return {2, true};
}

}  // namespace

std::optional<std::string> frame_turns::refusal_of(const frame_header& h, worker_id from) {
  const auto limit = std::visit([](const auto& f) { return limit_of(f); }, h);
  if (limit.most == 0) return std::nullopt;
  auto& times = (limit.of_view ? of_view_ : of_run_)[{from, h.index()}];
  if (++times <= limit.most) return std::nullopt;
  const auto text = [](std::size_t n) { return n == 1 ? "once" : std::to_string(n) + " times"; };
  return bad_frame(kind_name(h), limit.of_view ? "times in a view" : "times in a run", text(times),
                   text(limit.most) + " at most")
      .what();
}

}  // namespace poseidon
