// data/lmdb_writer.hpp - makes a new LMDB folder, all or nothing.
#pragma once
#include "data/record_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

struct MDB_env;
struct MDB_txn;

namespace poseidon {

/// Writes `folder`.partial and renames it in finish(); a writer that dies before leaves `folder` as
/// it was.
class lmdb_writer final : public record_writer {
 public:
  /// `expected_bytes`: keys and values together, an upper bound; the file grows as it is written.
  /// Errors   std::runtime_error if `folder` exists and `replace` is false, or what the system
  /// said.
  lmdb_writer(std::filesystem::path folder, std::uint64_t records, std::uint64_t expected_bytes,
              bool replace);
  lmdb_writer(const lmdb_writer&) = delete;
  lmdb_writer& operator=(const lmdb_writer&) = delete;
  ~lmdb_writer() override;

  void put(std::string_view key, std::string_view value) override;
  void seal() override;
  void finish() override;

 private:
  void check(int status, const char* doing) const;
  void close() noexcept;

  new_folder folder_;
  MDB_env* environment_ = nullptr;
  MDB_txn* transaction_ = nullptr;
  unsigned database_ = 0;
  std::size_t records_ = 0;
};

}  // namespace poseidon
