#include "actors/run/compile_declared.hpp"

#include <utility>

namespace poseidon {

std::unique_ptr<compiled_run> compile_declared(const run_definition& run, const node_spec& node) {
  auto out = std::make_unique<compiled_run>();
  out->train.graph = declared_net(run.declared);
  const auto& n = out->train.graph;
  out->by_factors.assign(n.layers.size(), false);
  out->store =
      std::make_shared<parameter_store>(n.parameters, make_partition(n, run.workers, run.routes),
                                        run.workers, 0, node.compute->host_memory(), true);
  return out;
}

}  // namespace poseidon
