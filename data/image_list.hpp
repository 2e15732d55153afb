// data/image_list.hpp
//
// Picture files: named by a text file, one "path label" a line, as Caffe's ImageData and its
// convert_imageset read them (the label is what follows the last space; paths may have spaces), or
// in a folder per class.
#pragma once
#include "data/image_store.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

struct image_list_options {
  std::string root;         ///< put before each path as it is: end it with a slash
  std::int64_t height = 0;  ///< resized to this; both 0: as the files are
  std::int64_t width = 0;
  picture_colour colour = picture_colour::colour;
  std::optional<std::uint64_t> order_seed;  ///< if given, the lines are taken in a random order
  /// From `root` and a line's path to the file; null: as it stands.
  std::function<std::filesystem::path(const std::string&)> locate;
  bool compare_files = false;  ///< find out image::as_in_file: decodes each picture twice
  bool may_skip = false;       ///< image_shape() is of the first picture that can be read
};

/// Pictures are read and decoded when they are asked for; the first one now, for the shape.
/// Errors   std::runtime_error: no such list, an empty one, a line without a label, and for a
///          picture that cannot be read list, line, file and reason.
[[nodiscard]] std::shared_ptr<const image_store> open_image_list(const std::filesystem::path& list,
                                                                 const image_list_options& options);

struct image_folder {
  std::shared_ptr<const image_store> images;
  std::vector<std::string> classes;  ///< by label
  std::uint64_t other_files = 0;     ///< that are no pictures by their names
};

/// A folder per class, labels in the order of their names; within a class the pictures (.jpg, .jpeg, .png, .ppm,
/// .pgm) in the order of theirs, those in folders below it too. Names that begin with a dot do not count.
/// options.root and options.locate are not looked at.
/// Errors   std::runtime_error: no such folder, no folders in it, a class without pictures; as above.
[[nodiscard]] image_folder open_image_folder(const std::filesystem::path& folder,
                                             const image_list_options& options);

/// The whole of a file.   Errors   std::runtime_error with the system's reason, no path.
void read_whole(const std::filesystem::path& path, std::vector<std::uint8_t>& to);

}  // namespace poseidon
