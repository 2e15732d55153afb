// models/net/learned_parameters.hpp
//
// The parameters that the nodes of a run exchange, as a list: everything that exchanging, updating and storing them
// needs to know, without the net that computes with them.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace poseidon {

/// Parameters that are exchanged together: their gradients are complete at the same time, and their fresh values are
/// published at the same time. A layer's, or those of several layers that share some (parameter_groups.hpp).
struct learned_group {
  std::string name;       ///< its first layer's
  std::size_t order = 0;  ///< place of that layer in the forward pass; names the group in messages
  std::size_t writers = 1;           ///< layers whose backward pass writes the gradient
  std::vector<std::size_t> learned;  ///< parameters that training changes, running averages too
  std::vector<std::size_t> frozen;   ///< parameters that no update changes
};

struct learned_parameters {
  std::vector<net_parameter> parameters;
  std::vector<std::string> layers;  ///< by parameter: name of the layer that owns it
  /// By parameter: its first layer's place in the forward pass.
  std::vector<std::size_t> first_uses;
  std::vector<learned_group> groups;  ///< by order; every parameter is in one
};

/// The list of a net; groups as parameter_groups() has them.
[[nodiscard]] learned_parameters learned_parameters_of(const net& n);

}  // namespace poseidon
