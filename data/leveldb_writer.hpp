// data/leveldb_writer.hpp - makes a new LevelDB folder, all or nothing.
#pragma once
#include "data/record_writer.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace leveldb {
class DB;
class Status;
class WriteBatch;
}  // namespace leveldb

namespace poseidon {

/// Writes `folder`.partial and renames it in finish().
class leveldb_writer final : public record_writer {
 public:
  /// Errors   std::runtime_error if `folder` exists and `replace` is false, or what the system
  /// said.
  leveldb_writer(std::filesystem::path folder, bool replace);
  leveldb_writer(const leveldb_writer&) = delete;
  leveldb_writer& operator=(const leveldb_writer&) = delete;
  ~leveldb_writer() override;

  void put(std::string_view key, std::string_view value) override;
  void seal() override;
  void finish() override;

 private:
  void write(bool sync);
  void check(const leveldb::Status& status, const char* doing) const;

  new_folder folder_;
  std::unique_ptr<leveldb::DB> database_;
  std::unique_ptr<leveldb::WriteBatch> batch_;
  std::string last_key_;
  std::size_t records_ = 0;
};

}  // namespace poseidon
