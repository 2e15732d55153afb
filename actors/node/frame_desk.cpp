#include "actors/node/frame_desk.hpp"

#include "actors/links/frame_check.hpp"
#include "actors/node/node.hpp"
#include "messages/frame_table.hpp"

#include <algorithm>
#include <variant>

namespace poseidon {

frame_desk::next frame_desk::hear(const control_arrived& m) {
  const auto& view = core_.view();
  const sender from{m.seat, view.worker_of(m.seat)};
  // A newcomer may be ready before this node has entered the view with it; who leaves says when it can give its state away.
  const bool is_member = view.members.empty() || view.has(m.seat) || view.had(m.seat) ||
                         core_.change.brings(m.seat) || core_.is_witness(m.seat);
  // A member that has failed tells all, whoever leads.
  if (const auto* const failed = std::get_if<frames::suspect>(&m.header);
      failed != nullptr && failed->seat == m.seat)
    return is_member ? next::lose : next::nothing;
  // Who has left does not hear of every view that comes after it.
  if (!is_member && core_.members.is_gone(m.seat)) return next::nothing;
  if (is_too_early(m) || is_too_late(m)) return next::nothing;
  const auto leader = core_.change.leader().value_or(view.leader());
  const frame_sender writer{m.seat, is_member, view_of(m), core_.members.has_led(m.seat)};
  const frame_listener here{view.seat, leader, core_.change.at(), core_.members.has_led(view.seat)};
  auto why = refusal_of(m.header, writer, here);
  // Who does not know yet that another node leads has said it to the wrong one, or is not the right one any more. That one
  // says again what matters to the next one.
  const bool hands_over = leader != view.leader() || core_.change.at() == node_stage::parting;
  if (why && (hands_over || is_of_another_view(m.header, writer, here))) return next::nothing;
  if (why && !is_member && epoch_of_ballot(m.header) != 0) {
    // It has come with a view of which only the leader before knew, and the members have agreed on another one: it may come again.
    core_.close_link_to(m.seat,
                        {"the other nodes have agreed on a view without " + view.name_of(m.seat),
                         frames::goodbye::cause::left_out});
    return next::nothing;
  }
  if (!why) why = turns_.refusal_of(m.header, m.seat);
  if (why) {
    // The link's end is the run's: the peer hears why, and so does the user.
    core_.close_link_to(m.seat, {view.name_of(m.seat) + " sent a bad frame: " + *why});
    return next::nothing;
  }
  return std::visit(
      [&](const auto& f) {
        if constexpr (reaches_node<decltype(f)>)
          return on(f, from);
        else
          return next::nothing;
      },
      m.header);
}

written_in frame_desk::view_of(const control_arrived& m) const {
  const auto newest = core_.newest_epoch();
  if (m.epoch == 0 || m.epoch == newest) return written_in::same_view;
  return m.epoch < newest ? written_in::earlier_view : written_in::later_view;
}

/// What is said to the leader of a view that forms, by a node that knows it. Where members are lost, the others may have agreed on a
/// view that this node leads before it has noticed anything.
bool frame_desk::is_for_leader_to_be(const control_arrived& m) {
  if (core_.setup.run && core_.setup.run->survive > 0 && !core_.view().leads() &&
      std::holds_alternative<frames::suspect>(m.header))
    return core_.change.is_in(stages::in_view);
  // Another node than the leader may know the next view first, and be ready for it.
  const auto* const ready = std::get_if<frames::member_ready>(&m.header);
  return ready != nullptr && ready->epoch > core_.newest_epoch();
}

/// Another node has heard the next view, and who leads it, on its own link: this one hears it later.
bool frame_desk::is_early(const control_arrived& m) {
  if (row_of_kind(m.header).path == frame_path::to_leader) return !core_.view().leads();
  // A newcomer hears the run's view from the leader.
  if (std::holds_alternative<frames::next_view>(m.header))
    return core_.change.at() == node_stage::gathering;
  return epoch_of_ballot(m.header) > core_.newest_epoch();
}

bool frame_desk::is_too_early(const control_arrived& m) {
  const bool awaits_next = core_.change.awaits_next() ||
                           (core_.change.at() == node_stage::gathering && joining_.is_ready());
  if (!is_for_leader_to_be(m) && (!awaits_next || !is_early(m))) return false;
  std::erase_if(early_, [&](const auto& e) {
    return e.seat == m.seat && e.header.index() == m.header.index();
  });
  early_.push_back(m);
  return true;
}

/// It is of a view that another one has replaced, or that this node has heard of already. What members may say once in a view is
/// counted anew as soon as this node follows the others to the next one, so from then on what is of the view before is late.
bool frame_desk::is_too_late(const control_arrived& m) {
  const auto newest = core_.newest_epoch();
  // From a witness that has left meanwhile, too, which is no member any more.
  const auto of_ballot = epoch_of_ballot(m.header);
  if (of_ballot > 0 && of_ballot < newest && core_.members.is_gone(m.seat)) return true;
  if (const auto* const ready = std::get_if<frames::member_ready>(&m.header))
    return ready->epoch < newest;
  if (m.epoch > 0 && m.epoch < newest && is_of_its_senders_view(m.header)) return true;
  const auto* const next = std::get_if<frames::next_view>(&m.header);
  return next != nullptr && core_.change.at() != node_stage::gathering && next->epoch <= newest;
}

}  // namespace poseidon
