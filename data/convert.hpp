// data/convert.hpp - from any image_store to the database of Datum that Caffe's tools write.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

namespace poseidon {

class image_store;

enum class database_kind { lmdb, leveldb };
enum class datum_encoding { none, png, jpeg };

struct convert_options {
  bool replace = false;  ///< a database that is there already
  database_kind kind = database_kind::lmdb;
  datum_encoding encoding = datum_encoding::none;  ///< of images of 1 or 3 channels of bytes
  std::function<void(std::uint64_t)> progress;     ///< now and then, with the images done
};

/// Keys are positions, zero-padded to 8 digits, so that their order is the order of the images; the
/// image's own name follows, if it has one, as convert_imageset writes them ("00000012_cat.jpg").
///
/// Writes   `folder`, all or nothing.
/// Errors   std::runtime_error: `folder` exists, disk full, a record that cannot be read.
void convert(const image_store& images, const std::filesystem::path& folder,
             const convert_options& options);

}  // namespace poseidon
