// data/memory_source.hpp
//
// MemoryData: samples that a program hands over instead of a file. poseidon-node hands over none; another
// program puts a memory_samples into source_options::memory before it builds the net.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// The layer's channels, height and width are the shape of a sample; fill() repeats them.
/// Errors   spec_error: nothing was handed over for this layer's name, extents below 1, another
///          number of values than samples times extents, other labels than samples.
[[nodiscard]] std::shared_ptr<const sample_source> open_memory(const ::caffe::LayerParameter& layer,
                                                               const spec_position& where,
                                                               const source_options& options);

}  // namespace poseidon
