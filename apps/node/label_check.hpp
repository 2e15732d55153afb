// apps/node/label_check.hpp - do the labels of the data belong to the classes that a net predicts?
#pragma once
#include "actors/run/compiled_run.hpp"

namespace poseidon::app {

/// Reads samples from the whole of each source whose labels a loss or Accuracy compares with classes: all of a small source, of a large
/// one as many as take a moment.
/// Errors   spec_error: a label that is no class, with its sample and both values; std::runtime_error, as sample_source::fill.
void check_labels(const compiled_net& n);

}  // namespace poseidon::app
