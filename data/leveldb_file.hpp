// data/leveldb_file.hpp
//
// Reads a LevelDB, Caffe's default backend, without locking others out. LevelDB allows one process per
// database and writes into its folder even when it only reads. So a view is opened instead: a folder
// under the system's temporary one with links to the tables, which LevelDB never changes, and copies of
// the small files that it does change. Any number of nodes may read one database at the same time, also
// from a read-only disk; no process may write to it meanwhile.
//
// LevelDB does not store its number of records: opening reads the whole database once. Convert large
// sets to an LMDB, which opens quickly (poseidon-data convert db).
#pragma once
#include "data/opening.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace leveldb {
class DB;
}

namespace poseidon {

/// A folder that its owner's destructor removes.
class leveldb_view {
 public:
  explicit leveldb_view(const std::filesystem::path& database);
  leveldb_view(const leveldb_view&) = delete;
  leveldb_view& operator=(const leveldb_view&) = delete;
  ~leveldb_view();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class leveldb_file {
 public:
  /// Errors   std::runtime_error naming the folder: missing, not a LevelDB, damaged.
  explicit leveldb_file(const std::filesystem::path& path, const opening_progress& progress = {});
  leveldb_file(const leveldb_file&) = delete;
  leveldb_file& operator=(const leveldb_file&) = delete;
  ~leveldb_file();

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  [[nodiscard]] const std::string& key(std::size_t n) const {
    return keys_[n];
  }  ///< in rising order
  /// Overwrites `value` with the n-th record.   Errors   std::runtime_error: damaged.
  void read(std::size_t n, std::vector<std::uint8_t>& value) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  leveldb_view view_;
  std::unique_ptr<leveldb::DB> database_;
  std::vector<std::string> keys_;
};

}  // namespace poseidon
