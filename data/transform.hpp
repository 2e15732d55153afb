// data/transform.hpp
//
// Caffe's DataTransformer as a pure function of the image and of its global sample index.
//   out[c,y,x] = (in[c, y + top, x + left'] - mean) * scale
// with left' counted from the right when mirrored; the mean image is indexed at the uncropped
// position.
#pragma once
#include "data/datum.hpp"
#include "data/mean_file.hpp"
#include "models/caffe.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// The owner of random crops and mirrors; together with the sample it is the key of the random numbers.
struct augment_key {
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;
};

class image_transform {
 public:
  /// `mean` if spec names a mean_file. Crops are random in phase TRAIN, central in TEST; mirrors
  /// are random in both, as in Caffe. Errors   std::invalid_argument with both values: crop larger
  /// than the image, a mean of another shape,
  ///          mean_file together with mean_value, a number of mean_value that is neither 1 nor
  ///          channels.
  image_transform(const ::caffe::TransformationParameter& spec, std::optional<mean_image> mean,
                  const shape& image_shape, ::caffe::Phase phase, augment_key key);

  [[nodiscard]] const shape& image_shape() const { return input_; }  ///< the first image's shape
  [[nodiscard]] const shape& output_shape() const { return output_; }

  /// Images that are cropped may have any size that the crop fits in, unless a mean image is
  /// subtracted; all others must have the first image's shape.
  /// Writes   out, output_shape() values.   Cost   one pass over the output; any thread.
  /// Errors   std::runtime_error "is 3x20x30, ...": an image of another shape.
  void apply(std::uint64_t sample, const image& in, std::span<float> out) const;

 private:
  struct window {
    std::int64_t top = 0, left = 0;
    bool mirrored = false;
  };
  void require_fit(const image& in) const;
  [[nodiscard]] window window_of(std::uint64_t sample, const image& in) const;
  template <class Value>
  void apply_values(const window& w, const image& in, const Value* values, float* out) const;

  shape input_, output_;
  float scale_ = 1;
  std::vector<float> channel_means_;  ///< by channel; zeros where there is no mean_value
  std::vector<float> mean_;           ///< empty, or one per input value
  bool mirror_ = false, crops_ = false, random_crop_ = false;
  augment_key key_;
};

}  // namespace poseidon
