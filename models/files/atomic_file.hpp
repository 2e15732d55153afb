// models/files/atomic_file.hpp - writes files whole or not at all.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace poseidon {

// Each of these writes beside the target, syncs, then renames: a reader sees the old file or the new one, whole.
// Errors   std::runtime_error with path and the system's reason (disk full, permission); nothing is
//          left, and what was there before is unchanged.

/// `fill` writes to the descriptor and returns 0 or an errno.
void write_atomically(const std::filesystem::path& path, const std::function<int(int)>& fill);
void write_atomically(const std::filesystem::path& path, std::span<const char> bytes);

using piece_writer = std::function<void(std::string_view)>;
/// `fill` calls the writer for each piece of a text that is too large to be built at once.
void write_in_pieces(const std::filesystem::path& path,
                     const std::function<void(const piece_writer&)>& fill);

/// What all files of ours that exist whole or not at all are made with: a new file that finish() renames to its target.
/// Without finish() it is removed. Its functions return 0 or an errno; the caller words the error.
class temporary_file {
 public:
  /// Under a hidden name beside `target` that no other process uses.
  explicit temporary_file(std::filesystem::path target);
  /// Under the name `beside`, in place of what a writer that was killed has left there.
  temporary_file(std::filesystem::path target, std::filesystem::path beside);
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file();

  [[nodiscard]] int open_error() const { return open_error_; }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int write(std::string_view bytes);
  [[nodiscard]] std::uint64_t written() const { return written_; }  ///< bytes, by write()
  [[nodiscard]] int sync();
  [[nodiscard]] int close();  ///< close() too can be where a disk says that it is full
  [[nodiscard]] int rename();

 private:
  std::filesystem::path target_, path_;
  int fd_ = -1, open_error_ = 0;
  int lock_ = -1;  // says to remove_leftovers() until the end that the file is in use
  std::uint64_t written_ = 0;
  bool renamed_ = false;
};

/// Removes the hidden files that temporary_file leaves beside targets whose names begin with `stem`'s when its process is killed.
/// Files that a living process still writes, on whichever machine, stay: they are locked.
void remove_leftovers(const std::filesystem::path& stem) noexcept;

/// Renames a file or folder and syncs the folder that holds it: only then the new name survives a power cut.
/// Returns 0 or an errno.
[[nodiscard]] int rename_durably(const std::filesystem::path& from,
                                 const std::filesystem::path& to);

/// Gives a whole file a second name, which takes no time and no space: where one of the names gets another file by
/// write_atomically, the other keeps this one.
/// Returns 0 or an errno, EEXIST where the name is there, others on file systems without links.
[[nodiscard]] int link_durably(const std::filesystem::path& file,
                               const std::filesystem::path& second_name);

}  // namespace poseidon
