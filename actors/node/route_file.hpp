// actors/node/route_file.hpp - keeps the routes of a run beside its snapshots, as a file that repeats them.
#pragma once
#include "actors/node/node_core.hpp"

#include <cstdint>
#include <map>

namespace poseidon {

class route_file {
 public:
  explicit route_file(node_core& core) : core_(core) {}

  /// The leader's: notes the routes that hold from the run's first clock, or from that of a change of the view on, and writes
  /// PREFIX.routes (PREFIX_from_N.routes where the run resumed at iteration N). A run without snapshots has none. What cannot
  /// be written is a warning.
  void write();

 private:
  node_core& core_;
  std::map<std::uint64_t, parameter_routes> by_clock_;
};

}  // namespace poseidon
