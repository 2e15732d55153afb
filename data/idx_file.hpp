// data/idx_file.hpp - the IDX format of MNIST and its descendants: unsigned bytes with their
// extents.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace poseidon {

struct idx_file {
  std::vector<std::int64_t> extents;  ///< {images, rows, columns} or {labels}
  std::vector<std::uint8_t> content;  ///< the whole file, unpacked
  std::size_t header_bytes = 0;

  [[nodiscard]] std::span<const std::uint8_t> values() const {
    return std::span(content).subspan(header_bytes);
  }
};

/// Reads a file of unsigned bytes with `axes` axes, gzip or plain by its first two bytes.
/// Errors   std::runtime_error: magic (both values), truncated or too long (both sizes), gzip
/// damage.
[[nodiscard]] idx_file read_idx(const std::filesystem::path& path, std::size_t axes);

/// Reads a file with any number of axes.
[[nodiscard]] idx_file read_idx(const std::filesystem::path& path);

/// Whether the file begins as gzip or as an IDX images file, and so should be read by read_idx.
[[nodiscard]] bool looks_like_idx(const std::filesystem::path& path);

}  // namespace poseidon
