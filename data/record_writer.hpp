// data/record_writer.hpp - writes a new database of records, all or nothing.
#pragma once
#include <filesystem>
#include <string_view>

namespace poseidon {

class record_writer {
 public:
  virtual ~record_writer() = default;  ///< without finish(): removes what was written
  /// Keys must rise. Errors   std::runtime_error naming folder, records written and the cause (disk
  /// full).
  virtual void put(std::string_view key, std::string_view value) = 0;
  /// Syncs everything to disk: afterwards a full disk cannot fail any more. Then finish().
  virtual void seal() = 0;
  /// Seals the database if necessary, and gives it its name.
  virtual void finish() = 0;
};

/// A folder that is filled under another name ("x.partial") and renamed when it is whole.
class new_folder {
 public:
  using file_test = bool (*)(const std::filesystem::path& file_name);

  /// `is_ours` tells files of a database from others: only a folder of nothing else is replaced.
  /// Errors   std::runtime_error if the folder exists and `replace` is false, or what the system
  ///          said.
  new_folder(std::filesystem::path name, bool replace, file_test is_ours);
  new_folder(const new_folder&) = delete;
  new_folder& operator=(const new_folder&) = delete;
  ~new_folder();  ///< without give_name(): removes what was written

  [[nodiscard]] const std::filesystem::path& name() const { return name_; }
  [[nodiscard]] const std::filesystem::path& partial() const { return partial_; }
  /// The files are synced and closed by now.
  void give_name();

 private:
  std::filesystem::path name_, partial_;
  bool replace_;
};

}  // namespace poseidon
