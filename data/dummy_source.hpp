// data/dummy_source.hpp - DummyData: samples from fillers, for tests and for timing nets without
// data.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// The shapes say the batch; size() is practically endless, because no sample comes twice. Constant
/// fillers give Caffe's values; random ones depend on (seed, layer, top, sample), not on when they
/// are drawn. Errors   spec_error: shapes or fillers that are neither one nor one per top, batches
/// that differ.
[[nodiscard]] std::shared_ptr<const sample_source> open_dummy(const ::caffe::LayerParameter& layer,
                                                              const spec_position& where,
                                                              const source_options& options);

/// The batch axis that all tops share.
[[nodiscard]] std::int64_t dummy_batch_size(const ::caffe::LayerParameter& layer,
                                            const spec_position& where);

/// "layer "x" (Type): text", at its place in the file: the form of all of data/'s errors about a layer.
[[nodiscard]] spec_error layer_error(const ::caffe::LayerParameter& layer,
                                     const spec_position& where, const std::string& text);

}  // namespace poseidon
