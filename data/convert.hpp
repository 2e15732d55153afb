// data/convert.hpp - from any image_store to the database of Datum that Caffe's tools write.
#pragma once
#include "data/database.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace poseidon {

class image_store;

/// as_the_file: a JPEG stays a JPEG, everything else becomes PNG. A file that already holds the right pixels in the
/// right encoding is stored unchanged.
enum class datum_encoding { none, png, jpeg, as_the_file };

struct convert_options {
  bool replace = false;  ///< whether an existing database is replaced
  database_kind kind = database_kind::lmdb;
  /// Encoding of images with 1 or 3 channels of bytes.
  datum_encoding encoding = datum_encoding::none;
  int key_digits = 8;
  bool one_shape = false;                       ///< refuse images of another shape than the first
  std::function<void(std::uint64_t)> progress;  ///< called after each image with the number done
  /// If set, an image that cannot be read is left out and reported here with place and reason.
  std::function<void(const std::string&)> skipped;
  /// If set, is told of each image that was read although something is wrong with its file, with place and reason.
  std::function<void(const std::string&)> warned;
};

/// Keys are positions, zero-padded, so that their order is the order of the images; the image's own
/// name follows, if it has one, as convert_imageset writes them ("00000012_cat.jpg"). What is left out
/// leaves a gap in them, as there.
///
/// Writes   `folder`, all or nothing.
/// Errors   std::runtime_error: `folder` exists, disk full, a record that cannot be read, no record that can.
/// Returns  how many were written.
std::uint64_t convert(const image_store& images, const std::filesystem::path& folder,
                      const convert_options& options);

}  // namespace poseidon
