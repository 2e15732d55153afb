// actors/node/node.hpp
//
// One process's part of a run: finds the other nodes, builds the actor graph from the run's specification and
// the agreed view, supervises it, and ends it in order, whatever happens, with one clear message.
//
//   leader:    start -> routes chosen, as far as they can be -> gathering until N nodes are in -> [all nodes timed,
//              shares decided] -> [links timed, routes chosen] -> building -> waiting until all are ready -> training
//   a joiner:  start -> gathering until the view comes -> building -> waiting -> training
//   then       training -> [done here] -> done everywhere -> ended
//   next view  training -> changing (graph ends) -> rebuilding -> resuming when all are ready -> training
//              (view_change.hpp; the solver trains up to the agreed clock before, and goes on after)
//   or         anything -> failing [snapshot of what is whole] -> ended
//
// Its parts are plain objects (docs/decisions/032): member has the links and the view, view_change what is agreed while it
// trains, local_run the nets and their actors, link_watch the rates; leading is what only the leader does.
//
// Accepts  start_node         from the app
//          link_accepted, peer_refused   from link_acceptor
//          view_agreed, everyone_ready, everyone_done   from coordinator (leader)
//          hold_everyone, change_agreed, everyone_drained   from coordinator (leader)
//          routes_chosen, routes_proposed   from protocol_selector (leader of several)
//          control_arrived, link_bound, link_flow, link_lost   from network_link
//          stop_decided, training_done, training_failed   from solver; data_source
//          clocks_held, training_paused   from solver, where routes change
//          history_released   from server_shard, factor_broadcast, where routes change
//          snapshot_written   from checkpointer, after a peer was lost
//          interrupted        from the app's signal thread
// Sends    connect_coordinator, member_joined, member_is_ready, member_is_done   to coordinator
//          change_wanted, member_paused   to coordinator
//          choose_routes, measure_links, probe_answered, send_rate_measured, routes_changed   to protocol_selector
//          send_frame, bind_link, close_link   to network_link
//          connect_telemetry, control_arrived (watch)   to telemetry
//          begin_training, stop_soon, finish_after, control_arrived   to solver (and control_arrived to the shard)
//          hold_clocks, pause_at, resume_training   to solver, where routes change
//          release_history    to server_shard, factor_broadcast    where routes change
//          chunk_landed       to gradient_push, factor_broadcast   the first values
//          history_arrived    to server_shard, factor_broadcast    the solver state of a resumed run, and where
//                                                                  routes have changed
//          write_snapshot     to checkpointer     after a peer was lost
//          stop_accepting     to link_acceptor
//          shut_down          to all other actors
// State    its parts; how the run will end.
// Fails    never by exception: what goes wrong becomes the result that the app prints and exits with. A frame that its
//          sender may not say (frame_rules.hpp) ends that link, and with it the run.
// Detached: it compiles nets and dials.
#pragma once
#include "actors/cluster/frame_rules.hpp"
#include "actors/cluster/member.hpp"
#include "actors/cluster/view_change.hpp"
#include "actors/core/actor.hpp"
#include "actors/node/leading.hpp"
#include "actors/node/local_run.hpp"
#include "actors/node/node_setup.hpp"
#include "actors/parameters/handover.hpp"
#include "actors/routes/link_watch.hpp"
#include "actors/telemetry/telemetry.hpp"
#include "messages/membership.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

class node : public actor<node> {
 public:
  static constexpr const char* type_name = "node";
  using accepts = messages<start_node, routes_chosen, routes_proposed, link_accepted, peer_refused,
                           view_agreed, everyone_ready, everyone_done, hold_everyone, change_agreed,
                           everyone_drained, control_arrived, link_bound, link_flow, link_lost,
                           stop_decided, training_done, training_failed, clocks_held,
                           training_paused, history_released, snapshot_written, interrupted>;
  using sends = messages<choose_routes, measure_links, probe_answered, send_rate_measured,
                         routes_changed, connect_coordinator, connect_telemetry, member_joined,
                         member_is_ready, member_is_done, change_wanted, member_paused, send_frame,
                         bind_link, close_link, begin_training, stop_soon, finish_after,
                         control_arrived, hold_clocks, pause_at, resume_training, release_history,
                         chunk_landed, history_arrived, write_snapshot, stop_accepting, shut_down>;

  node(actor_context context, node_setup setup);
  void started();
  void on_exit() override;

  // node_forming.cpp: until training begins
  void on(const start_node& m);
  void on(const routes_chosen& m);
  void on(const link_accepted& m);
  void on(const peer_refused& m);
  void on(const view_agreed& m);
  void on(const link_bound& m);
  void on(const everyone_ready& m);
  // node_changes.cpp: the next view
  void on(const link_flow& m);
  void on(const routes_proposed& m);
  void on(const hold_everyone& m);
  void on(const clocks_held& m);
  void on(const change_agreed& m);
  void on(const training_paused& m);
  void on(const everyone_drained& m);
  void on(const history_released& m);
  // node.cpp: training and its end
  void on(const control_arrived& m);
  void on(const stop_decided& m);
  void on(const training_done& m);
  void on(const everyone_done& m);
  void on(const interrupted& m);
  void on(const link_lost& m);
  void on(const training_failed& m);
  void on(const snapshot_written& m);

 private:
  friend class leading;
  // One per frame that reaches a node (frame_rules.hpp): a missing one does not compile.
  void on(const frames::view& f, worker_id from);
  void on(const frames::time_net& f, worker_id from);
  void on(const frames::net_timed& f, worker_id from);
  void on(const frames::member_ready& f, worker_id from);
  void on(const frames::worker_done& f, worker_id from);
  void on(const frames::probe& f, worker_id from);
  void on(const frames::probe_heard& f, worker_id from);
  void on(const frames::watch& f, worker_id from);
  void on(const frames::start_training& f, worker_id from);
  void on(const frames::stop_requested& f, worker_id from);
  void on(const frames::stop_after& f, worker_id from);
  void on(const frames::hold_training& f, worker_id from);
  void on(const frames::worker_paused& f, worker_id from);
  void on(const frames::change_routes& f, worker_id from);
  void on(const frames::rebuild_graph& f, worker_id from);
  void on(const frames::send_rate& f, worker_id from);
  void on(const frames::gather_history& f, worker_id from);
  void on(const frames::worker_report& f, worker_id from);

  void guarded(const std::function<void()>& step);
  [[nodiscard]] member_setup membership();
  [[nodiscard]] member_context here();
  void note_shares();
  void take_number_of_replicas(const frames::view& v);
  void build();
  void spawn_graph();
  void bind_if_complete();
  void connect();
  void show_first_values();
  void give_first_values();
  void give(const std::vector<history_piece>& pieces, version_id version);
  void begin();
  void take_next_change();
  void follow(const link_watch::advice& a);
  [[nodiscard]] bool waits_for_a_rise() const;
  void hold();
  void take_pause(const member_paused& m);
  void take_change(const frames::change_routes& m);
  void leave_graph();
  void rebuild();
  void resume();
  void refuse(worker_id from, const std::string& why);
  void an_actor_died(const caf::down_msg& m);
  [[nodiscard]] caf::error a_handler_threw(const std::exception_ptr& thrown);
  void fail(std::string text, int exit_code);
  void close(node_result result);
  void end_run(node_result result);

  [[nodiscard]] const agreed_view& view() const { return member_.view(); }
  [[nodiscard]] bool trains() const { return is_running(phase_); }

  node_setup setup_;
  run_phase phase_ = run_phase::starting;
  member member_;
  view_change change_;
  local_run run_;
  link_watch watch_;
  std::size_t links_bound_ = 0;
  bool watched_ = false;  // the leader shows the run
  handle<telemetry> telemetry_;
  std::shared_ptr<void> first_values_shown_;
  std::unique_ptr<leading> leading_;  // null: another node leads, or this node is alone
  node_result result_;
  std::string goodbye_;  // what the peers hear; empty: as planned
};

}  // namespace poseidon
