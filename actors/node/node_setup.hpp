// actors/node/node_setup.hpp - what a node is told when it is spawned, and how its run ends.
#pragma once
#include "actors/client/program.hpp"
#include "actors/core/edges.hpp"
#include "actors/core/trace.hpp"
#include "actors/links/network.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/run/view_shares.hpp"
#include "actors/telemetry/cluster_view.hpp"
#include "data/batch_shares.hpp"
#include "models/plan/lossy_choice.hpp"
#include "models/plan/routes.hpp"
#include "models/plan/view_schedule.hpp"
#include "models/plan/wire_choice.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// How a node's run ended.
struct node_result {
  int exit_code = 0;
  std::string error;  ///< one line for the user; empty when all went as planned
  /// Where it can join again the nodes that have gone on without it; empty: they have not.
  std::vector<host_port> others = {};
  /// Nets and replicas; actors that still end refer to them.
  std::shared_ptr<const void> compiled = nullptr;
};

/// How a node reaches the others.
struct cluster_setup {
  std::optional<host_port> listen;  ///< of a node that begins a run which others can join
  /// Addresses of nodes, of which any can be the leader. Not empty: this node joins.
  std::vector<host_port> join;
  bool as_witness = false;  ///< it joins to vote on views, and trains nothing (witness.hpp)
  std::string token;
  std::shared_ptr<const tls_context> tls;  ///< empty: links are not encrypted
  /// A peer that is silent for this long is lost. Where the others go on without it, and `least` is less, the limit of each link
  /// follows what it has shown (silence_watch.hpp).
  std::chrono::milliseconds silence_limit{2000}, least_silence_limit{2000};
  /// A run in which nothing is computed for this long, and no values come, ends. 0: no limit.
  std::chrono::milliseconds progress_limit{std::chrono::minutes{10}};
  double link_mbit_s = 0;    ///< limit of each link; 0: unlimited
  double budget_mbit_s = 0;  ///< limit of each link for gradients and parameters; 0: unlimited
  std::shared_ptr<node_network> network = std::make_shared<node_network>();
  std::shared_ptr<const wake_up> stop;  ///< set with `interrupted`: ends the waits of dialing
};

/// What the first node chooses for all of them.
struct leader_choices {
  route_option routes;
  wire_option wire;
  /// The roughest way that may be chosen; none: what `wire` says.
  lossiness lossy;
  share_option shares;
  /// Empty: not given. A node that joins compares it with the run's.
  std::optional<batch_rule> global_batch;
  double node_mbit_s = 0;  ///< rate of its links together, for choosing routes; 0: not known
  /// What --views says, but for the view that the run begins with. Empty and by_schedule: the members never change.
  view_schedule views;
  bool by_schedule = false;
};

/// What the leader's training begins with; both empty: values drawn by the seed.
struct first_files {
  std::vector<std::filesystem::path> weights;
  std::filesystem::path resume;    ///< .solverstate
  std::uint64_t global_batch = 0;  ///< of the run that is resumed: solver_state::global_batch
};

/// What is recorded of a run, and where it goes.
struct run_records {
  /// `view` has a reader (--web): spans are recorded, the leader asks the other nodes for theirs.
  bool shows = false;
  std::shared_ptr<cluster_view> view;
  std::shared_ptr<trace_log> trace;
  std::filesystem::path trace_file, graph_file;  ///< empty: none
  /// JSON that the trace file holds as "poseidon", besides its spans; empty: nothing.
  std::function<std::string(const cluster_view&)> recording;
};

struct node_setup {
  std::optional<run_definition> run;  ///< empty: a joiner, which is told
  node_spec node;
  /// What is around this node and computes the gradients; null: the node does, with nets.
  std::shared_ptr<program> around;
  cluster_setup cluster;
  leader_choices choices;
  first_files first;
  run_records records;
  std::shared_ptr<progress> display;
  std::shared_ptr<edge_book> edges;
  /// What started this node, without its first_files, to tell the user how to go on; empty: a joiner.
  std::string command;
  std::function<void(node_result)> ended;  ///< called once
};

/// How a node shows what takes long.
[[nodiscard]] inline task_display display_of(const node_setup& s) {
  return [display = s.display](long_task task) { return display->working(std::move(task)); };
}

}  // namespace poseidon
