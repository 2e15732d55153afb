// tests/actors/membership/view_model.hpp
//
// A cluster without a network, to be searched: each node has the product's view_change, with its ballot_box and next_members, and a
// plane of data that is as small as it can be. All owners of shards are one: per epoch there is the newest version that any
// of them has made, and each member has the newest version that it has whole. A clock makes a version when all members of
// the view contribute and the floor is high enough; the ring holds two versions, so version v is lost when v + 2 is made.
// A node contributes to clock c when it has version c - 1, as a side branch of a net may. What a member has told, others may
// hear at any time; to hear later is to act later, so no messages are needed for it.
//
// What a node's view_change asks for is done at once: a node freezes, leaves a graph and builds the next one in no time. To do it later is
// to hear later. Ticks are events: a node's turn may come at any time, and so may the end of its patience.
//
// Some of the seats can be witnesses: they hear, promise and accept, and are in no clock.
//
// A model that finds nothing may be blind. So it can be broken on purpose (mutation), and tests require that it finds that.
#pragma once
#include "actors/membership/view_change.hpp"
#include "tests/actors/membership/version_floor.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace poseidon::view_model {

enum class mutation : std::uint8_t {
  none,
  minority_decides,        ///< two answers of five are a quorum, one of three
  ignores_accepted,        ///< a proposer makes a value of its own whatever has been accepted
  forgets_promise,         ///< an acceptor begins anew with each question
  tells_after_freezing,    ///< the stand rises after it was promised
  counts_older_epochs,     ///< gradients and words of a member that is still in an older view count
  hears_older_ballots,     ///< the box takes messages of an older view for its own
  returns_to_newest,       ///< the first clock is the greatest whole version instead of the least
  floor_ignores_youngest,  ///< the floor is that of the other members
  proofs_shrink_majority,  ///< a majority of those that are not proved dead is a quorum
  proves_without_farewell,  ///< a death counts as proved before the last words of the dead are read
  plan_waits_for_nobody,    ///< what the leader has planned holds before all have drained
  answers_as_it_trains,     ///< a node does not freeze before it promises
  follows_twice,  ///< a node that has promised hears of its own view again, and goes on in it
  // Where there is a witness.
  witness_forgets_promise,   ///< it begins anew with each question
  witness_has_first_version  ///< that it has no version is taken for version 0
};
inline constexpr std::array all_mutations{
    mutation::minority_decides,       mutation::ignores_accepted,
    mutation::forgets_promise,        mutation::tells_after_freezing,
    mutation::counts_older_epochs,    mutation::hears_older_ballots,
    mutation::returns_to_newest,      mutation::floor_ignores_youngest,
    mutation::proofs_shrink_majority, mutation::proves_without_farewell,
    mutation::plan_waits_for_nobody,  mutation::answers_as_it_trains,
    mutation::follows_twice};
[[nodiscard]] std::string to_string(mutation m);

using seat_mask = std::uint16_t;
[[nodiscard]] constexpr seat_mask bit(std::size_t seat) {
  return static_cast<seat_mask>(1u << seat);
}
[[nodiscard]] seat_list seats_of(seat_mask mask);
[[nodiscard]] seat_mask mask_of(const seat_list& seats);

inline constexpr std::size_t last_epoch = 7;
inline constexpr std::uint8_t no_version = 255;

struct view {
  std::uint64_t epoch = 0;
  seat_mask members = 0;  ///< 0: none
  std::uint8_t first = 0;
  /// Members of the view before, or of the one before that, where this one begins with the same version: the others came with it.
  seat_mask before = 0;
  bool all_have_values = false;  ///< as frames::next_view
  auto operator<=>(const view&) const = default;
};

/// A frame of a ballot, in small.
struct message {
  enum class kind : std::uint8_t { prepare, promise, accept, accepted, chosen };
  kind is{};
  std::uint64_t epoch = 0;
  ballot number, promised, accepted;
  view value;  ///< of an accept, of what is accepted with a promise, or chosen
  testimony says;
  [[nodiscard]] bool asks() const { return is == kind::prepare || is == kind::accept; }
  auto operator<=>(const message&) const = default;
};
struct post {
  seat_id from{}, to{};
  message what;
  auto operator<=>(const post&) const = default;
};
[[nodiscard]] inline message chosen(const view& v) {
  return {message::kind::chosen, v.epoch, {}, {}, {}, v, {}};
}
[[nodiscard]] std::string to_string(const post& p);
/// The epoch of a view that this says has been chosen; 0: it says another thing.
[[nodiscard]] inline std::uint64_t chosen_epoch(const post& p) {
  return p.what.is == message::kind::chosen ? p.what.epoch : 0;
}

/// What a node knows and does in one epoch; kept when it has gone on to the next.
struct chapter {
  view of;        ///< as this node has heard of it; it may be left out of it
  view accepted;  ///< as the next view
  std::uint8_t whole = no_version;
  std::uint8_t drains_at = no_version;  ///< it contributes to no clock from here on
  bool frozen = false;
  auto operator<=>(const chapter&) const = default;
};
using history = std::array<chapter, last_epoch + 1>;  // by epoch
using made_versions = std::array<std::uint8_t, last_epoch + 1>;

/// What a node hears of the others, and what is wanted, at the moment of an event.
struct senses {
  seat_mask hears = 0, dead = 0, joiners = 0, leavers = 0;
};

class node {
 public:
  /// A member of the first view, or a newcomer, whose view has no members.
  node(seat_id self, const view& first, mutation broken, seat_mask witnesses = 0);

  // Events. What is to be sent is added to `out`.
  void hear(const post& p, const senses& s, std::vector<post>& out);
  void propose(const senses& s, std::vector<post>& out);
  void look_again(const senses& s, std::vector<post>& out);
  void straggler_limit_over(const senses& s, std::vector<post>& out);
  /// It has one version more whole; a newcomer: the first.
  void reach();
  void drain_at(std::uint8_t version);

  // For the search (view_canon.cpp): states that differ in nothing that can matter are to be one state.
  /// False: however often this post arrives from now on, it changes nothing here and the answer is nothing new. Refusals are
  /// never of use: they make a proposer stop, and a proposer that does nothing more is among the states anyway.
  [[nodiscard]] bool can_use(const post& p) const;
  /// Its process ends, and its ballot with it.
  void die();
  /// From now on it does not enter a view that it has decided, because it dies while it tells it.
  void die_when_decided() { doomed_ = true; }
  /// Forgets an epoch in which no living node is any more.
  void forget(std::uint64_t epoch) { past_[epoch] = {}; }

  [[nodiscard]] seat_id self() const { return self_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] bool out() const { return out_; }
  [[nodiscard]] bool trains() const { return change_ && !out_; }
  [[nodiscard]] bool waits() const { return !change_ && !out_; }  ///< to be let in
  [[nodiscard]] bool is_witness() const { return (witnesses_ & bit(value(self_))) != 0; }
  /// Of a view's members those that train.
  [[nodiscard]] seat_list trainers_of(const view& v) const { return seats_of(trainers(v)); }
  [[nodiscard]] seat_mask trainers(const view& v) const {
    return static_cast<seat_mask>(v.members & ~witnesses_);
  }
  [[nodiscard]] seat_list witnesses_of(const view& v) const {
    return seats_of(static_cast<seat_mask>(v.members & witnesses_));
  }
  [[nodiscard]] const history& past() const { return past_; }
  [[nodiscard]] const chapter& now() const { return past_[epoch_]; }
  /// Null: it knows of no ballot on what follows its view.
  [[nodiscard]] const ballot_box* ballots() const;
  [[nodiscard]] bool drained() const {
    return is_witness() || (change_ && change_->at() == node_stage::drained);
  }
  /// It has promised, and what has been decided then is nothing that it can follow.
  [[nodiscard]] bool cannot_follow() const { return cannot_follow_; }

  friend bool operator<(const node& a, const node& b);

 private:
  chapter& page() { return past_[epoch_]; }
  [[nodiscard]] view_change new_change() const;
  [[nodiscard]] view_facts facts(const senses& s) const;
  [[nodiscard]] frames::next_view told(const view& v) const;
  [[nodiscard]] view view_of(const frames::next_view& n) const;
  [[nodiscard]] message message_of(const frame_header& f) const;
  [[nodiscard]] frame_header frame_of(const message& m) const;
  /// Proofs come before the event itself.
  void learn(const senses& s);
  void freeze(const senses& s);
  [[nodiscard]] std::optional<frames::next_view> plan(const senses& s) const;
  void note();
  void act(const senses& s, std::vector<post>& out);
  void enter(const view& v);
  void forget_promises();
  void make_key();

  seat_id self_;
  mutation broken_;
  seat_mask witnesses_;  // seats
  std::uint64_t epoch_;
  bool out_ = false, doomed_ = false, cannot_follow_ = false;
  std::optional<view_change> change_;  // empty: it has no view, or has ended
  agreed_view standing_;
  std::optional<version_floor> floor_;
  seat_mask before_heard_ = 0;  // of the view that it is being told
  history past_;
  std::string key_;  // all of change_ that can still matter
};

using nodes_view = std::span<const node* const>;  // by seat

/// Whether the owners of shards may apply the next clock of an epoch. `made`: the newest version of it.
[[nodiscard]] bool can_apply(nodes_view nodes, std::uint64_t epoch, std::uint8_t made,
                             mutation broken);
/// The newest version of an epoch, at least the view's first.
[[nodiscard]] std::uint8_t made_in(nodes_view nodes, std::uint64_t epoch,
                                   const made_versions& made);
/// Which invariant does not hold; empty: all hold.
[[nodiscard]] std::string violated(nodes_view nodes, const made_versions& made, seat_mask dead,
                                   mutation broken);

}  // namespace poseidon::view_model
