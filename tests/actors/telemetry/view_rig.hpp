// tests/actors/telemetry/view_rig.hpp - a node that measures itself, without actors.
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <memory>
#include <string>

namespace poseidon::test {

struct view_rig {
  std::shared_ptr<edge_book> edges = std::make_shared<edge_book>();
  std::shared_ptr<trace_log> trace = std::make_shared<trace_log>(false, true);
  std::shared_ptr<run_history> history = std::make_shared<run_history>(nullptr, 2);
  cluster_view view{edges, trace, history};

  std::shared_ptr<edge_table> actor(const std::string& name, std::uint64_t id) {
    auto table = edges->open(name, name.substr(0, name.find(' ')));
    table->bind(id);
    return table;
  }
};

inline run_facts two_workers(std::uint32_t self) {
  run_facts f;
  f.self = self;
  f.members = {{0, "a:1"}, {1, "b:2"}};
  f.plan = [](auto, auto) { return actor_graph{}; };
  return f;
}

inline const worker_view& view_of(const cluster_view::state& s, std::uint32_t worker) {
  return s.workers.at(worker);
}

}  // namespace poseidon::test
