// models/files/state_rule.hpp
//
// Whether a solver state is one that a rule can go on with. Arrays of another rule have the right number and shapes and mean
// something else: momentum, which has both signs, would be taken for sums of squares, whose root is divided by.
#pragma once
#include "models/caffe.hpp"
#include "models/net/net.hpp"
#include "models/solver/solver_rule.hpp"

#include <filesystem>
#include <span>

namespace poseidon {

/// Errors   spec_error: the file says that a rule with another state wrote it. Caffe's files say nothing.
void check_rule(const ::caffe::SolverState& state, rule_kind wanted,
                const std::filesystem::path& path);

/// Array `slot` of one parameter.   Errors   spec_error: it has to hold squares, and a value is negative or NaN.
void check_squares(std::span<const float> values, const net& n, std::size_t parameter,
                   rule_kind wanted, std::size_t slot, const std::filesystem::path& path);

}  // namespace poseidon
