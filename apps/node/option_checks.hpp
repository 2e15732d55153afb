// apps/node/option_checks.hpp - what the option table (option_table.hpp) does not say of poseidon-node's options.
#pragma once
#include "apps/node/options.hpp"

namespace poseidon::app {

/// Errors   spec_error: nothing to do, files in each other's place, shares that are none, addresses that strangers reach.
void check(const node_options& o);

}  // namespace poseidon::app
