// models/net/declared_net.hpp - the parameters of a program that computes its gradients itself, as the nodes exchange them.
#pragma once
#include "models/net/net.hpp"
#include "models/shape.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

struct declared_parameter {
  std::string name;
  poseidon::shape shape;  ///< empty: one value
  bool given = false;     ///< as net_parameter's
  bool bundle = false;    ///< as net_parameter's
};

/// A net that computes nothing: a layer of type "Declared" for each parameter, with its name. So each parameter is exchanged by
/// itself, and whatever asks a net for its layers and parameters gets an answer.
/// `factor_rows`: by parameter, the rows that its factors have at most on one worker in a clock; 0, or a shorter list: none. A
/// parameter with factors has two dimensions, outputs and inputs.
[[nodiscard]] net declared_net(std::span<const declared_parameter> parameters,
                               std::span<const std::uint32_t> factor_rows = {});

}  // namespace poseidon
