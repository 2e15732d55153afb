// What a node of the model says, as the product's frames, and back: the model's messages are small, and can be compared.
#include "tests/actors/membership/view_model.hpp"

#include <utility>
#include <variant>

namespace poseidon::view_model {

namespace {

std::vector<frames::member> members_in(seat_mask mask) {
  std::vector<frames::member> out;
  for (const auto s : seats_of(mask)) out.push_back({s, ""});
  return out;
}

}  // namespace

/// As it is told to nodes of the view before: who is not in it is lost, or wanted to leave.
frames::next_view node::told(const view& v) const {
  frames::next_view out{v.epoch, clock_id{v.first}, members_in(trainers(v)), {}};
  out.witnesses = members_in(static_cast<seat_mask>(v.members & witnesses_));
  if (v.epoch > epoch_) out.lost = seats_of(static_cast<seat_mask>(now().of.members & ~v.members));
  out.all_have_values = v.all_have_values;
  return out;
}

view node::view_of(const frames::next_view& n) const {
  const auto& own = now().of;
  if (n.epoch == own.epoch) return own;
  view out{n.epoch, mask_of(voters_of(n)), static_cast<std::uint8_t>(value(n.first_clock)),
           begins_again(standing_, n) ? own.before : own.members, n.all_have_values};
  if (n.epoch > epoch_ + 1) out.before = before_heard_;  // it knows nothing of the view between
  return out;
}

message node::message_of(const frame_header& f) const {
  using kind = message::kind;
  if (const auto* m = std::get_if<frames::next_view>(&f)) return chosen(view_of(*m));
  if (const auto* m = std::get_if<frames::view_prepare>(&f))
    return {kind::prepare, m->epoch, m->number, {}, {}, {}, {}};
  if (const auto* m = std::get_if<frames::view_accept>(&f))
    return {kind::accept, m->epoch, m->number, {}, {}, view_of(m->value), {}};
  if (const auto* m = std::get_if<frames::view_accepted>(&f))
    return {kind::accepted, m->epoch, m->number, m->promised, {}, {}, {}};
  const auto& m = std::get<frames::view_promise>(f);
  message out{kind::promise, m.epoch, m.number, m.promised, m.accepted, {}, testimony_of(m)};
  if (m.accepted.round > 0) out.value = view_of(m.value);
  if (is_witness() && broken_ == mutation::witness_has_first_version)
    out.says.stand.whole = version_id{0};
  return out;
}

frame_header node::frame_of(const message& m) const {
  switch (m.is) {
    case message::kind::prepare:
      return frames::view_prepare{m.epoch, m.number};
    case message::kind::promise:
      return frames::view_promise{m.epoch,
                                  m.number,
                                  m.promised,
                                  m.accepted,
                                  m.accepted.round > 0 ? told(m.value) : frames::next_view{},
                                  m.says.stand.whole.has_value(),
                                  m.says.stand.whole.value_or(version_id{}),
                                  m.says.stand.drained,
                                  m.says.hears,
                                  m.says.dead};
    case message::kind::accept:
      return frames::view_accept{m.epoch, m.number, told(m.value)};
    case message::kind::accepted:
      return frames::view_accepted{m.epoch, m.number, m.promised};
    case message::kind::chosen:
      break;
  }
  return told(m.value);
}

}  // namespace poseidon::view_model
