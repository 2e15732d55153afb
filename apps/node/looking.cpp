#include "apps/node/looking.hpp"

#include <utility>

namespace poseidon::app {

node_options as_joiner(node_options o, std::vector<host_port> others) {
  o.join = std::move(others);
  o.nodes = 1;
  o.survive.reset();
  o.staleness.reset();
  o.synthetic.reset();
  o.link_rate_mbit_s = 0;
  for (auto* const file : {&o.solver, &o.snapshot, &o.csv, &o.tensorboard}) file->clear();
  for (auto* const words : {&o.weights, &o.views, &o.global_batch, &o.keep_best, &o.stop_at})
    words->clear();
  o.routes = "auto";
  o.wire = "float32";
  o.lossy = "none";
  o.batch_share = "equal";
  o.lost_state = "end";
  o.warnings.clear();
  return o;
}

}  // namespace poseidon::app
