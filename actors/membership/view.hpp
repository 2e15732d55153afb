// actors/membership/view.hpp
//
// What all nodes agree on: who takes part, who leads, and from which clock on. A value; pure
// functions lead from one view to the next.
//
// A member keeps its seat for as long as it takes part; its worker id is its place among the members of one view, which
// gradients are added by. The member with the lowest seat, which has taken part longest, leads: it is worker 0 of every view.
// A witness has a seat and no worker: it votes on the next view, and is no member.
#pragma once
#include "actors/membership/view_rules.hpp"
#include "messages/frames.hpp"
#include "messages/wire/codec.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace poseidon {

struct agreed_view {
  std::uint64_t epoch = 0;                ///< rises with every view; 0: this node has none yet
  std::uint64_t run = 0;                  ///< as in link_identity
  seat_id seat = no_seat;                 ///< this node's
  std::vector<frames::member> members;    ///< by worker; empty: this node has no view yet
  std::vector<frames::member> witnesses;  ///< by rising seat
  clock_id first_clock{};                 ///< the view holds from this clock on
  /// Members of the view before, by worker. Of the first view of several nodes: the first node, which has what training begins
  /// with; empty where members may not be lost, and where there are no others.
  std::vector<seat_id> before;
  std::vector<seat_id> lost;     ///< of `before`, and of views between: gone without having left
  std::vector<seat_id> lacking;  ///< members that are given the first version by the others
  /// This node's, while it has no members: seat 0 leads.
  seat_id first_leader{0};

  [[nodiscard]] seat_id leader() const {
    return members.empty() ? first_leader : members.front().seat;
  }
  [[nodiscard]] bool leads() const { return seat == leader(); }
  /// This node's place; no_worker: it is no member. The first leader is worker 0 before it has members, too.
  [[nodiscard]] worker_id self() const;
  /// no_worker: it is no member.
  [[nodiscard]] worker_id worker_of(seat_id s) const;
  [[nodiscard]] bool has(seat_id s) const { return worker_of(s) != no_worker; }
  [[nodiscard]] bool has_witness(seat_id s) const;
  /// Its place in the view before; no_worker: it was no member of that.
  [[nodiscard]] worker_id former_worker_of(seat_id s) const;
  [[nodiscard]] bool had(seat_id s) const { return former_worker_of(s) != no_worker; }
  /// Places in the view before of those that are lost.
  [[nodiscard]] std::vector<worker_id> former_lost() const;
  /// It came with this view, and gets all values when that begins.
  [[nodiscard]] bool brought(seat_id s) const { return !before.empty() && has(s) && !had(s); }
  /// Whether it is given all values when the view begins.
  [[nodiscard]] bool is_given_values(seat_id s) const;
  /// Places in the view before of those that give none: they are lost, or are given values themselves.
  [[nodiscard]] std::vector<worker_id> former_without_values() const;
  /// The run's first view, and no other one has taken its place.
  [[nodiscard]] bool is_first() const { return epoch <= 1; }
  [[nodiscard]] seat_id seat_of(worker_id w) const { return members.at(value(w)).seat; }
  /// "worker 2 (10.0.0.7:7600)", by seat; "witness 3 (10.0.0.9:7600)"; without the address where it is neither.
  [[nodiscard]] std::string name_of(seat_id s) const;
  /// Seats of all other members.
  [[nodiscard]] std::vector<seat_id> others() const;
  /// "view 1: worker 0 (a:7600), this node": a line for each member, and for each witness.
  [[nodiscard]] std::vector<std::string> lines() const;
};

/// The first leader's, before it has members.
[[nodiscard]] agreed_view view_of_leader(clock_id first_clock = {});
/// The leader's, when all nodes are in. `may_lose`: some of them may be lost before it begins, or in its first clock.
[[nodiscard]] agreed_view formed(agreed_view leaders, std::vector<frames::member> members,
                                 clock_id first_clock, bool may_lose);
/// A joiner's, as the leader tells it.
[[nodiscard]] agreed_view view_told(const frames::view& v);
/// `next` begins with the version that `now` began with, so no clock of that has been trained, or all of it is trained again: members of the
/// view before that give values and solver state once more, if any are left.
[[nodiscard]] bool begins_again(const agreed_view& now, const frames::next_view& next);
/// The view that follows. Where `now` begins again, it comes after the same view as that.
[[nodiscard]] agreed_view following(const agreed_view& now, const frames::next_view& next);

/// The newest view without those that do not stay. `lost`: of whom this node knows that they are lost, and why; some of them may have
/// left already, and some may be heard again. `batch`: the samples of one node's net, for the shares of the batch. Where no member of
/// it lacks a value of iteration 0, it says so.
[[nodiscard]] frames::next_view view_without_the_lost(const frames::next_view& newest,
                                                      const seat_list& stay, version_id first,
                                                      const std::map<seat_id, std::string>& lost,
                                                      std::uint64_t batch);

/// All of these have the first version whole, and do not just build a view that begins with it: they need no values.
[[nodiscard]] bool all_have_values(const seat_list& trainers, const testimonies& said);

/// By rising seat, as members of a view are.
[[nodiscard]] seat_list seats_of(const std::vector<frames::member>& members);
/// Those that decide what follows this view: its members and its witnesses.
[[nodiscard]] seat_list voters_of(const frames::next_view& view);
/// Whether one of these has the seat.
[[nodiscard]] bool is_among(const std::vector<frames::member>& nodes, seat_id seat);
/// Those of `of` that are not among `others`.
[[nodiscard]] std::vector<frames::member> without(const std::vector<frames::member>& of,
                                                  const std::vector<frames::member>& others);

}  // namespace poseidon
