// data/image_list.hpp
//
// Picture files named by a text file, one "path label" a line, as Caffe's ImageData and its
// convert_imageset read them. The label is what follows the last space; paths may have spaces.
#pragma once
#include "data/image_store.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace poseidon {

struct image_list_options {
  std::string root;         ///< put before each path as it is: end it with a slash
  std::int64_t height = 0;  ///< resized to this; both 0: as the files are
  std::int64_t width = 0;
  picture_colour colour = picture_colour::colour;
  std::optional<std::uint64_t> order_seed;  ///< if given, the lines are taken in a random order
  /// From `root` and a line's path to the file; null: as it stands.
  std::function<std::filesystem::path(const std::string&)> locate;
};

/// Pictures are read and decoded when they are asked for; the first one now, for the shape.
/// Errors   std::runtime_error: no such list, an empty one, a line without a label, and for a
///          picture that cannot be read list, line, file and reason.
[[nodiscard]] std::shared_ptr<const image_store> open_image_list(const std::filesystem::path& list,
                                                                 const image_list_options& options);

/// The whole of a file.   Errors   std::runtime_error with the system's reason, no path.
void read_whole(const std::filesystem::path& path, std::vector<std::uint8_t>& to);

}  // namespace poseidon
