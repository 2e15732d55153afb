// data/new_file.hpp - writes a file in pieces, whole or not at all.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace poseidon {

/// Written as "x.partial" and renamed in finish().
class new_file {
 public:
  /// Errors   std::runtime_error: the file exists and `replace` is false, or what the system said.
  new_file(std::filesystem::path name, bool replace);
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  ~new_file();  ///< without finish(): removes what was written

  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  /// Errors   std::runtime_error naming file, bytes written and the cause (disk full).
  void write(std::string_view bytes);
  void write(std::span<const float> values);  ///< little-endian float32
  void seal();                                ///< to disk
  void finish();                              ///< seals, and gives the file its name

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::filesystem::path name_, partial_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
  bool named_ = false;
};

}  // namespace poseidon
