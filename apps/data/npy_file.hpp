// apps/data/npy_file.hpp - NumPy's format for one array of float32, C order.
#pragma once
#include "models/shape.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace poseidon::app {

/// The header: magic, version 1.0, a dictionary, padded to a multiple of 64 bytes.
/// Source   NumPy's documentation, numpy.lib.format.
[[nodiscard]] std::string npy_header(const shape& extents);

struct npy_file {
  shape extents;
  std::string kind;              ///< "<f4", "|u1", ...
  bool column_major = false;     ///< Fortran's order
  std::size_t header_bytes = 0;  ///< values begin here
};

[[nodiscard]] bool is_npy(const std::filesystem::path& path);

/// Errors   std::runtime_error: not of this format, a damaged header, a size that does not fit shape and kind.
[[nodiscard]] npy_file read_npy_header(const std::filesystem::path& path);

}  // namespace poseidon::app
