// actors/telemetry/telemetry.hpp
//
// At the end it writes the trace (--trace) and the actor graph with its message and byte counts (--graph). While the
// leader shows the run (--web), it transfers the other nodes' figures: on the leader it asks, on the others it
// answers. Reads what all actors write (cluster_view.hpp); they do not wait for it.
//
// Accepts  connect_telemetry from node   the links, once they are bound
//          control_passed   from node   watch: how often to report
//          report_arrived    from network_link   another node's report (leader)
//          report_tick       from itself
//          shut_down         from node, last of all
// Sends    send_frame        to network_link     watch to all; report to the leader, after everything that trains,
//                                                and only after the report before has left the link
// State    what it has reported; the last watch. The logs belong to the run.
// Fails    a file that cannot be written is a warning: the training's result stands. A report that does not fit is a note:
//          the page shows that node's old figures, training continues.
// Detached: it writes files.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "actors/telemetry/cluster_view.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

/// node -> telemetry, for each view.
struct connect_telemetry {
  std::vector<port<send_frame>> links;  ///< by worker, empty at self
  port<send_frame> to_leader;           ///< empty on the leader
  bool shows = false;                   ///< on the leader, with --web: asks the others
  bool watched = false;                 ///< on another node while the leader shows the run
  std::uint64_t epoch = 0;              ///< of the view: what is told is of that one
};
struct report_tick {};

struct telemetry_setup {
  seat_id self{};
  std::shared_ptr<trace_log> trace;
  std::shared_ptr<edge_book> edges;
  std::shared_ptr<cluster_view> view;
  std::filesystem::path trace_file;  ///< empty: not written
  std::filesystem::path graph_file;  ///< empty: not written
  /// JSON that the trace file holds as "poseidon", besides its spans; empty: nothing.
  std::function<std::string(const cluster_view&)> recording;
};

class telemetry : public actor<telemetry> {
 public:
  static constexpr const char* type_name = "telemetry";
  using accepts =
      messages<connect_telemetry, control_passed, report_arrived, report_tick, shut_down>;
  using sends = messages<send_frame>;

  telemetry(actor_context context, telemetry_setup setup);
  void on(const connect_telemetry& m);
  void on(const control_passed& m);
  void on(const report_arrived& m);
  void on(const report_tick&);
  void on(const shut_down& m);

 private:
  void ask();
  void answer();
  void write_file(const std::filesystem::path& path, const std::function<void()>& write);

  telemetry_setup setup_;
  until_end<connect_telemetry> ports_{this};
  report_place known_;   // to the leader
  frames::watch watch_;  // the newest; sent_ns 0: none
  std::int64_t watch_heard_ns_ = 0;
  bool ticks_ = false;
  std::weak_ptr<const std::vector<std::byte>> under_way_;  // the last report, until it is written
};

/// The measured graph as JSON: {"actors":[{name,type}],"edges":[{from,to,message,count,bytes}]}.
[[nodiscard]] std::string measured_graph_json(const edge_book& book);

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_telemetry)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::report_tick)
