// actors/membership/view_action.hpp - what a node's view_change is told with each event, and what it asks its owner to do.
#pragma once
#include "actors/membership/next_members.hpp"
#include "actors/membership/view.hpp"
#include "messages/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace poseidon {

/// What a node knows at the moment of an event.
struct view_facts {
  const agreed_view& view;    ///< the one that this node has entered
  seat_list linked{};         ///< nodes that it has a link to
  std::uint32_t survive = 0;  ///< as membership_facts has it
  std::uint64_t batch = 0;    ///< samples of one node's net in a clock
  std::size_t versions = 1;   ///< so many of the newest whole ones are kept
  std::size_t keepers = 0;    ///< actors that give solver state away
  bool zeroes_lost_state = false;
  bool goes_forward = false;  ///< as membership_facts has it
  bool leads = false;         ///< it plans views
  bool leaves = false;        ///< its user wants it to leave the run
  bool wants_end = false;     ///< or wants any end of it
  /// The state that its view began with: `arrived` with that view, as this node did; kept `here`; or gone.
  enum class former_state { gone, here, arrived };
  former_state former = former_state::gone;
  std::function<std::optional<version_id>()> whole_version = nullptr;
  /// The layers whose solver state that view needs and no node that goes on has.
  std::function<std::vector<std::string>(const frames::next_view&)> layers_without_state = nullptr;
  /// `view`, as all are told it.
  std::function<frames::next_view()> as_told = nullptr;
};

/// What a node is to do.
namespace view_action {
struct send {
  seat_id to{};
  frame_header frame;
};
/// Make what computes end or give its work up, and links fall silent: view_change::freeze() is to follow.
struct freeze {};
/// The members have decided this view, and this node has counted the votes: those who come with it are to hear of it.
struct tell_newcomers {
  frames::next_view next;
};
/// Go on to this view: view_change::follows() is to follow. `unplanned`: it is none that this node has planned as the leader of its members.
struct follow {
  frames::next_view next;
  bool unplanned = false;
  std::vector<std::string> zeroed;  ///< layers whose solver state begins with zeros
};
/// All actors with solver state are to give it away.
struct release {};
/// What is left of the graph ends.
struct end_graph {
  enum class cause { state_is_released, former_state_is_taken, view_is_replaced };
  cause of = cause::state_is_released;
};
/// Enter the next view, and build its graph if it brings this node.
struct build {};
/// Why nothing is decided; empty: nobody is waited for. `is_news`: of other members than it was said of before.
struct show_pause {
  std::string why;
  bool is_news = false;
};
/// This node cannot go on.
struct end_run {
  enum class cause {
    left_out,           ///< the others go on with `next`, without this node
    newcomers_alone,    ///< nobody is in `next` who knows all of what it begins with
    version_is_gone,    ///< `next` begins with a version that this node has not got
    state_is_gone,      ///< ... with solver state that nobody has any more, of `layers`
    values_never_came,  ///< those that had the values of this view are gone
    told_to_end         ///< it waits for the others, and its user wants the end
  };
  cause of{};
  frames::next_view next{};
  std::vector<std::string> layers{};
};
using action = std::variant<send, freeze, tell_newcomers, follow, release, end_graph, build,
                            show_pause, end_run>;
}  // namespace view_action

}  // namespace poseidon
