// actors/node/node.hpp
//
// One process's part of a run: finds the others, builds the actor graph from the run's specification and
// the agreed view, supervises it, and ends it in order, whatever happens, with one clear message.
//
//   worker 0:  start -> routes chosen, as far as they can be -> gathering until N nodes are in -> [all nodes timed,
//              shares decided] -> [links timed, routes chosen] -> building -> waiting until all are ready -> training
//   a joiner:  start -> gathering until the view comes -> building -> waiting -> training
//   then       training -> [done here] -> done everywhere -> ended
//   routes     training -> changing (graph ends) -> building -> waiting until all are ready -> training
//              (node_routes.cpp; the solver trains up to the agreed clock before, and goes on after)
//   or         anything -> failing [snapshot of what is whole] -> ended
//
// Accepts  start_node         from the app
//          link_accepted, peer_refused   from link_acceptor
//          view_agreed, everyone_ready, everyone_done   from coordinator (worker 0)
//          hold_everyone, change_agreed, everyone_drained   from coordinator (worker 0)
//          routes_chosen, routes_proposed   from protocol_selector (worker 0 of several)
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
//          shut_down          to everybody else
// State    the connections made so far, then the graph; how the run will end.
// Fails    never by exception: what goes wrong becomes the result that the app prints and exits with.
// Detached: it compiles nets and dials.
#pragma once
#include "actors/cluster/coordinator.hpp"
#include "actors/cluster/frame_rules.hpp"
#include "actors/core/actor.hpp"
#include "actors/links/network.hpp"
#include "actors/node/training_graph.hpp"
#include "actors/routes/bandwidth_probe.hpp"
#include "actors/routes/protocol_selector.hpp"
#include "actors/routes/send_rate_meter.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/run/throughput_probe.hpp"
#include "actors/telemetry/telemetry.hpp"
#include "messages/membership.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// How a node's run ended.
struct node_result {
  int exit_code = 0;
  std::string error;                     ///< one line for the user; empty when all went as planned
  std::shared_ptr<const void> compiled;  ///< nets and replicas; actors that still end refer to them
};

struct node_setup {
  std::optional<run_definition> run;  ///< empty: a joiner, who is told
  node_spec node;
  std::optional<host_port> listen;  ///< worker 0 of several nodes
  std::optional<host_port> join;
  std::string token;
  double link_mbit_s = 0;    ///< 0: unlimited
  double budget_mbit_s = 0;  ///< of each link, for gradients and parameters; 0: unlimited
  route_option routes;       ///< worker 0 of several nodes
  wire_option wire;          ///< worker 0 of several nodes
  share_option shares;       ///< worker 0 of several nodes
  double node_mbit_s = 0;    ///< its links together, for choosing routes; 0: not known
  std::vector<std::filesystem::path> weights;  ///< first values, worker 0
  std::filesystem::path resume;                ///< .solverstate, worker 0
  std::filesystem::path trace_file, graph_file;
  /// What the trace file holds besides its spans, as members of a JSON object; empty: nothing.
  std::function<std::string(const cluster_view&)> recording;
  bool shows =
      false;  ///< somebody looks at `view` (--web): spans are recorded, worker 0 asks the others for theirs
  std::shared_ptr<progress> display;
  std::shared_ptr<node_network> network = std::make_shared<node_network>();
  std::shared_ptr<const wake_up> stop;  ///< set with `interrupted`: ends the waits of dialing
  std::shared_ptr<edge_book> edges;
  std::shared_ptr<trace_log> trace;
  std::shared_ptr<cluster_view> view;
  std::function<void(node_result)> ended;  ///< called once
};

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
  void on(const start_node& m);
  void on(const routes_chosen& m);
  void on(const routes_proposed& m);
  void on(const link_accepted& m);
  void on(const peer_refused& m);
  void on(const view_agreed& m);
  void on(const everyone_ready& m);
  void on(const everyone_done& m);
  void on(const hold_everyone& m);
  void on(const change_agreed& m);
  void on(const everyone_drained& m);
  void on(const control_arrived& m);
  void on(const link_bound& m);
  void on(const link_flow& m);
  void on(const link_lost& m);
  void on(const stop_decided& m);
  void on(const training_done& m);
  void on(const training_failed& m);
  void on(const clocks_held& m);
  void on(const training_paused& m);
  void on(const history_released& m);
  void on(const snapshot_written& m);
  void on(const interrupted& m);
  void started();
  void on_exit() override;

 private:
  /// One change of routes, from its being agreed until the first clock after it begins.
  struct route_change {
    clock_id clock{};
    std::vector<std::uint8_t> routes;
    std::string why;
    std::optional<training_paused> drained;   // the solver has paused
    std::vector<caf::actor_addr> leaving;     // of the old graph
    std::size_t histories_missing = 0;        // of those who keep solver state
    std::shared_ptr<const partition> before;  // and what it was cut by
    std::vector<std::shared_ptr<const chunk_histories>> histories;
    std::chrono::steady_clock::time_point stood_since;
  };

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
  void refuse(worker_id from, const std::string& why);
  void choose();
  void measure_links_of_all();
  void ask_speeds();
  void take_speed(worker_id from, const node_speed& speed);
  void note_shares();
  void take_number_of_replicas(const frames::view& v);
  [[nodiscard]] bool replicas_fit() const;
  void listen_for_nodes();
  void join_cluster();
  void tell_view();
  [[nodiscard]] bool builds() const {
    return phase_ == run_phase::building || phase_ == run_phase::rebuilding;
  }
  void describe_view(std::uint64_t epoch) const;
  void open(std::uint32_t worker, const link_connection& c);
  void build();
  void spawn_graph();
  void show_facts();
  void bind_if_complete();
  void connect();
  void show_first_values();
  [[nodiscard]] task_display shown() const;
  [[nodiscard]] std::shared_ptr<const link_binding> bound_to(std::uint32_t worker) const;
  [[nodiscard]] handshake_options shaking(link_identity self) const;
  void start_acceptor(link_identity self);
  void give_first_values();
  [[nodiscard]] bool trains() const {
    return phase_ == run_phase::training || phase_ == run_phase::changing ||
           phase_ == run_phase::rebuilding || phase_ == run_phase::resuming;
  }
  void hold();
  [[nodiscard]] bool waits_for_a_rise() const;
  void take_round(const bandwidth_probe::round& r);
  void time_links(std::chrono::steady_clock::time_point now);
  void take_timing(worker_id from, std::uint32_t round);
  void tell_rate(double mbit_s, bool probed);
  void take_stand(const member_paused& m);
  void take_change(const frames::change_routes& m);
  void leave_graph();
  void one_has_left(const caf::actor_addr& who);
  void rebuild();
  void go_on();
  void hand_over_history();
  void announce_next_change();
  void take_next_change();
  void broadcast(const frame_header& header);
  void to_leader(const frame_header& header);
  void describe_traffic();
  void an_actor_died(const caf::down_msg& m);
  [[nodiscard]] caf::error a_handler_threw(const std::exception_ptr& thrown);
  void fail(std::string text, int exit_code);
  void close(node_result result);
  void end_run(node_result result);
  [[nodiscard]] std::uint64_t whole_version() const;
  [[nodiscard]] std::string name_of(worker_id w) const;

  node_setup setup_;
  run_phase phase_ = run_phase::starting;
  worker_id self_ = no_worker;
  worker_id leader_{0};
  std::string address_;                 // where it listens
  std::vector<std::string> members_;    // by worker, once there is a view
  std::vector<link_connection> early_;  // joiners that dialled before this one had its view
  std::map<std::uint32_t, handle<network_link>> links_;
  std::map<std::uint32_t, std::shared_ptr<const link_counters>> counters_;  // lost links' too
  handle<link_acceptor> acceptor_;
  handle<coordinator> coordinator_;
  handle<protocol_selector> selector_;
  bool routes_need_rate_ = false;
  std::vector<route_decision> decisions_;  // for whoever wants to know why
  bool watched_ = false;                   // the first node shows the run
  std::size_t links_bound_ = 0;
  std::uint64_t batch_ = 0;                      // worker 0: of the net, on one node
  std::map<worker_id, node_speed> speeds_;       // worker 0, where shares are not to be equal
  std::map<worker_id, std::uint32_t> replicas_;  // worker 0: of the others, as they are ready
  handle<telemetry> telemetry_;
  /// By chunk, for the links' trace; filled before the first chunk travels.
  std::shared_ptr<std::vector<std::string_view>> chunk_layers_ =
      std::make_shared<std::vector<std::string_view>>();
  std::shared_ptr<std::vector<std::string_view>> layer_names_ =
      std::make_shared<std::vector<std::string_view>>();
  std::shared_ptr<compiled_run> compiled_;
  std::unique_ptr<training_graph> graph_;
  lasting_actors lasting_;      // of graph_
  std::uint64_t began_at_ = 0;  // the run's first clock
  std::optional<route_change> change_;
  std::optional<frames::change_routes> next_change_;
  std::shared_ptr<void> first_values_shown_;
  send_rate_meter send_rate_;
  std::optional<bandwidth_probe> timing_;  // while training; the last one, or that under way
  std::chrono::steady_clock::time_point time_links_at_{};
  std::map<std::uint64_t, parameter_routes> later_routes_;  // by first clock, as --routes says
  node_result result_;
  std::string goodbye_;  // what the peers hear; empty: as planned
};

}  // namespace poseidon
