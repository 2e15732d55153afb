// data/convert.hpp - from any image_store to the LMDB of Datum that Caffe's tools write.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>

namespace poseidon {

class image_store;

struct convert_options {
  bool replace = false;                         ///< an LMDB that is there already
  std::function<void(std::uint64_t)> progress;  ///< now and then, with the images done
};

/// Keys are positions, zero-padded to 8 digits, so that their order is the order of the images.
///
/// Writes   `folder`, all or nothing.
/// Errors   std::runtime_error: `folder` exists, disk full, a record that cannot be read.
void convert(const image_store& images, const std::filesystem::path& folder,
             const convert_options& options);

}  // namespace poseidon
