// models/net/learned_parameters.hpp
//
// The parameters that the nodes of a run exchange, as a list: everything that exchanging, updating and storing them
// needs to know, without the net that computes with them.
#pragma once
#include "models/indexed.hpp"
#include "models/net/net.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace poseidon {

/// Parameters that are exchanged together: their gradients are complete at the same time, and their fresh values are
/// published at the same time. A layer's, or those of several layers that share some (parameter_groups.hpp).
struct learned_group {
  std::string name;                   ///< its first layer's
  layer_id first{};                   ///< that layer, which names the group in messages
  std::size_t writers = 1;            ///< layers whose backward pass writes the gradient
  std::vector<parameter_id> learned;  ///< those that training changes, running averages too
  std::vector<parameter_id> frozen;   ///< those that no update changes
};

struct learned_parameters {
  by_id<parameter_id, net_parameter> parameters;
  by_id<parameter_id, std::string> layers;   ///< name of the layer that owns it
  by_id<parameter_id, layer_id> first_uses;  ///< the first layer that reads it
  /// In the order of their first layers; every parameter is in one.
  std::vector<learned_group> groups;
};

/// The list of a net; groups as parameter_groups() has them.
[[nodiscard]] learned_parameters learned_parameters_of(const net& n);

}  // namespace poseidon
