// apps/data/feature_writer.hpp - writes features: a database as Caffe's extract_features makes, or an array.
#pragma once
#include "models/shape.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poseidon::app {

/// Writes the features of one blob row by row. The target appears in finish().
class feature_writer {
 public:
  virtual ~feature_writer() = default;
  /// `values`: one row. `label` of its image; 0 where there is none.
  virtual void add(std::span<const float> values, std::int32_t label) = 0;
  /// Writes everything to disk: afterwards a full disk cannot fail any more.
  virtual void seal() = 0;
  virtual void finish() = 0;  ///< gives it its name
};

struct feature_target {
  std::string format;  ///< one of feature_formats()
  std::filesystem::path path;
  shape row;                ///< shape of one image's features
  std::uint64_t first = 0;  ///< number of the first row over all parts
  std::uint64_t rows = 0;
  bool replace = false;
};

/// lmdb, leveldb: a Datum of channels, height, width and float_data for each row, under its number in ten digits, as
/// Caffe writes, and with the image's label, as Petuum's Caffe does. npy: float32 [rows, row...], NumPy's format.
/// hdf5: datasets "features" (the same array) and "label". csv: a line for each row, its label first.
[[nodiscard]] const std::vector<std::string>& feature_formats();

/// Errors   std::runtime_error: something is there and `replace` is false, or what the system said.
[[nodiscard]] std::unique_ptr<feature_writer> make_feature_writer(const feature_target& target);

/// Puts the parts of one array together in this order; databases are merged by data/parts.hpp.
/// Errors   std::runtime_error: a part that is not whole, rows of another shape than in the first part, no part of a
///          format that is known.
/// Returns  the number of rows.
std::uint64_t merge_features(const std::vector<std::filesystem::path>& parts,
                             const std::filesystem::path& out, bool replace);

}  // namespace poseidon::app
