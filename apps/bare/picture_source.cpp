#include "apps/bare/picture_source.hpp"

#include "data/image_list.hpp"
#include "models/spec/spec_file.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon::app {

namespace {

namespace fs = std::filesystem;

/// Crops of one picture follow each other, on several threads.
constexpr std::size_t kept_pictures = 16;

std::vector<fs::path> pictures_below(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && is_picture_ending(entry.path().extension().string()))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  if (found.empty())
    throw spec_error(folder.string() + ": no pictures in this folder (" + picture_endings + ").");
  return found;
}

/// The place of a crop: the four corners and the centre, then the same mirrored.
struct crop_place {
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
};

crop_place place_of(std::uint64_t crop, std::uint64_t crops, std::int64_t free_rows,
                    std::int64_t free_columns) {
  const auto corner = crop % 5;
  if (crops == 1 || corner == 4) return {free_rows / 2, free_columns / 2, crop >= 5};
  return {corner / 2 == 0 ? 0 : free_rows, corner % 2 == 0 ? 0 : free_columns, crop >= 5};
}

std::string extents(std::int64_t height, std::int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

}  // namespace

std::vector<fs::path> find_pictures(const std::vector<std::string>& paths) {
  std::vector<fs::path> all;
  for (const auto& path : paths) {
    if (fs::is_directory(path)) {
      const auto below = pictures_below(path);
      all.insert(all.end(), below.begin(), below.end());
    } else if (fs::exists(path)) {
      all.emplace_back(path);
    } else {
      throw spec_error(path + ": there is no such picture or folder. Relative paths start at " +
                       fs::current_path().string() + ".");
    }
  }
  return all;
}

picture_source::picture_source(picture_request request, const shape& sample)
    : request_(std::move(request)) {
  if (sample.size() != 3 || (sample[0] != 1 && sample[0] != 3))
    throw spec_error("the net's input takes samples of " + to_string(sample) +
                     "; pictures need 1xHxW or 3xHxW.");
  channels_ = sample[0];
  height_ = sample[1];
  width_ = sample[2];
  shapes_ = {sample};
  auto& r = request_;
  if (r.mean && (r.mean->shape.size() != 3 || r.mean->shape[0] != channels_))
    throw spec_error("the mean is " + to_string(r.mean->shape) + ", but the net's input has " +
                     std::to_string(channels_) + " channels.");
  if (!r.mean_values.empty() && r.mean_values.size() != 1 &&
      r.mean_values.size() != static_cast<std::size_t>(channels_))
    throw spec_error(std::to_string(r.mean_values.size()) +
                     " mean values are given, but the net's input has " +
                     std::to_string(channels_) + " channels.");
  if (r.height == 0) {
    const bool larger = r.mean && r.mean->shape[1] >= height_ && r.mean->shape[2] >= width_;
    // ImageNet's nets take 224x224 or 227x227 of pictures of 256x256, as Caffe's classifier does.
    const bool imagenet = std::min(height_, width_) >= 192 && std::max(height_, width_) < 256;
    r.height = larger ? r.mean->shape[1] : imagenet ? 256 : height_;
    r.width = larger ? r.mean->shape[2] : imagenet ? 256 : width_;
  }
  if (r.height < height_ || r.width < width_)
    throw spec_error("pictures of " + extents(r.height, r.width) +
                     " are smaller than the net's input of " + extents(height_, width_) + ".");
  if (r.oversample && (r.height > height_ || r.width > width_)) crops_ = 10;
  if (!r.mean_values.empty()) mean_kind_ = mean_kind::channel;
  if (!r.mean) return;
  if (r.mean->shape[1] == r.height && r.mean->shape[2] == r.width) {
    mean_kind_ = mean_kind::whole;
  } else if (r.mean->shape[1] == height_ && r.mean->shape[2] == width_) {
    mean_kind_ = mean_kind::crop;
  } else {
    mean_kind_ = mean_kind::channel;
    for (const double m : channel_means(*r.mean)) r.mean_values.push_back(static_cast<float>(m));
  }
}

std::string picture_source::describe() const {
  auto text = "pictures are resized to " + extents(request_.height, request_.width);
  if (crops_ == 10)
    text += ", 10 crops of " + extents(height_, width_) + " each";
  else if (request_.height != height_ || request_.width != width_)
    text += ", the crop of " + extents(height_, width_) + " in the centre";
  switch (mean_kind_) {
    case mean_kind::none:
      return text + ", no mean subtracted";
    case mean_kind::channel:
      return text + ", minus a mean for each channel";
    case mean_kind::whole:
    case mean_kind::crop:
      break;
  }
  return text + ", minus the mean image";
}

picture_source::planes picture_source::prepare(const fs::path& file, std::string& warning) const {
  std::vector<std::uint8_t> bytes;
  read_whole(file, bytes);
  const auto colour = channels_ == 1 ? picture_colour::gray : picture_colour::colour;
  auto pixels = decode_picture(bytes, colour);
  if (!pixels.warning.empty()) warning = file.string() + " " + pixels.warning + ".";
  if (pixels.height != request_.height || pixels.width != request_.width)
    pixels = resize(pixels, request_.height, request_.width);
  std::vector<std::uint8_t> ordered;
  to_planes(pixels, ordered);
  planes values(ordered.begin(), ordered.end());
  if (mean_kind_ == mean_kind::whole)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= request_.mean->values[i];
  return values;
}

std::shared_ptr<const picture_source::planes> picture_source::prepared(
    std::uint64_t picture) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, values] : recent_)
      if (number == picture) return values;
    if (failures_.count(picture) > 0) return nullptr;
  }
  std::shared_ptr<const planes> values;
  std::string why, warning;
  const auto& file = request_.files[picture];
  try {
    values = std::make_shared<const planes>(prepare(file, warning));
  } catch (const std::exception& e) {
    why = file.string() + ": " + e.what();
    if (!request_.may_skip) throw std::runtime_error(why);
  }
  const std::lock_guard lock(mutex_);
  if (!values) {
    failures_[picture] = why;
    return nullptr;
  }
  if (!warning.empty()) warnings_[picture] = warning;
  recent_.emplace_back(picture, values);
  if (recent_.size() > kept_pictures) recent_.pop_front();
  return values;
}

std::string picture_source::failure(std::uint64_t picture) const {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(picture);
  return found == failures_.end() ? std::string() : found->second;
}

std::string picture_source::warning(std::uint64_t picture) const {
  const std::lock_guard lock(mutex_);
  const auto found = warnings_.find(picture);
  return found == warnings_.end() ? std::string() : found->second;
}

void picture_source::fill(std::uint64_t global, std::span<const std::span<float>> tops) const {
  const auto sample = global % size();
  const auto values = prepared(sample / crops_);
  const auto to = tops[0];
  if (!values) {
    std::fill(to.begin(), to.end(), 0.0f);
    return;
  }
  const auto place =
      place_of(sample % crops_, crops_, request_.height - height_, request_.width - width_);
  const auto& means = request_.mean_values;
  std::size_t at = 0;
  for (std::int64_t c = 0; c < channels_; ++c) {
    const float mean = mean_kind_ != mean_kind::channel ? 0.0f
                       : means.size() == 1              ? means[0]
                                                        : means[static_cast<std::size_t>(c)];
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x, ++at) {
        const auto column = place.left + (place.mirrored ? width_ - 1 - x : x);
        const auto from = (c * request_.height + place.top + y) * request_.width + column;
        float value = (*values)[static_cast<std::size_t>(from)] - mean;
        if (mean_kind_ == mean_kind::crop) value -= request_.mean->values[at];
        to[at] = value * request_.scale;
      }
  }
}

}  // namespace poseidon::app
