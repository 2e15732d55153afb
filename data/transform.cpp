#include "data/transform.hpp"

#include "data/image_store.hpp"
#include "models/random.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
/// [0, n) from one word; the bias is below n / 2^32.
std::int64_t below(std::int64_t n, std::uint32_t word) {
  return static_cast<std::int64_t>(std::uint64_t{word} * static_cast<std::uint64_t>(n) >> 32);
}

void require_crop(std::int64_t crop, const shape& image) {
  if (crop > image[1] || crop > image[2])
    throw std::invalid_argument(
        "crop_size " + std::to_string(crop) + " is larger than the images (" + to_string(image) +
        "). Use at most " + std::to_string(std::min(image[1], image[2])) + ".");
}

std::vector<float> means_by_channel(const ::caffe::TransformationParameter& spec,
                                    std::int64_t channels) {
  const auto& given = spec.mean_value();
  if (given.size() > 1 && given.size() != channels)
    throw std::invalid_argument(std::to_string(given.size()) + " mean_value for images of " +
                                std::to_string(channels) + " channel" + (channels == 1 ? "" : "s") +
                                ". Give one, or one for each channel.");
  std::vector<float> means(static_cast<std::size_t>(channels), given.size() == 1 ? given[0] : 0.0f);
  if (given.size() > 1) means.assign(given.begin(), given.end());
  return means;
}
}  // namespace

image_transform::image_transform(const ::caffe::TransformationParameter& spec,
                                 std::optional<mean_image> mean, const shape& image_shape,
                                 ::caffe::Phase phase, augment_key key)
    : input_(image_shape),
      output_(image_shape),
      scale_(spec.scale()),
      mirror_(spec.mirror()),
      crops_(spec.crop_size() > 0),
      random_crop_(crops_ && phase == ::caffe::TRAIN),
      key_(key) {
  if (spec.has_mean_file() && spec.mean_value_size() > 0)
    throw std::invalid_argument("mean_file \"" + spec.mean_file() + "\" and mean_value " +
                                std::to_string(spec.mean_value(0)) +
                                " are both given. Keep one of them.");
  if (mean && mean->shape != input_)
    throw std::invalid_argument("mean_file \"" + spec.mean_file() + "\" is " +
                                to_string(mean->shape) + ", the images are " + to_string(input_) +
                                ". Make the mean from this source: poseidon-data mean.");
  channel_means_ = means_by_channel(spec, input_[0]);
  if (mean) mean_ = std::move(mean->values);
  if (!crops_) return;
  const auto crop = static_cast<std::int64_t>(spec.crop_size());
  require_crop(crop, input_);
  output_ = {input_[0], crop, crop};
}

void image_transform::require_fit(const image& in) const {
  const bool any_size = crops_ && mean_.empty() && in.extents[0] == input_[0];
  if (!any_size) return require_shape(in, input_);
  if (in.extents[1] < output_[1] || in.extents[2] < output_[2])
    throw std::runtime_error("is " + to_string(shape_of(in)) + ", too small for crop_size " +
                             std::to_string(output_[1]));
}

image_transform::window image_transform::window_of(std::uint64_t sample, const image& in) const {
  window w;
  const auto free_rows = in.extents[1] - output_[1], free_columns = in.extents[2] - output_[2];
  if (crops_ && !random_crop_) w = {free_rows / 2, free_columns / 2, false};
  if (!random_crop_ && !mirror_) return w;
  const auto words = random_words(key_.seed, random_use::augment, key_.layer, sample, 0);
  if (random_crop_) w = {below(free_rows + 1, words[0]), below(free_columns + 1, words[1]), false};
  w.mirrored = mirror_ && (words[2] >> 31) != 0;
  return w;
}

// One loop per case, so that the compiler vectorises each; every value is (in - mean) * scale in
// float, in this order, as Caffe computes it.
template <class Value>
void image_transform::apply_values(const window& w, const image& in, const Value* values,
                                   float* out) const {
  const auto columns = output_[2];
  for (std::int64_t c = 0; c < output_[0]; ++c) {
    const float channel_mean = channel_means_[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < output_[1]; ++y, out += columns) {
      const auto at = (c * in.extents[1] + y + w.top) * in.extents[2] + w.left;
      const Value* row = values + at;
      const float* mean = mean_.empty() ? nullptr : mean_.data() + at;
      const float scale = scale_;
      if (mean == nullptr && !w.mirrored)
        for (std::int64_t x = 0; x < columns; ++x)
          out[x] = (static_cast<float>(row[x]) - channel_mean) * scale;
      else if (mean == nullptr)
        for (std::int64_t x = 0; x < columns; ++x)
          out[columns - 1 - x] = (static_cast<float>(row[x]) - channel_mean) * scale;
      else if (!w.mirrored)
        for (std::int64_t x = 0; x < columns; ++x)
          out[x] = (static_cast<float>(row[x]) - mean[x]) * scale;
      else
        for (std::int64_t x = 0; x < columns; ++x)
          out[columns - 1 - x] = (static_cast<float>(row[x]) - mean[x]) * scale;
    }
  }
}

void image_transform::apply(std::uint64_t sample, const image& in, std::span<float> out) const {
  require_fit(in);
  const auto wanted = static_cast<std::size_t>(count(output_));
  const auto have = static_cast<std::size_t>(count(shape_of(in)));
  if (out.size() != wanted || (in.bytes.size() != have && in.floats.size() != have))
    throw std::invalid_argument("image_transform: " + std::to_string(out.size()) +
                                " values of room for " + to_string(output_) + ", image of " +
                                std::to_string(in.bytes.size() + in.floats.size()) +
                                " values for " + to_string(shape_of(in)));
  const auto w = window_of(sample, in);
  if (in.floats.empty())
    apply_values(w, in, in.bytes.data(), out.data());
  else
    apply_values(w, in, in.floats.data(), out.data());
}

}  // namespace poseidon
