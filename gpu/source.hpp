// gpu/source.hpp - data layers: the copy-in stream copies a batch while the pass before still computes.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

[[nodiscard]] std::unique_ptr<kernel> make_source(const layer_context& c, context& with);

}  // namespace poseidon::gpu
