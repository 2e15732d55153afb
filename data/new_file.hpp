// data/new_file.hpp - writes a file in pieces, whole or not at all.
#pragma once
#include "models/files/atomic_file.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace poseidon {

/// Written as "x.partial" and renamed in finish(); without finish() it is removed.
class new_file {
 public:
  /// Errors   std::runtime_error: the file exists and `replace` is false, or what the system said.
  new_file(std::filesystem::path name, bool replace);

  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  [[nodiscard]] const std::filesystem::path& partial() const { return file_->path(); }
  /// Errors   std::runtime_error naming file, bytes written and the cause (disk full).
  void write(std::string_view bytes);
  void write(std::span<const float> values);  ///< little-endian float32
  void seal();                                ///< to disk
  void finish();                              ///< seals, and gives the file its name

 private:
  void check(int error, const char* doing) const;

  std::filesystem::path name_;
  std::optional<temporary_file> file_;
};

}  // namespace poseidon
