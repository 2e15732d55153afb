#include "actors/node/agreement.hpp"

#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

namespace {

/// A view that has begun, for members of an older one that ask.
frames::next_view as_told(const agreed_view& view, const node_setup& setup) {
  frames::next_view out;
  out.epoch = view.epoch;
  out.first_clock = view.first_clock;
  out.members = view.members;
  if (setup.run) out.routes = numbers_of(setup.run->routes);  // a joiner is told
  return out;
}

}  // namespace

view_box& agreement::box() {
  const auto& view = core_.view();
  const auto& change = core_.change;
  const bool knows_next = change.knows_next();
  const auto newest = knows_next ? change.next().epoch : view.epoch;
  if (box_ && box_->epoch() == newest) return *box_;
  auto next = knows_next ? change.next() : as_told(view, core_.setup);
  auto members = seats_of(next.members);
  box_.emplace(newest, view.seat, std::move(members), std::move(next));
  wanted_.reset();
  decision_taken_ = false;
  return *box_;
}

void agreement::propose(frames::next_view next) {
  auto& b = box();
  wanted_ = std::move(next);
  send(b.propose(knowledge()));
}

void agreement::hear_message(seat_id from, const view_box::message& m) {
  auto& b = box();
  view_box::letters out;
  (void)b.hear(from, m, knowledge(), out);
  send(out);
}

std::optional<frames::next_view> agreement::take_decision() {
  if (!box_ || !box_->decided() || std::exchange(decision_taken_, true)) return std::nullopt;
  tell_those_that_leave(*box_->decided());
  return box_->decided();
}

node_stand agreement::stand() const {
  const auto& change = core_.change;
  const bool waits = change.at() == view_change::step::paused || change.knows_next();
  if (!waits) return {};
  const bool has_values = !core_.view().brought(core_.view().seat);
  return {has_values ? std::optional(version_id{value(change.clock())}) : std::nullopt, true};
}

view_box::knowledge agreement::knowledge() const {
  view_box::knowledge out;
  out.says.stand = stand();
  for (const auto m : box_->members())
    if (m == core_.view().seat || core_.members.links().contains(m)) out.says.hears.push_back(m);
  out.next_value = [this](const testimonies&) { return wanted_; };
  return out;
}

void agreement::send(const view_box::letters& letters) const {
  for (const auto& l : letters) core_.members.send(l.to, send_frame{frame_of(l.what), {}, 0});
}

/// Where the newest view has not begun, those that left with it are not among its members, and still wait.
void agreement::tell_those_that_leave(const frames::next_view& next) const {
  const auto& view = core_.view();
  const auto drained = core_.change.has_entered() ? view.before : seats_of(view.members);
  for (const auto seat : drained)
    if (!has_seat(box_->members(), seat)) core_.members.send(seat, send_frame{next, {}, 0});
}

}  // namespace poseidon
