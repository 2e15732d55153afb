// apps/node/memory_of_formats.hpp - what a node keeps besides, where its gradients travel in fewer bytes.
#pragma once
#include "models/caffe.hpp"
#include "models/json.hpp"
#include "models/net/net.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace poseidon::app {

/// More bytes of one node than with float32 on the server's route, without --survive.
struct memory_of_formats {
  /// --wire: of each value that is rounded, what rounding has taken from its gradient, and the rounded gradient; on the node that owns it the
  /// exact value. Of float16 and bfloat16, of int8, of int4.
  std::uint64_t sixteen_bits = 0, int8 = 0, int4 = 0;
  /// --routes lowrank: of each layer that can go so, what has not been sent of its gradients, the gradient that P and Q make, and the part of its
  /// solver state that the shards of other nodes would keep.
  std::uint64_t lowrank = 0;
};

/// Source   gradient_encoder.hpp, server_shard.hpp (`exact`), error_memory.hpp, node_copy.hpp.
[[nodiscard]] memory_of_formats memory_of(const net& n, const ::caffe::SolverParameter& solver,
                                          std::size_t nodes);

[[nodiscard]] std::string text_of(const memory_of_formats& m);
[[nodiscard]] json_object json_of(const memory_of_formats& m);

}  // namespace poseidon::app
