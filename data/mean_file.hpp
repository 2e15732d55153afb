// data/mean_file.hpp - Caffe's mean.binaryproto: the mean image of a training set.
#pragma once
#include "models/shape.hpp"

#include <filesystem>
#include <functional>
#include <vector>

namespace poseidon {

class image_store;

struct mean_image {
  poseidon::shape shape;  ///< {channels, height, width}
  std::vector<float> values;
};

/// Errors   std::runtime_error: missing, not a BlobProto, a number of values that does not fit its
/// shape.
[[nodiscard]] mean_image read_mean(const std::filesystem::path& path);

/// Written aside and renamed. Errors   as models/files/atomic_file.hpp's.
void write_mean(const std::filesystem::path& path, const mean_image& mean);

/// The mean of each channel, for mean_value.
[[nodiscard]] std::vector<double> channel_means(const mean_image& mean);

/// The mean that Caffe's compute_image_mean computes, but summed in double precision.
/// `progress` is called after each image with the number done. Errors   as image_store::get.
[[nodiscard]] mean_image mean_of(const image_store& images,
                                 const std::function<void(std::uint64_t)>& progress = {});

}  // namespace poseidon
