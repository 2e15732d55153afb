#include "actors/membership/view_ballots.hpp"

#include "messages/overloaded.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

frames::view_promise frame_of(const view_box::promise& m) {
  frames::view_promise out;
  out.epoch = m.epoch;
  out.number = m.number;
  out.promised = m.promised;
  if (m.accepted) {
    out.accepted = m.accepted->number;
    out.value = m.accepted->value;
  }
  const auto& stand = m.says.stand;
  out.whole = stand.whole.has_value();
  out.version = stand.whole.value_or(version_id{});
  out.drained = stand.drained;
  out.hears = m.says.hears;
  out.dead = m.says.dead;
  return out;
}

}  // namespace

frame_header frame_of(const view_box::message& m) {
  return std::visit(overloaded{
                        [](const view_box::prepare& p) -> frame_header {
                          return frames::view_prepare{p.epoch, p.number};
                        },
                        [](const view_box::promise& p) -> frame_header { return frame_of(p); },
                        [](const view_box::accept& a) -> frame_header {
                          return frames::view_accept{a.epoch, a.number, a.value};
                        },
                        [](const view_box::accepted& a) -> frame_header {
                          return frames::view_accepted{a.epoch, a.number, a.promised};
                        },
                        [](const view_box::chosen& c) -> frame_header { return c.value; },
                    },
                    m);
}

namespace {

view_box::message promise_of(const frames::view_promise& f) {
  view_box::promise out{f.epoch, f.number, f.promised, std::nullopt, {}};
  if (f.accepted.round > 0) out.accepted = view_box::vote{f.accepted, f.value};
  if (f.whole) out.says.stand.whole = f.version;
  out.says.stand.drained = f.drained;
  out.says.hears = f.hears;
  out.says.dead = f.dead;
  return out;
}

}  // namespace

std::optional<view_box::message> message_of(const frame_header& f) {
  using message = std::optional<view_box::message>;
  return std::visit(overloaded{
                        [](const frames::view_prepare& p) -> message {
                          return view_box::prepare{p.epoch, p.number};
                        },
                        [](const frames::view_promise& p) -> message { return promise_of(p); },
                        [](const frames::view_accept& a) -> message {
                          return view_box::accept{a.epoch, a.number, a.value};
                        },
                        [](const frames::view_accepted& a) -> message {
                          return view_box::accepted{a.epoch, a.number, a.promised};
                        },
                        [](const auto&) -> message { return std::nullopt; },
                    },
                    f);
}

seat_list seats_of(const std::vector<frames::member>& members) {
  seat_list out;
  for (const auto& m : members) out.push_back(m.seat);
  return out;
}

seat_list voters_of(const frames::next_view& view) {
  auto out = seats_of(view.members);
  for (const auto& w : view.witnesses) out.push_back(w.seat);
  std::sort(out.begin(), out.end());
  return out;
}

view_box box_of(const frames::next_view& view, seat_id self, quorum_rule* decides) {
  return {view.epoch, self, voters_of(view), view, decides, seats_of(view.witnesses)};
}

}  // namespace poseidon
