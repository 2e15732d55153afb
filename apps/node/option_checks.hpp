// apps/node/option_checks.hpp - options of poseidon-node that contradict each other, or have no effect.
#pragma once
#include "apps/node/options.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace poseidon::app {

/// Errors   spec_error: options that contradict each other, or need another one.
void check(const node_options& o);

/// Errors   spec_error: a witness without --join, or with an option of nodes that train.
void check_witness(const node_options& o, const CLI::App& app);

/// A line about options of clusters that were given to a node that trains alone.
[[nodiscard]] std::vector<std::string> without_effect(const node_options& o, const CLI::App& app);

}  // namespace poseidon::app
