// actors/node/witnesses.hpp
//
// Witnesses as the leader sees them: may one join, what it is told, and which of them the next view has. A witness has a seat and a
// vote (actors/node/witness.hpp), and is no member; so it is in no count of nodes, and nobody waits for it. A part of `leading`.
//
//   add -> the run, as a prospect, once that is known -> ready (it has links to all members) -> a planned view with it
//
// A view has one witness at most: with two the members that train could be the smaller half.
#pragma once
#include "actors/node/newcomers.hpp"
#include "actors/node/node_core.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon {

class witnesses {
 public:
  witnesses(node_core& core, const newcomers& told) : core_(core), newcomers_(told) {}

  /// Why no witness may join this run now; empty: one may.
  [[nodiscard]] std::optional<std::string> objection() const;
  /// It has got a seat.
  void add(const frames::member& witness);
  /// The members have been told the view: those that came before that hear of the run, and later ones at once.
  void tell_all();
  /// It has a link to each member. False: it is none of these.
  [[nodiscard]] bool ready(seat_id seat);
  /// It is gone, and in no view yet. False: it is none of these.
  [[nodiscard]] bool gone(seat_id seat, const std::string& why);
  /// One of the view wants to leave.
  void leaves(seat_id seat) { leaving_.insert(seat); }
  /// One is to come, or to go.
  [[nodiscard]] bool want_a_view() const { return of_next_view() != core_.view().witnesses; }
  /// By rising seat: those of the view, without those that leave, and those that are ready.
  [[nodiscard]] std::vector<frames::member> of_next_view() const;
  /// A view has begun.
  void began();

 private:
  struct waiting {
    frames::member as_member;
    bool is_ready = false;
  };
  [[nodiscard]] bool is_linked(seat_id seat) const;

  node_core& core_;
  const newcomers& newcomers_;
  std::map<seat_id, waiting> waiting_;  // for a view with them
  std::set<seat_id> leaving_;
  bool knows_run_ = false;
};

}  // namespace poseidon
