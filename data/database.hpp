// data/database.hpp - folders of records by key, LMDB or LevelDB, independent of the records' content.
#pragma once
#include "data/opening.hpp"
#include "data/record_writer.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

enum class database_kind { lmdb, leveldb };
[[nodiscard]] const char* name_of(database_kind kind);  ///< "LMDB", "LevelDB"

/// Thread-safe. Records in the order of their keys.
class record_reader {
 public:
  virtual ~record_reader() = default;
  [[nodiscard]] virtual database_kind kind() const = 0;
  [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;  ///< may be 0
  [[nodiscard]] virtual std::string key(std::uint64_t n) const = 0;
  /// The n-th record, n < size(): in the file itself, or in `scratch`.
  /// Errors   std::runtime_error without path and key: a damaged LevelDB.
  [[nodiscard]] virtual std::span<const std::uint8_t> value(
      std::uint64_t n, std::vector<std::uint8_t>& scratch) const = 0;
  /// Call it when records have been used.   Errors   std::runtime_error: another program may have changed them before.
  virtual void check() const {}
};

/// An LMDB folder or its data.mdb, or a LevelDB folder, by its content.
/// Errors   std::runtime_error: nothing there, a folder that is neither, and what lmdb_file and leveldb_file say.
[[nodiscard]] std::shared_ptr<const record_reader> open_database(
    const std::filesystem::path& path, const opening_progress& progress = {});

/// Whether the path looks like a database: a folder with data.mdb or CURRENT, or a file that begins as an LMDB does.
[[nodiscard]] bool is_database(const std::filesystem::path& path);

/// An upper bound of the data to be written; it reserves addresses, not disk space.
struct database_limits {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  ///< size of keys and values together
};

/// Errors   std::runtime_error: `folder` exists and `replace` is false, or what the system said.
[[nodiscard]] std::unique_ptr<record_writer> make_database(database_kind kind,
                                                           const std::filesystem::path& folder,
                                                           database_limits limits, bool replace);

}  // namespace poseidon
