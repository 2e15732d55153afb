// actors/node/newcomers.hpp
//
// Nodes that join a run that trains, as its leader sees them: which may, what they are told to get ready, and what they become
// part of when all members have drained. Until then none of them is waited for. A part of `leading`.
//
//   add -> the run, as a prospect -> join_ready -> [the plan changes the view] -> tell_next_view [-> the same again, where
//   one of them dies before that view begins] -> began
#pragma once
#include "actors/node/node_core.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// Why a node that joins cannot: of whom, and of the run.
[[nodiscard]] std::string other_replicas(std::uint32_t joiner, std::uint32_t run);

class newcomers {
 public:
  explicit newcomers(node_core& core) : core_(core) {}

  /// Why no node may join this run any more; empty: it may.
  [[nodiscard]] std::optional<std::string> objection() const;
  /// It has got a seat.
  void add(const frames::member& newcomer);
  /// The members have been told the view: those that came before that hear what to get ready, and later ones at once. `before`: as in
  /// agreed_view.
  void tell_all(const std::vector<seat_id>& before = {});
  /// Tells a node the run, as a prospect: it has got a seat, and is in no view yet. A `witness` hears nothing of what is trained.
  void tell(seat_id seat, bool witness = false) const;
  /// How many samples a second a node trains by itself: a member, as it was measured before the first view, or one that gets ready.
  void timed(seat_id seat, double samples_s);
  /// It has built what it can build. Returns  what the next view is to have; empty: it was refused, or is none of these.
  [[nodiscard]] std::optional<frames::member> ready(const frames::join_ready& f, seat_id from);
  /// They are none any more, but members of the run's first view.
  [[nodiscard]] std::vector<frames::member> take_all();
  /// Those that are, and wait for a view.
  [[nodiscard]] std::vector<frames::member> that_are_ready() const;
  /// True: it was one of these.
  [[nodiscard]] bool gone(seat_id seat, const std::string& why);

  /// The shares of the batch in a view of these members: by speed, where all have been measured; else who was there keeps its weight,
  /// and who comes gets the mean of these. Equal shares stay equal.
  [[nodiscard]] std::vector<frames::share> shares_for(
      const std::vector<frames::member>& members) const;
  /// The members have agreed on it: tells it to those who join, but for those who have heard a view that it replaces.
  void tell_next_view(const frames::next_view& next);
  /// This node leads from the next view on, which another one has told.
  void take_over();
  /// The members have agreed on this view because some are lost; `next` is as it was told. Until it has begun, those that come with it
  /// may still be left out.
  void come_with(const agreed_view& view, const frames::next_view& next);
  /// All nodes but this one come with the run's first view, which they have been told.
  void come_to_first_node();
  /// The view with those that have been told it has begun.
  void began();

  /// What a joiner is told of the run, but for its own seat.
  [[nodiscard]] frames::view run_for_joiners() const;

 private:
  struct newcomer {
    frames::member as_member;
    std::uint32_t replicas = 1;  ///< once it is ready
    bool is_ready = false;
  };
  [[nodiscard]] bool measures_speeds() const;
  [[nodiscard]] std::vector<double> weights_of(const std::vector<frames::member>& members) const;
  void remember_the_view();
  [[nodiscard]] bool has_drained(seat_id seat) const;
  void tell_view(seat_id seat, const frames::next_view& next) const;

  node_core& core_;
  std::map<seat_id, newcomer> all_;
  std::map<seat_id, double> speeds_;  // in samples/s, of members, too
  bool knows_run_ = false;            // routes and shares are decided
  frames::former_view former_;        // while the next view forms: who has drained
};

/// What is told to those that come with a view, as those hear it that are members already.
[[nodiscard]] frames::next_view next_view_of(const frames::view& told);
/// As frames::view has them.
[[nodiscard]] std::vector<std::uint8_t> numbers_of(const parameter_routes& routes);

}  // namespace poseidon
