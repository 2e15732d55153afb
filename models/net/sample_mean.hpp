// models/net/sample_mean.hpp
//
// Losses over parts of a batch that differ in size. A loss is a mean over the samples that its layer sees. Where replicas
// see different numbers of samples, each replica's loss is weighted by its number. Gradients are linear in loss_weight, so
// changing loss_weight is enough: gradients, factors and rounded values are then weighted, too.
#pragma once
#include "models/net/net.hpp"

#include <cstdint>

namespace poseidon {

/// Errors   spec_error with file and line: a train net whose gradient is not a mean over samples (a loss without
///          normalisation, a loss_weight on the values of each sample).
void require_sample_means(const net& n);

/// Scales the losses of a net that sees `samples` of `batch` samples, so that its gradients are its part of the mean over the
/// whole batch.
void weigh_losses(net& n, std::uint64_t samples, std::uint64_t batch);

/// Errors   spec_error with file and line: `part`, the net with another batch size, has parameters of other shapes.
void require_same_parameters(const net& whole, const net& part);

}  // namespace poseidon
