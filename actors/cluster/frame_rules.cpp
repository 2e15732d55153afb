#include "actors/cluster/frame_rules.hpp"

#include "messages/frame_table.hpp"
#include "messages/wire/codec.hpp"

namespace poseidon {

namespace {

std::string stages_text(stage_set stages) {
  std::string out;
  for (std::size_t s = 0; s < names_of_stages.size(); ++s)
    if (contains(stages, static_cast<node_stage>(s)))
      out += (out.empty() ? "" : ", ") + std::string(names_of_stages[s]);
  return out;
}

std::string node_text(seat_id s) {
  return s == no_seat ? "a joining node" : "worker " + std::to_string(value(s));
}

std::string text(const frame_header& h, const char* field, const std::string& got,
                 const std::string& wanted) {
  return bad_frame(kind_name(h), field, got, wanted).what();
}

}  // namespace

std::optional<std::string> refusal_of(const frame_header& h, const frame_sender& from,
                                      const frame_listener& to) {
  const auto& rule = row_of_kind(h);
  const bool to_leader = rule.path == frame_path::to_leader || rule.path == frame_path::joiner;
  if (rule.path == frame_path::link)
    return text(h, "receiver", "the node", "the link or an actor that trains");
  if (rule.path == frame_path::from_leader && from.seat != to.leader)
    return text(h, "sender", node_text(from.seat), node_text(to.leader) + ", the leader");
  if (to_leader && to.self != to.leader)
    return text(h, "receiver", node_text(to.self), node_text(to.leader) + ", the leader");
  if (!contains(rule.during, to.stage))
    return text(h, "stage", std::string(to_string(to.stage)), stages_text(rule.during));
  if ((rule.path == frame_path::to_leader || rule.path == frame_path::any_to_any) &&
      !from.is_member)
    return text(h, "sender", node_text(from.seat) + ", which has not joined", "a member");
  return std::nullopt;
}

bool is_of_another_view(const frame_header& h, const frame_sender& from, const frame_listener& to) {
  if (from.wrote == written_in::same_view) return false;
  const auto& rule = row_of_kind(h);
  // A link keeps the order: what is said before there is a view comes before all that is said in one.
  if (rule.path == frame_path::link || rule.during == stages::forming) return false;
  // Who leads a later view is not known here yet.
  if (from.wrote == written_in::later_view) return true;
  switch (rule.path) {
    case frame_path::from_leader:
      return from.has_led;
    case frame_path::to_leader:
    case frame_path::joiner:
      return to.self == to.leader || to.has_led;
    default:
      return true;
  }
}

}  // namespace poseidon
