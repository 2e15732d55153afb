// actors/node/node.hpp
//
// One process's part of a run: finds the other nodes, builds the actor graph from the run's specification and
// the agreed view, supervises it, and ends it in order, whatever happens, with one clear message.
//
//   leader:    starting -> routes chosen, as far as they can be -> gathering until N nodes are in -> [all nodes timed,
//              shares decided] -> [links timed, routes chosen] -> building -> waiting until all are ready -> training
//   a joiner:  starting -> gathering until the view comes -> building -> waiting -> training
//   then       training -> [done here] -> done everywhere -> ended
//   next view  training -> draining up to the agreed clock -> drained -> releasing, ending (the graph) -> rebuilding -> resuming when all
//              are ready -> training; view_change.hpp has the whole diagram
//   or         anything -> failing [snapshot of what is whole] -> ended
//
// It only hears, asks the part that the message is for, and passes on what that answers. Its parts are plain objects
// (docs/decisions/032) that share a node_core: leading or joining until there is a view, assembly (the graph and its links),
// value_sender (what training begins with), changing (to the next view), rates (of links), run_end; frame_desk for what other
// nodes say, leader_line for what the leader is to hear.
//
// Accepts  start_node         from the app
//          link_accepted, peer_refused   from link_acceptor
//          routes_chosen, routes_proposed   from protocol_selector (leader of several)
//          factors_offered    from caller (leader)
//          goes_on_without    from caller
//          control_arrived, link_bound, link_flow, link_lost   from network_link
//          stop_decided, training_done, training_failed   from solver; data_source
//          clocks_held, training_paused   from solver, caller, where routes change
//          clocks_given_up    from solver, where a member is lost
//          history_released   from server_shard, factor_broadcast, where routes change
//          snapshot_written   from checkpointer, after a peer was lost
//          sought             from seeker, while a lost member is looked for
//          interrupted        from the app's signal thread
//          look_at_progress, look_at_agreement, look_at_leavers, leavers_collected, dial_again   from itself
// Sends    choose_routes, choose_by_offers, measure_links, probe_answered, send_rate_measured, routes_changed   to protocol_selector
//          send_frame, bind_link, close_link   to network_link
//          connect_telemetry, control_passed (watch)   to telemetry
//          begin_training, stop_soon, snapshot_soon, finish_after, control_passed   to solver (and control_passed to the shard)
//          hold_clocks, pause_at, resume_training   to solver, caller, where the view changes
//          give_up_clocks, go_back   to solver (and go_back to checkpointer)   where a member is lost
//          release_history    to server_shard, factor_broadcast    where routes change
//          chunk_landed       to gradient_push, factor_broadcast   the first values
//          history_inherited  to server_shard, factor_broadcast    the solver state of a resumed run, and where
//                                                                  routes have changed
//          floor_reached      to checkpointer     all others wait for this node, or the run ends
//          write_snapshot     to checkpointer     after a peer was lost
//          stop_accepting     to link_acceptor
//          seek, stop_seeking   to seeker
//          training_failed    to itself          its program has trained something else than the others
//          shut_down          to all other actors
// State    its parts; how the run will end.
// Fails    never by exception: what goes wrong becomes the result that the app prints and exits with. A frame that its
//          sender may not say (frame_rules.hpp) ends that link, and with it the run.
// Detached: it compiles nets and dials.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/node/assembly.hpp"
#include "actors/node/changing.hpp"
#include "actors/node/frame_desk.hpp"
#include "actors/node/joining.hpp"
#include "actors/node/leader_line.hpp"
#include "actors/node/leavers.hpp"
#include "actors/node/node_core.hpp"
#include "actors/node/progress_watch.hpp"
#include "actors/node/rates.hpp"
#include "actors/node/route_file.hpp"
#include "actors/node/run_end.hpp"
#include "actors/node/search.hpp"
#include "actors/node/value_sender.hpp"
#include "messages/node.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace poseidon {

/// To itself, now and then: does training get on?
struct look_at_progress {};
/// To itself: a member is lost, and the others have not agreed yet on a view without it.
struct look_at_agreement {};
/// To itself: are those that have left still needed?
struct look_at_leavers {};
/// To itself: the members that leave have had time to say so, in the view of `epoch`.
struct leavers_collected {
  std::uint64_t epoch = 0;
};
/// To itself: the leader was just being replaced when this node dialed.
struct dial_again {};

class node : public actor<node> {
 public:
  static constexpr const char* type_name = "node";
  using accepts =
      messages<start_node, routes_chosen, routes_proposed, factors_offered, link_accepted,
               peer_refused, leavers_collected, control_arrived, link_bound, link_flow, link_lost,
               stop_decided, training_done, training_failed, goes_on_without, clocks_held,
               look_at_progress, look_at_agreement, look_at_leavers, sought, dial_again,
               training_paused, clocks_given_up, history_released, snapshot_written, interrupted>;
  using sends =
      messages<choose_routes, choose_by_offers, measure_links, probe_answered, send_rate_measured,
               routes_changed, connect_telemetry, send_frame, bind_link, close_link, begin_training,
               stop_soon, snapshot_soon, finish_after, control_passed, hold_clocks, pause_at,
               resume_training, give_up_clocks, go_back, release_history, chunk_landed,
               history_inherited, write_snapshot, floor_reached, stop_accepting, seek, stop_seeking,
               training_failed, shut_down>;

  node(actor_context context, node_setup setup);
  void started();
  /// After each message: does what the plan of the views asks for.
  void handled();
  void ended();

  // until training begins
  void on(const start_node& m);
  void on(const dial_again& m);
  void on(const routes_chosen& m);
  void on(const link_accepted& m);
  void on(const peer_refused& m);
  void on(const link_bound& m);
  // the next view
  void on(const link_flow& m);
  void on(const routes_proposed& m);
  void on(const factors_offered& m);
  void on(const clocks_held& m);
  void on(const training_paused& m);
  void on(const clocks_given_up&);
  void on(const leavers_collected& m);
  void on(const history_released& m);
  // training and its end
  void on(const control_arrived& m);
  void on(const stop_decided& m);
  void on(const training_done& m);
  void on(const interrupted& m);
  void on(const link_lost& m);
  void on(const training_failed& m);
  void on(const goes_on_without& m);
  void on(const snapshot_written& m);
  void on(const look_at_progress&);
  void on(const look_at_agreement&);
  void on(const look_at_leavers&);
  void on(const sought& m);

 private:
  // What the leader's plan asks for, and what a node that is alone does without one.
  void act_on(const plan::agree_on_first_view& a);
  void act_on(const plan::begin_view&);
  void act_on(const plan::hold_all&);
  void act_on(const plan::drain_all& a);
  void act_on(const plan::others_wait& a);
  void act_on(const plan::propose_view& a);
  void act_on(const plan::collect_leavers& a);
  void act_on(const plan::end_run&);
  void act_on(const plan::all_are_done&) { close(); }
  // What the next view asks for (actors/membership/view_change.hpp).
  void act_on(const view_action::send& a) { core_.members.send(a.to, {a.frame, {}, 0}); }
  void act_on(const view_action::freeze&) { changing_.freeze(facts()); }
  void act_on(const view_action::tell_newcomers& a);
  void act_on(const view_action::follow& a);
  void act_on(const view_action::release&) { changing_.release(); }
  void act_on(const view_action::end_graph& a) { changing_.end_graph(a.of); }
  void act_on(const view_action::build&);
  void act_on(const view_action::show_pause& a);
  void act_on(const view_action::end_run& a);
  void do_actions();
  /// What view_change is told with each event.
  [[nodiscard]] view_facts facts() const;
  /// Runs a step; what it throws is the user's to read, not a crash.
  template <class Step>
  void guarded(Step step) {
    if (end_.fails(step)) close();
  }
  void fail(std::string text, int exit_code) {
    if (end_.fail(std::move(text), exit_code)) close();
  }
  void give_up_waiting(const std::string& paused, const char* why, bool leaves);
  void build();
  void stands();
  void asked_to_leave(const link_connection& c);
  void asked_to_go_on(const link_connection& c);
  bool leave(int signal, const std::string& why);
  void say_what_is_wanted(const std::string& why);
  void watch_progress();
  void watch_leavers();
  void begin();
  void propose();
  void leave_to_themselves(const frames::next_view& next);
  [[nodiscard]] bool may_go_on_without(const link_lost& m);
  [[nodiscard]] bool takes_part() const;
  [[nodiscard]] bool is_voting_witness(seat_id seat) const;
  void member_lost(const link_lost& m);
  void member_found(seat_id seat);
  void lose(const link_lost& m);
  void link_is_silent(seat_id peer);
  void has_left(view_change::task task);
  void left_out(const std::string& why);
  void fail_alone(const std::string& text, int exit_code);
  void member_failed(seat_id seat, const std::string& why);
  [[nodiscard]] bool is_news(const link_lost& m);
  void note_newcomers();
  void go_on_without(const link_lost& m, frames::goodbye::cause of);
  [[nodiscard]] bool is_released(const link_lost& m) const;
  void agree();
  void report_missing();
  void find_witnesses();
  void newcomer_lost(const link_lost& m);
  void begin_as_told(void (node::*begins)());
  void resume();
  void an_actor_died(const caf::down_msg& m);
  void close();
  void end_run();

  [[nodiscard]] const agreed_view& view() const { return core_.view(); }

  node_core core_;
  joining joining_{core_, [this] { tell_self(dial_again{}, std::chrono::milliseconds{250}); }};
  assembly assembly_{core_};
  value_sender values_{core_};
  changing changing_{core_, assembly_, values_};
  search search_{core_};
  std::optional<plan::propose_view> drained_;  // what is asked for has not been proposed yet
  static constexpr std::size_t most_lost_early = 64;
  // Newcomers, before this node knew of the view with them.
  std::map<seat_id, link_lost> lost_early_;
  bool agrees_ = false;  // a look_at_agreement is under way
  // Have failed, or left, by themselves: what their links still say counts for nothing.
  std::set<seat_id> gone_;
  std::optional<std::pair<std::uint64_t, std::string>> last_failure_;  // the clock, and the line
  std::map<seat_id, std::uint64_t> came_;  // newcomers, and the clock that they came with
  rates rates_{core_};
  route_file route_file_{core_};
  progress_watch progress_{core_};
  run_end end_{core_};
  leader_line leader_{core_};
  leavers leavers_{core_};
  bool looks_at_leavers_ = false;  // a look_at_leavers is under way
  bool leader_changed_ = false;    // with the view that is being built
  bool leaves_ = false;            // its program has left, and the others may go on
  bool waits_to_go_ = false;       // its user has sent a signal while it was about to join
  bool looks_ = false;             // a look_at_progress is under way
  frame_desk desk_{core_, joining_, leader_, assembly_, changing_, rates_, end_};
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::look_at_progress)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::look_at_agreement)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::look_at_leavers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::leavers_collected)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::dial_again)
