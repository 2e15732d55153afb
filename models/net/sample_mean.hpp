// models/net/sample_mean.hpp
//
// Losses over parts of a batch that are not of one size. A loss is a mean over the samples that its layer sees; where
// replicas see different numbers of them, each one's counts by its samples. Its gradients are linear in loss_weight, so
// that is all there is to change: whatever travels afterwards, gradients, factors or rounded ones, is weighted.
#pragma once
#include "models/net/net.hpp"

#include <cstdint>

namespace poseidon {

/// Errors   spec_error with file and line: a train net whose gradient is not a mean over samples (a loss without
///          normalisation, a loss_weight on the values of each sample).
void require_sample_means(const net& n);

/// Makes the gradients of a net that sees `samples` of `batch` that part of a mean over the whole batch.
void weigh_losses(net& n, std::uint64_t samples, std::uint64_t batch);

/// Errors   spec_error with file and line: `part`, the net with another batch size, has parameters of other shapes.
void require_same_parameters(const net& whole, const net& part);

}  // namespace poseidon
