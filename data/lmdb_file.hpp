// data/lmdb_file.hpp
//
// Reads an LMDB database without trusting it. liblmdb follows the offsets and page numbers that it
// finds in the file, so a flipped bit or a lost tail ends the process (SIGSEGV, SIGBUS, assert).
// This class walks the same B+tree once, checks every step against the bytes of the file, and keeps an
// index: any thread then finds record n in key order by two additions.
//
// Reads the file as a snapshot: its newest transaction when it was opened. It takes no lock, and so no writer waits for it or keeps pages
// for it. A writer uses pages of that snapshot again from its third transaction after it on; from the second on, reading is refused with the
// writer's name. A record lies in the file, and a fast writer may change it between at() and its use: the next at(), or check(), says so. Source   File format of LMDB 0.9 on 64-bit little-endian machines (data version 1).
#pragma once
#include "data/mapped_file.hpp"
#include "data/opening.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
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
  /// The n-th in key order; n < size().   Errors   as check.
  [[nodiscard]] lmdb_record at(std::size_t n) const;
  /// All that was read before this call was the snapshot's.
  /// Errors   std::runtime_error, naming the writer: it has been written to since it was opened, and may change.
  void check() const;
  /// Keys are unsigned numbers of 4 or 8 bytes in this machine's order (MDB_INTEGERKEY).
  [[nodiscard]] bool has_integer_keys() const { return integer_keys_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  struct entry {
    std::uint64_t key_offset;
    std::uint64_t value_offset;
    std::uint32_t value_bytes;
    std::uint16_t key_bytes;
  };
  [[nodiscard]] lmdb_record record(std::size_t n) const;
  [[nodiscard]] std::uint64_t newest_transaction() const;
  [[nodiscard]] std::string being_written() const;

  std::filesystem::path path_;
  std::unique_ptr<const mapped_file> file_;
  std::vector<entry> index_;
  std::uint64_t transaction_ = 0;  // of the snapshot
  bool integer_keys_ = false;

  friend class lmdb_walk;
};

}  // namespace poseidon
