// data/image_source.hpp - Data and ImageData: images of a store, transformed.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// A database or an IDX file: records in the order of their keys, as in Caffe.
[[nodiscard]] std::shared_ptr<const sample_source> open_data(const ::caffe::LayerParameter& layer,
                                                             const spec_position& where,
                                                             const source_options& options);

/// A list of picture files. shuffle draws a new order each epoch; rand_skip N starts at one of the
/// first N, chosen by the seed. Paths of the list are relative to root_folder, and this as sources.
[[nodiscard]] std::shared_ptr<const sample_source> open_image_data(
    const ::caffe::LayerParameter& layer, const spec_position& where,
    const source_options& options);

}  // namespace poseidon
