// actors/parameters/peer_window.hpp
//
// Which frames one peer can send next: those of chunks that it owns or that this node owns, with clocks and versions one
// after the other, none before the values that it is computed from. Any other frame ends the link (network_link.hpp), so
// the actors behind the link trust what they receive. One per link; called by its receiver's thread.
#pragma once
#include "actors/links/link_binding.hpp"
#include "actors/parameters/factor_store.hpp"
#include "actors/parameters/lowrank_turns.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "messages/wire/codec.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace poseidon {

struct peer_window_setup {
  worker_id self{}, peer{};  ///< peer: no_worker, if it has left and gives its solver state away
  clock_id first_clock{};    ///< of the run
  by_id<parameter_id, bool> learned;
  std::shared_ptr<const parameter_store> store;
  factor_stores factors;
  std::uint64_t staleness = 0;
  /// The partition of the view before, where training goes on with the values that its members have. Null: there was none, and
  /// the leader, worker 0, sends the first values and the solver state to all nodes.
  std::shared_ptr<const partition> before = nullptr;
  worker_id former_peer = no_worker;  ///< the peer in that view; no_worker: it was no member
  /// Its members give this node all values: it was none of them, or lacks the version.
  bool joins = false;
  /// Of that view, or without the version: others give what they would have given.
  std::vector<worker_id> lost = {};
  bool zeroes_lost_state = false;        ///< or zeros in place of what nobody has any more
  by_id<parameter_id, bool> given = {};  ///< worker 0's program gives them; empty: none
  /// Where there was no view before: this node has the first values already, and nobody sends them; empty: none.
  by_id<parameter_id, bool> has_first = {};
  /// What the leader sends of shared state, in this order.
  std::vector<frames::shared_state> shared = {};
  all_lowrank_turns lowrank = {};
};

class peer_window : public frame_gate {
 public:
  explicit peer_window(peer_window_setup setup);

  /// Checks the frame and remembers it.
  /// Errors   bad_frame for another node's chunk, and for a clock or version that has finished, has arrived
  ///          before, or cannot have been reached yet.
  void admit(const frame_header& h) override;

 private:
  void take(const frames::push_gradient& f);
  void take(const frames::gradient_squares& f);
  void take(const frames::fresh_parameters& f);
  void take(const frames::shared_state& f);
  void take(const frames::summed_gradient& f);
  void take(const frames::install_history& f);
  void take(const frames::history& f);
  void take(const frames::factors& f);
  void take(const frames::lowrank_factor& f);
  void take(const frames::worker_report& f);
  [[nodiscard]] const chunk& at(chunk_id id) const;
  /// Whether the first values of a chunk come from this peer.
  [[nodiscard]] bool gives_first_values(chunk_id id) const;
  [[nodiscard]] std::uint64_t newest_version() const;
  [[nodiscard]] bool may_give(const frames::install_history& f) const;
  void require_owner(std::string_view kind, chunk_id id, worker_id owner) const;

  peer_window_setup setup_;
  by_id<chunk_id, std::uint64_t> next_gradient_, next_version_;
  std::uint64_t next_squares_;
  std::size_t next_shared_ = 0;  // of setup_.shared
  struct factor_turn {
    std::uint64_t clock = 0, first = 0;
    std::uint32_t rows = 0;  // the clock's, once a frame of it has arrived
  };
  struct pieces_of_state {
    std::optional<std::uint64_t> version;
    std::set<std::pair<chunk_id, std::uint32_t>> arrived;  // chunk and slot
  };
  pieces_of_state gathered_;
  std::map<layer_id, factor_turn> next_factors_;
  std::map<layer_id, std::uint64_t> next_lowrank_;  // steps, as lowrank_turns counts them
  // By test net, -1 for training: the least clock that has not been reported.
  std::map<std::int32_t, std::uint64_t> next_report_;
};

}  // namespace poseidon
