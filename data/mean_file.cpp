#include "data/mean_file.hpp"

#include "data/fail.hpp"
#include "data/image_store.hpp"
#include "models/caffe.hpp"
#include "models/files/file_kind.hpp"
#include "models/files/snapshot.hpp"
#include "models/first_bytes.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace poseidon {
namespace {
/// {channels, height, width} of a blob of one image, by its 4-D fields or its shape.
shape image_shape(const std::filesystem::path& path, const ::caffe::BlobProto& blob) {
  shape s{blob.num(), blob.channels(), blob.height(), blob.width()};
  if (blob.has_shape()) s.assign(blob.shape().dim().begin(), blob.shape().dim().end());
  if (s.size() == 3) s.insert(s.begin(), 1);
  bool good = s.size() == 4 && s[0] == 1;
  std::int64_t values = 1;
  for (const auto extent : s)
    good = good && extent > 0 && !__builtin_mul_overflow(values, extent, &values);
  if (!good)
    fail(path, "a mean image is 1 x channels x height x width, this is " + to_string(s) + ".");
  return {s[1], s[2], s[3]};
}
}  // namespace

mean_image read_mean(const std::filesystem::path& path) {
  if (const auto kind = kind_if_no_file(path); !kind.empty())
    fail(path, "is " + kind + ", not a mean image.");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, std::string("cannot open the mean image: ") + std::strerror(errno) + ".");
  if (const auto pointer = lfs_pointer_at(path); !pointer.empty())
    fail(path, "this is " + pointer + ".");
  ::caffe::BlobProto blob;
  if (!blob.ParseFromIstream(&file))
    fail(path, "not a BlobProto, or truncated. Make it again: poseidon-data mean.");
  mean_image mean{image_shape(path, blob), {blob.data().begin(), blob.data().end()}};
  if (mean.values.empty()) mean.values.assign(blob.double_data().begin(), blob.double_data().end());
  if (static_cast<std::int64_t>(mean.values.size()) != count(mean.shape))
    fail(path, "is " + to_string(mean.shape) + " and has " + std::to_string(mean.values.size()) +
                   " values. Make it again: poseidon-data mean.");
  return mean;
}

void write_mean(const std::filesystem::path& path, const mean_image& mean) {
  ::caffe::BlobProto blob;
  blob.set_num(1);
  blob.set_channels(static_cast<std::int32_t>(mean.shape.at(0)));
  blob.set_height(static_cast<std::int32_t>(mean.shape.at(1)));
  blob.set_width(static_cast<std::int32_t>(mean.shape.at(2)));
  blob.mutable_data()->Add(mean.values.begin(), mean.values.end());
  write_atomically(path, blob);
}

std::vector<double> channel_means(const mean_image& mean) {
  const auto channels = static_cast<std::size_t>(mean.shape.at(0));
  const auto each = mean.values.size() / channels;
  std::vector<double> means(channels);
  for (std::size_t i = 0; i < mean.values.size(); ++i)
    means[i / each] += static_cast<double>(mean.values[i]);
  for (auto& sum : means) sum /= static_cast<double>(each);
  return means;
}

mean_image mean_of(const image_store& images, const std::function<void(std::uint64_t)>& progress) {
  std::vector<double> sum(static_cast<std::size_t>(count(images.image_shape())));
  image_scratch scratch;
  for (std::uint64_t n = 0; n < images.size(); ++n) {
    const auto one = images.get(n, scratch);
    try {
      require_shape(one, images.image_shape());
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(images.where(n) + " " + e.what() + ".");
    }
    for (std::size_t i = 0; i < one.bytes.size(); ++i) sum[i] += one.bytes[i];
    for (std::size_t i = 0; i < one.floats.size(); ++i)
      sum[i] += static_cast<double>(one.floats[i]);
    if (progress) progress(n + 1);
  }
  mean_image mean{images.image_shape(), {}};
  mean.values.reserve(sum.size());
  for (const double s : sum)
    mean.values.push_back(static_cast<float>(s / static_cast<double>(images.size())));
  return mean;
}

}  // namespace poseidon
