// models/spec/upgrade.hpp - older specifications become today's, as Caffe's own upgrade makes them.
#pragma once
#include "models/spec/spec_file.hpp"

#include <vector>

namespace poseidon::caffe {
class NetParameter;
class SolverParameter;
}  // namespace poseidon::caffe

namespace poseidon {

/// V1 `layers {}` become V2 `layer {}` with their transformation fields in transform_param;
/// `input:` fields become an Input layer in front; the multipliers of an old BatchNorm become 0.
///
/// Writes   net; places, which holds one entry per layer, gains `input_place` for an Input layer.
/// Errors   spec_error: both `layer` and `layers`, or inputs without a shape each.
void upgrade_net(caffe::NetParameter& net, std::vector<spec_position>& places,
                 const spec_position& input_place);

/// solver_type becomes type.   Errors   spec_error: both are given.
void upgrade_solver(caffe::SolverParameter& solver, const spec_position& where);

}  // namespace poseidon
