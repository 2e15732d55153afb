// data/lmdb_file.hpp
//
// Reads an LMDB database without trusting it. liblmdb follows the offsets and page numbers that it
// finds in the file, so a flipped bit or a lost tail ends the process (SIGSEGV, SIGBUS, assert).
// This class walks the same B+tree once, checks every step against the bytes of the file, and keeps an
// index: any thread then finds record n in key order by two additions.
//
// Reads the file as a snapshot, like liblmdb with MDB_RDONLY | MDB_NOLOCK: no process may write to it
// meanwhile. Source   File format of LMDB 0.9 on 64-bit little-endian machines (data version 1).
#pragma once
#include "data/mapped_file.hpp"
#include "data/opening.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

struct lmdb_record {
  std::string_view key;
  std::span<const std::uint8_t> value;
};

class lmdb_file {
 public:
  /// `path` is a folder with data.mdb, or the file itself (MDB_NOSUBDIR).
  /// Cost     touches every leaf page once; 24 bytes of index per record.
  /// Errors   std::runtime_error naming the file, the page and both values: missing, truncated, not an
  ///          LMDB, corrupt.
  explicit lmdb_file(const std::filesystem::path& path, const opening_progress& progress = {});

  [[nodiscard]] std::size_t size() const { return index_.size(); }
  [[nodiscard]] lmdb_record at(std::size_t n) const;  ///< n-th in key order; n < size()
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  struct entry {
    std::uint64_t key_offset;
    std::uint64_t value_offset;
    std::uint32_t value_bytes;
    std::uint16_t key_bytes;
  };
  std::filesystem::path path_;
  mapped_file file_;
  std::vector<entry> index_;

  friend class lmdb_walk;
};

}  // namespace poseidon
