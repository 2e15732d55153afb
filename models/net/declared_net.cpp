#include "models/net/declared_net.hpp"

namespace poseidon {

net declared_net(std::span<const declared_parameter> parameters,
                 std::span<const std::uint32_t> factor_rows) {
  net n;
  n.name = "a program's";
  for (const auto& declared : parameters) {
    net_parameter p;
    p.layer = n.layers.size();
    p.name = declared.name;
    p.shape = declared.shape;
    p.given = declared.given;
    p.bundle = declared.bundle;
    net_layer layer;
    layer.name = declared.name;
    layer.type = "Declared";
    layer.parameters = {n.parameters.size()};
    layer.parameter_shapes = {declared.shape};
    layer.learn = {true};
    layer.needs_backward = true;
    if (p.layer < factor_rows.size() && declared.shape.size() == 2)
      layer.factor_rows = factor_rows[p.layer];
    n.layers.push_back(std::move(layer));
    n.parameters.push_back(std::move(p));
  }
  return n;
}

}  // namespace poseidon
