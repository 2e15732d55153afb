#include "actors/node/witnesses.hpp"

#include "actors/node/node.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

std::optional<std::string> witnesses::objection() const {
  if (core_.setup.run->survive == 0)
    return core_.setup.around
               ? "this run has on-loss=end, with which the loss of any worker ends it, so a "
                 "witness would be of no use. Start it with on-loss=go-on, or without a witness"
               : "this run has --survive 0, with which the loss of any node ends it, so a "
                 "witness would be of no use. Start the first node with --survive 1, or the run "
                 "without a witness";
  if (core_.setup.choices.by_schedule)
    return "this run's views are those of --views, and a witness needs one more. Start the first "
           "node without --views, or the run without a witness";
  auto there = core_.newest_witnesses();
  for (const auto& [seat, who] : waiting_)
    if (is_linked(seat)) there.push_back(who.as_member);
  if (there.empty()) return std::nullopt;
  const auto& other = there.front();
  return "witness " + std::to_string(value(other.seat)) + " (" + other.address +
         ") is there already, and a run has one at most. End that one first, or try again when the "
         "others go on without it";
}

bool witnesses::is_linked(seat_id seat) const {
  return core_.members.links().contains(seat);
}

void witnesses::add(const frames::member& witness) {
  waiting_[witness.seat] = {witness};
  if (knows_run_) newcomers_.tell(witness.seat, true);
}

void witnesses::tell_all() {
  knows_run_ = true;
  for (const auto& [seat, who] : waiting_) newcomers_.tell(seat, true);
}

bool witnesses::ready(seat_id seat) {
  const auto found = waiting_.find(seat);
  if (found == waiting_.end()) return false;
  found->second.is_ready = true;
  core_.setup.display->note("witness " + std::to_string(value(seat)) + " (" +
                            found->second.as_member.address + ") is ready");
  return true;
}

bool witnesses::gone(seat_id seat, const std::string& why) {
  if (waiting_.erase(seat) == 0) return false;
  core_.setup.display->note("witness " + std::to_string(value(seat)) +
                            ", which was about to join, has gone: " + why);
  return true;
}

std::vector<frames::member> witnesses::of_next_view() const {
  auto out = core_.view().witnesses;
  std::erase_if(out, [&](const auto& w) { return leaving_.contains(w.seat); });
  for (const auto& [seat, who] : waiting_)
    if (who.is_ready && is_linked(seat) && !is_among(out, seat)) out.push_back(who.as_member);
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.seat < b.seat; });
  return out;
}

/// One that was lost as the view with it began was told so as a member is, not by gone().
void witnesses::began() {
  std::erase_if(waiting_, [&](const auto& w) {
    return core_.view().has_witness(w.first) || !is_linked(w.first);
  });
  std::erase_if(leaving_, [&](seat_id seat) { return !core_.view().has_witness(seat); });
}

}  // namespace poseidon
