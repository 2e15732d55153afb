// actors/core/actor_spawner.hpp - spawns the actors of one graph, and remembers them until the graph ends.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/trace.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

class actor_spawner {
 public:
  /// All three outlive the actors.
  actor_spawner(caf::actor_system& system, edge_book& edges, trace_log& trace)
      : system_(system), edges_(edges), trace_(trace) {}

  template <class D, class... Args>
  handle<D> start(thread_kind threads, std::string name, Args&&... args) {
    auto h = spawn<D>(system_, edges_, threads, std::move(name), std::forward<Args>(args)...);
    all_.push_back(h);
    spawned_.push_back(h.untyped());
    return h;
  }
  /// An actor of an earlier graph is part of this one, too.
  void adopt(port<shut_down> lasting) { all_.push_back(std::move(lasting)); }

  /// All actors of the graph, in the order in which they are told to end.
  [[nodiscard]] const std::vector<port<shut_down>>& all() const { return all_; }
  /// Those of them that this object has spawned.
  [[nodiscard]] const std::vector<caf::actor>& spawned() const { return spawned_; }

  [[nodiscard]] std::string_view keep(std::string text) { return trace_.keep(std::move(text)); }
  [[nodiscard]] trace_lane* lane(std::string name) { return trace_.lane(std::move(name)); }
  /// A lane for each clock that can be under way at the same time, because the spans of one lane do not overlap. None
  /// without tracing.
  [[nodiscard]] std::vector<trace_lane*> lanes_of_clocks(const std::string& name,
                                                         std::uint64_t staleness) {
    std::vector<trace_lane*> lanes;
    if (trace_.enabled())
      for (std::uint64_t c = 0; c <= staleness; ++c)
        lanes.push_back(lane(c == 0 ? name : name + " +" + std::to_string(c)));
    return lanes;
  }

 private:
  caf::actor_system& system_;
  edge_book& edges_;
  trace_log& trace_;
  std::vector<port<shut_down>> all_;
  std::vector<caf::actor> spawned_;
};

}  // namespace poseidon
