// data/parts.hpp
//
// Cuts training data into parts, one for each node's own disk, and joins parts again: databases record by record, without
// looking into the records, and lists of files line by line. Part k of "x" is called "x_k", as in
// Petuum's partition_data.
#pragma once
#include "data/database.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace poseidon {

enum class part_order {
  round_robin,  ///< blocks in turn: block b goes to part b % parts
  contiguous    ///< part k is the k-th of equal pieces
};

struct partition_options {
  std::uint64_t parts = 2;
  part_order order = part_order::round_robin;
  std::uint64_t block = 1;  ///< records that stay together, round_robin only
  bool replace = false;     ///< whether existing parts are replaced
  /// Called from time to time with the number of records done.
  std::function<void(std::uint64_t)> progress;
};

[[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& prefix,
                                              std::uint64_t part);

/// The part that record n of `records` goes to.
[[nodiscard]] std::uint64_t part_of(std::uint64_t n, std::uint64_t records,
                                    const partition_options& options);

/// Each record goes to exactly one part, with its key; a part keeps the order of the database.
/// Writes   part_path(prefix, 0 ... parts - 1), of the same kind: all of them or none.
/// Errors   std::runtime_error: a part without records, a part that exists, disk full, a damaged record.
/// Returns  the number of records by part.
std::vector<std::uint64_t> partition_database(const record_reader& from,
                                              const std::filesystem::path& prefix,
                                              const partition_options& options);

/// Cuts a text file by lines; empty lines are left out.
std::vector<std::uint64_t> partition_list(const std::filesystem::path& list,
                                          const std::filesystem::path& prefix,
                                          const partition_options& options);

/// Joins the parts that partition_database() made: all records in the order of their keys.
/// Writes   `out`, all or nothing.
/// Errors   std::runtime_error: a key that two parts have; as above.
/// Returns  the number of records.
std::uint64_t merge_databases(const std::vector<std::filesystem::path>& parts,
                              const std::filesystem::path& out, bool replace,
                              const std::function<void(std::uint64_t)>& progress = {});

}  // namespace poseidon
