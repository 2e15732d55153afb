// actors/node/search.hpp
//
// Members that this node has lost while all train: are they there still? It lets `seeker` dial them, now and again, for as long as
// the members have not agreed on the next view. A part of `node`.
//
// A process that has ended is proved by a connection that its machine refuses at once. Later, or after a silence, that proves
// nothing: it may have gone on without this node, and have ended then. One that is there may be in a later view: then the
// others go on without this node. Or it stands in the same view, as this node does: then they have to be linked again before they
// can agree on anything. Of two members the one with the higher seat dials, as when they met first. A witness is always linked again:
// whichever of the two knows an older view then hears the newer one, or that it is out (actors/node/witness.hpp).
#pragma once
#include "actors/cluster/seeker.hpp"
#include "actors/node/node_core.hpp"

#include <chrono>
#include <map>
#include <set>

namespace poseidon {

class search {
 public:
  explicit search(node_core& core) : core_(core) {}

  /// A member of the newest view, which has this number, is without a link: asks for it at once. `fresh`: as in link_lost.
  void lost(seat_id seat, bool fresh, std::uint64_t epoch);
  [[nodiscard]] bool misses(seat_id seat) const { return absent_.contains(seat); }
  /// It has a link again.
  void found(seat_id seat);
  /// A tick of the agreement has passed: asks for those whose turn it is. `epoch`: of the newest view.
  void tick(std::uint64_t epoch);

  enum class finding { nothing, dead, this_node_is_out, linked };
  /// Takes an answer: linked: it has a link now.
  [[nodiscard]] finding on(const sought& m, std::uint64_t epoch);
  /// It had been lost in the view of this number, and was linked again: the peer may not have noticed that, and ends the new link.
  [[nodiscard]] bool was_found(seat_id seat, std::uint64_t epoch) const {
    return epoch_ == epoch && found_.contains(seat);
  }
  void end();

 private:
  struct absent {
    bool fresh = false;
    std::chrono::steady_clock::time_point since;
    int due = 0;    // ticks from now on
    int pause = 1;  // of the next time
    bool asked = false;
  };
  void begin_anew(std::uint64_t epoch);
  void ask(seat_id seat, absent& a);
  [[nodiscard]] bool is_witness(seat_id seat) const;
  /// It is not this node that links it again: a newcomer that was lost is left out.
  [[nodiscard]] bool only_looks(seat_id seat) const;

  node_core& core_;
  handle<seeker> seeker_;
  std::uint64_t epoch_ = 0;
  std::map<seat_id, absent> absent_;
  std::set<seat_id> found_;
};

}  // namespace poseidon
