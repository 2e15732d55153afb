// data/synthetic_source.hpp - random samples of the right shape, so that any net can be timed without its data.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// Stands for any data layer (Data, ImageData, Input, ...). An image has the shape `options.synthetic`;
/// if that is empty, the shape that the layer states (crop_size, new_height and new_width), or else that of its source;
/// a crop is applied. Pixels are uniform in [-128, 128) times transform_param.scale, like those of images minus their
/// mean; labels are 0 or 1, which every classifier has. Sample n is the same on every node.
/// Errors   spec_error: a shape that nothing tells, or one that is smaller than the crop.
[[nodiscard]] std::shared_ptr<const sample_source> open_synthetic(
    const ::caffe::LayerParameter& layer, const spec_position& where,
    const source_options& options);

/// The batch size of an Input layer, which all its tops share.
/// Errors   spec_error: a top without axes, or batches that differ.
[[nodiscard]] std::int64_t input_batch_size(const ::caffe::LayerParameter& layer,
                                            const spec_position& where);

/// "3x224x224"; empty for an empty text.
/// Errors   spec_error naming the text.
[[nodiscard]] shape parse_sample_shape(const std::string& text);

}  // namespace poseidon
