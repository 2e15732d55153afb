// actors/node/node_setup.hpp - what a node is told when it is spawned, and how its run ends.
#pragma once
#include "actors/core/edges.hpp"
#include "actors/core/trace.hpp"
#include "actors/links/network.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/telemetry/cluster_view.hpp"
#include "data/batch_shares.hpp"
#include "models/plan/routes.hpp"
#include "models/plan/wire_choice.hpp"

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
  std::string error;                     ///< one line for the user; empty when all went as planned
  std::shared_ptr<const void> compiled;  ///< nets and replicas; actors that still end refer to them
};

struct node_setup {
  std::optional<run_definition> run;  ///< empty: a joiner, which is told
  node_spec node;
  std::optional<host_port> listen;  ///< worker 0 of several nodes
  std::optional<host_port> join;
  std::string token;
  double link_mbit_s = 0;    ///< limit of each link; 0: unlimited
  double budget_mbit_s = 0;  ///< limit of each link for gradients and parameters; 0: unlimited
  route_option routes;       ///< worker 0 of several nodes
  wire_option wire;          ///< worker 0 of several nodes
  share_option shares;       ///< worker 0 of several nodes
  double node_mbit_s = 0;    ///< rate of its links together, for choosing routes; 0: not known
  std::vector<std::filesystem::path> weights;  ///< first values, worker 0
  std::filesystem::path resume;                ///< .solverstate, worker 0
  std::filesystem::path trace_file, graph_file;
  /// JSON that the trace file holds as "poseidon", besides its spans; empty: nothing.
  std::function<std::string(const cluster_view&)> recording;
  /// `view` has a reader (--web): spans are recorded, worker 0 asks the other nodes for theirs.
  bool shows = false;
  std::shared_ptr<progress> display;
  std::shared_ptr<node_network> network = std::make_shared<node_network>();
  std::shared_ptr<const wake_up> stop;  ///< set with `interrupted`: ends the waits of dialing
  std::shared_ptr<edge_book> edges;
  std::shared_ptr<trace_log> trace;
  std::shared_ptr<cluster_view> view;
  std::function<void(node_result)> ended;  ///< called once
};

/// How a node shows what takes long.
[[nodiscard]] inline task_display display_of(const node_setup& s) {
  return [display = s.display](long_task task) { return display->working(std::move(task)); };
}

}  // namespace poseidon
