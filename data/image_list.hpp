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
  std::string root;         ///< prefixed to each path without a slash: end it with one
  std::int64_t height = 0;  ///< images are resized to this; both 0: not resized
  std::int64_t width = 0;
  picture_colour colour = picture_colour::colour;
  std::optional<std::uint64_t> order_seed;  ///< if set, the lines are used in a random order
  /// Finds the file of `root` and a line's path; null: uses the path unchanged.
  std::function<std::filesystem::path(const std::string&)> locate;
  bool compare_files = false;  ///< determine image::as_in_file: decodes each picture twice
  bool may_skip = false;       ///< image_shape() is that of the first readable picture
};

/// Pictures are read and decoded on demand; the first one now, for the shape.
/// Errors   std::runtime_error: no such list, an empty one, a line without a label, and for a
///          picture that cannot be read list, line, file and reason.
[[nodiscard]] std::shared_ptr<const image_store> open_image_list(const std::filesystem::path& list,
                                                                 const image_list_options& options);

struct image_folder {
  std::shared_ptr<const image_store> images;
  std::vector<std::string> classes;  ///< by label
  std::uint64_t other_files = 0;     ///< number of files whose names are not those of pictures
};

/// A folder per class, labels in the order of their names; within a class the pictures (by their
/// endings, picture_endings) in the order of their names, including folders below it. Names that begin with a dot are ignored, and so are
/// options.root and options.locate.
/// Errors   std::runtime_error: no such folder, no folders in it, a class without pictures; as above.
[[nodiscard]] image_folder open_image_folder(const std::filesystem::path& folder,
                                             const image_list_options& options);

/// The whole of a file.   Errors   std::runtime_error with the system's reason, no path.
void read_whole(const std::filesystem::path& path, std::vector<std::uint8_t>& to);

}  // namespace poseidon
