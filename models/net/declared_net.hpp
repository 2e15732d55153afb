// models/net/declared_net.hpp - the parameters of a program that computes its gradients itself, as the nodes exchange them.
#pragma once
#include "models/net/net.hpp"
#include "models/shape.hpp"

#include <span>
#include <string>

namespace poseidon {

struct declared_parameter {
  std::string name;
  poseidon::shape shape;  ///< empty: one value
};

/// A net that computes nothing: a layer of type "Declared" for each parameter, with its name. So each parameter is exchanged by
/// itself, and whatever asks a net for its layers and parameters gets an answer.
[[nodiscard]] net declared_net(std::span<const declared_parameter> parameters);

}  // namespace poseidon
