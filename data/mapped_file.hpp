// data/mapped_file.hpp - a whole file as read-only memory, paged in by the system as it is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace poseidon {

/// Move-only. A file that another process shortens while it is mapped ends this one with SIGBUS:
/// sources are written aside and renamed (lmdb_writer), which never shortens a file that someone
/// has open.
class mapped_file {
 public:
  /// Errors   std::runtime_error "path: what the system said".
  explicit mapped_file(const std::filesystem::path& path);
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&&) = delete;
  ~mapped_file();

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace poseidon
