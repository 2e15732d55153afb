#include "actors/membership/view.hpp"

#include "data/batch_shares.hpp"
#include "messages/wire/peer_name.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

namespace {

auto find(const std::vector<frames::member>& members, seat_id seat) {
  return std::find_if(members.begin(), members.end(),
                      [&](const auto& m) { return m.seat == seat; });
}

template <class List>
worker_id place_in(const List& list, typename List::const_iterator at) {
  return at == list.end() ? no_worker
                          : as_id<worker_id>(static_cast<std::size_t>(at - list.begin()));
}

}  // namespace

worker_id agreed_view::self() const {
  return members.empty() && leads() ? worker_id{0} : worker_of(seat);
}

worker_id agreed_view::worker_of(seat_id s) const {
  return place_in(members, find(members, s));
}

worker_id agreed_view::former_worker_of(seat_id s) const {
  return place_in(before, std::find(before.begin(), before.end(), s));
}

bool agreed_view::has_witness(seat_id s) const {
  return is_among(witnesses, s);
}

std::string agreed_view::name_of(seat_id s) const {
  const auto at = find(members, s);
  if (const auto w = find(witnesses, s); w != witnesses.end())
    return peer_name(s, w->address, peer_kind::witness);
  return at != members.end() ? peer_name(s, at->address) : "worker " + std::to_string(value(s));
}

std::vector<seat_id> agreed_view::others() const {
  std::vector<seat_id> out;
  for (const auto& m : members)
    if (m.seat != seat) out.push_back(m.seat);
  return out;
}

std::vector<std::string> agreed_view::lines() const {
  std::vector<std::string> out;
  for (const auto* const nodes : {&members, &witnesses})
    for (const auto& m : *nodes)
      out.push_back("view " + std::to_string(epoch) + ": " + name_of(m.seat) +
                    (m.seat == seat ? ", this node" : ""));
  return out;
}

agreed_view view_of_leader(clock_id first_clock) {
  agreed_view v;
  v.first_clock = first_clock;
  v.seat = v.first_leader;
  return v;
}

std::vector<worker_id> agreed_view::former_lost() const {
  std::vector<worker_id> out;
  for (const auto s : lost)
    if (had(s)) out.push_back(former_worker_of(s));
  return out;
}

bool agreed_view::is_given_values(seat_id s) const {
  return brought(s) || has_seat(lacking, s);
}

std::vector<worker_id> agreed_view::former_without_values() const {
  auto out = former_lost();
  for (const auto s : lacking)
    if (had(s)) out.push_back(former_worker_of(s));
  return out;
}

agreed_view formed(agreed_view leaders, std::vector<frames::member> members, clock_id first_clock,
                   bool may_lose) {
  leaders.epoch = 1;
  leaders.first_clock = first_clock;
  if (may_lose && members.size() > 1) leaders.before = {leaders.seat};
  leaders.members = std::move(members);
  return leaders;
}

agreed_view view_told(const frames::view& v) {
  agreed_view out;
  out.run = v.run;
  out.epoch = v.epoch;
  out.seat = v.you;
  out.members = v.members;
  out.witnesses = v.witnesses;
  out.first_clock = v.first_clock;
  out.before = v.before.seats;
  return out;
}

bool begins_again(const agreed_view& now, const frames::next_view& next) {
  return next.first_clock == now.first_clock && !next.all_have_values &&
         std::any_of(next.members.begin(), next.members.end(),
                     [&](const auto& m) { return now.had(m.seat); });
}

agreed_view following(const agreed_view& now, const frames::next_view& next) {
  agreed_view out;
  out.run = now.run;
  out.epoch = next.epoch;
  out.seat = now.seat;
  out.members = next.members;
  out.witnesses = next.witnesses;
  out.first_clock = next.first_clock;
  out.lost = next.lost;
  out.lacking = next.lacking;
  if (begins_again(now, next))
    out.before = now.before;
  else
    for (const auto& m : now.members) out.before.push_back(m.seat);
  return out;
}

frames::next_view view_without_the_lost(const frames::next_view& newest, const seat_list& stay,
                                        version_id first,
                                        const std::map<seat_id, std::string>& lost,
                                        std::uint64_t batch) {
  auto out = newest;
  std::vector<frames::member> members;
  std::vector<double> weights;
  std::vector<std::uint32_t> replicas;
  for (std::size_t w = 0; w < out.members.size(); ++w) {
    const auto& m = out.members[w];
    if (!has_seat(stay, m.seat)) {
      out.lost.push_back(m.seat);
      continue;
    }
    members.push_back(m);
    if (out.shares.empty()) continue;
    weights.push_back(static_cast<double>(out.shares[w].samples));
    replicas.push_back(out.shares[w].replicas);
  }
  std::erase_if(out.witnesses, [&](const auto& w) {
    const bool goes = !has_seat(stay, w.seat);
    if (goes) out.lost.push_back(w.seat);
    return goes;
  });
  out.why.clear();
  for (const auto& [seat, why] : lost) {
    if (!has_seat(stay, seat)) out.lost.push_back(seat);  // or one that leaves
    out.why += (out.why.empty() ? "" : "; ") + why;
  }
  if (out.why.empty()) out.why = "all members hear each other again";
  std::sort(out.lost.begin(), out.lost.end());
  out.lost.erase(std::unique(out.lost.begin(), out.lost.end()), out.lost.end());
  out.epoch = newest.epoch + 1;
  out.first_clock = clock_id{value(first)};
  out.members = std::move(members);
  out.shares.clear();
  out.lacking.clear();
  out.given = {};  // a program that had not got it is not among those that stay
  if (weights.empty()) return out;
  for (const auto& s : shares_by_weight(out.members.size() * batch, weights, replicas))
    out.shares.push_back({s.samples, s.replicas});
  return out;
}

bool all_have_values(const seat_list& trainers, const testimonies& said) {
  return std::all_of(trainers.begin(), trainers.end(), [&](seat_id m) {
    const auto& stand = said.at(m).stand;
    return stand.whole && !stand.drained;
  });
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

bool is_among(const std::vector<frames::member>& nodes, seat_id seat) {
  return find(nodes, seat) != nodes.end();
}

std::vector<frames::member> without(const std::vector<frames::member>& of,
                                    const std::vector<frames::member>& others) {
  std::vector<frames::member> out;
  for (const auto& m : of)
    if (!is_among(others, m.seat)) out.push_back(m);
  return out;
}

}  // namespace poseidon
