// apps/bare/picture_source.hpp
//
// Picture files as the samples of a deploy net's input, prepared as Caffe's Classifier does it: resized as a whole, one crop
// of the input's size from the centre or ten (the corners and the centre, and their mirror images), minus the mean.
#pragma once
#include "data/mean_file.hpp"
#include "data/picture.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon::app {

struct picture_request {
  std::vector<std::filesystem::path> files;
  std::optional<mean_image> mean;
  std::vector<float> mean_values;  ///< by channel, or one for all
  float scale = 1;                 ///< of the values, after the mean
  /// To which pictures are resized. 0: as the mean image, or 256x256 for an input of 192 to 255, or as the input.
  std::int64_t height = 0, width = 0;
  bool oversample = false;  ///< ten crops, where a resized picture is larger than the input
  bool may_skip = false;    ///< a picture that cannot be read becomes zeros and a failure()
};

/// The picture files (by their names) in `paths`, files and folders, including folders below them, in the order of their
/// names within a folder.
/// Errors   spec_error: nothing of that name, a folder without pictures.
[[nodiscard]] std::vector<std::filesystem::path> find_pictures(
    const std::vector<std::string>& paths);

class picture_source : public sample_source {
 public:
  /// `sample`: the input's shape without its batch.
  /// Errors   spec_error: the input does not take pictures, or a mean of other channels.
  picture_source(picture_request request, const shape& sample);

  [[nodiscard]] std::uint64_t size() const override { return request_.files.size() * crops_; }
  [[nodiscard]] const std::vector<shape>& sample_shapes() const override { return shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override;

  /// 1 or 10. Sample n is crop n % crops() of picture n / crops().
  [[nodiscard]] std::uint64_t crops() const { return crops_; }
  /// Why a picture could not be read; empty for one that could, or has not been filled.
  [[nodiscard]] std::string failure(std::uint64_t picture) const;
  /// What is wrong with the file of a picture that was read all the same; empty as above.
  [[nodiscard]] std::string warning(std::uint64_t picture) const;
  /// How pictures are prepared, for the user.
  [[nodiscard]] std::string describe() const;

 private:
  /// [channels, height, width], resized; the mean is subtracted if it has that size.
  using planes = std::vector<float>;
  [[nodiscard]] std::shared_ptr<const planes> prepared(std::uint64_t picture) const;
  [[nodiscard]] planes prepare(const std::filesystem::path& file, std::string& warning) const;

  picture_request request_;
  std::int64_t channels_ = 0, height_ = 0, width_ = 0;  // of the input
  std::uint64_t crops_ = 1;
  std::vector<shape> shapes_;
  enum class mean_kind { none, channel, whole, crop } mean_kind_ = mean_kind::none;

  mutable std::mutex mutex_;
  mutable std::deque<std::pair<std::uint64_t, std::shared_ptr<const planes>>> recent_;
  mutable std::map<std::uint64_t, std::string> failures_, warnings_;
};

}  // namespace poseidon::app
