// models/net/parameter_groups.hpp - groups of layers that share parameters and so learn together.
#pragma once
#include "models/ids.hpp"
#include "models/net/net.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace poseidon {

/// Layers that share parameters, directly or through a third one, and everything they use. In most nets
/// every layer with parameters is a group of its own. A group is exchanged as one: its gradient is
/// complete when the backward passes of all `writers` have finished.
struct parameter_group {
  /// Layers that use the parameters, in net order; the first names the group.
  std::vector<std::size_t> layers;
  /// Those layers whose backward pass computes gradients of learned parameters; if none does, the first layer, which then
  /// writes zeros.
  std::vector<std::size_t> writers;
  std::vector<parameter_id> learned;  ///< those that training changes, running statistics too
  std::vector<parameter_id> frozen;   ///< those that no update changes

  [[nodiscard]] bool is_writer(std::size_t layer) const {
    return std::find(writers.begin(), writers.end(), layer) != writers.end();
  }
};

/// In order of their first layers. Every parameter is in one group, every layer in one at most.
[[nodiscard]] std::vector<parameter_group> parameter_groups(const net& n);

}  // namespace poseidon
