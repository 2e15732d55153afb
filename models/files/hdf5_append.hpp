// models/files/hdf5_append.hpp - an HDF5 file whose datasets grow along their first axis, on the disk.
#pragma once
#include "models/files/hdf5_file.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace poseidon {

class hdf5_appender {
 public:
  /// Replaces what is at `path`.   Errors   std::runtime_error with the library's reason.
  explicit hdf5_appender(const std::filesystem::path& path);

  /// Adds rows: `extents` with the rows in front. The first call makes the dataset. What was
  /// appended is in the file when this returns.
  /// Errors   std::invalid_argument: rows of another shape than before, another number of values;
  ///          std::runtime_error: a full disk.
  void append(const std::string& dataset, const shape& extents, std::span<const float> values);

 private:
  struct grown {
    hdf5_handle dataset;
    shape extents;
  };
  [[noreturn]] void fail(const std::string& dataset) const;
  [[nodiscard]] grown make(const std::string& dataset, const shape& extents) const;

  std::string name_;
  hdf5_handle file_;
  std::map<std::string, grown> datasets_;  // closed before the file
};

}  // namespace poseidon
