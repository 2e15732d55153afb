// models/net/blob_uses.hpp - checks that every bottom is the top of an earlier layer.
#pragma once
#include "models/spec/net_file.hpp"

namespace poseidon {

/// `whole` is the net before the phase rules, so that a layer which they removed can be named.
///
/// Errors   spec_error: a bottom that no earlier layer makes, with the nearest name or the layer
///          that makes it elsewhere; two layers that make one blob.
void check_bottoms(const net_file& file, const net_file& whole);

}  // namespace poseidon
