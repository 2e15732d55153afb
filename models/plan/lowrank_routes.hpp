// models/plan/lowrank_routes.hpp - which layers can go by low rank, as what matrices, and which worker adds up what of them.
#pragma once
#include "models/caffe.hpp"
#include "models/device/lowrank.hpp"
#include "models/device/wire_format.hpp"
#include "models/net/net.hpp"
#include "models/plan/routes.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

/// Whether a layer's weights are a matrix at all. What a program declares is one if it has two dimensions or more.
[[nodiscard]] bool has_matrix(const net_layer& layer);

/// A layer's weights as the matrix that P and Q stand for.
[[nodiscard]] lowrank_shape lowrank_shape_of(const net& n, std::size_t layer, std::uint32_t rank);
/// The values that each node sends of P, and the owner of their sum: with it go the gradients of the layer's other parameters, as they are. Of a
/// program's parameter one value more says how many workers had a gradient of it.
[[nodiscard]] std::size_t lowrank_first_values(const net& n, std::size_t layer, std::uint32_t rank);

/// Bytes of a layer's frames: of P with what goes beside it, which is always float32, and of Q.
struct lowrank_bytes {
  std::size_t first = 0, second = 0;
  [[nodiscard]] std::size_t both() const { return first + second; }
};
/// `by`: a lowrank route.
[[nodiscard]] lowrank_bytes lowrank_bytes_of(const net& n, std::size_t layer, route by);

/// The same routes, where P and Q of layers are bfloat16 whose weights have a format that rounds.
[[nodiscard]] layer_routes rounded_lowrank(const net& n, layer_routes routes,
                                           const parameter_formats& formats);

/// The reason why no layer of a run with this solver can take the route; empty: there is none.
[[nodiscard]] std::string why_no_lowrank(const ::caffe::SolverParameter& solver);
/// The reason why a layer's gradient cannot be sent with that rank, or would save less than half of its values; empty if it can.
[[nodiscard]] std::string why_no_lowrank(const net& n, std::size_t layer, std::uint32_t rank,
                                         const ::caffe::SolverParameter& solver);

/// The layers that go by low rank with these routes, rising.
[[nodiscard]] std::vector<std::size_t> lowrank_layers(const net& n, const parameter_routes& routes);

/// The worker that adds up what all send of each layer by low rank, by layer; of other layers worker 0. The largest goes to the
/// worker that has the fewest bytes so far; ties by lower index, so that the answer depends on the arguments alone.
[[nodiscard]] std::vector<worker_id> lowrank_owners(const net& n, const parameter_routes& routes,
                                                    std::size_t workers);

}  // namespace poseidon
