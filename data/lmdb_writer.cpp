#include "data/lmdb_writer.hpp"

#include <lmdb.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace poseidon {
namespace {
constexpr std::size_t records_per_transaction = 1000;

/// The largest space that the records can need: half-full pages, each value on pages of its own.
std::uint64_t map_bytes(std::uint64_t records, std::uint64_t expected_bytes) {
  return (std::uint64_t{64} << 20) + 2 * expected_bytes + records * 8192;
}

bool is_lmdb_file(const std::filesystem::path& name) {
  return name == "data.mdb" || name == "lock.mdb";
}
}  // namespace

lmdb_writer::lmdb_writer(std::filesystem::path folder, std::uint64_t records,
                         std::uint64_t expected_bytes, bool replace)
    : folder_(std::move(folder), replace, is_lmdb_file) {
  try {
    check(mdb_env_create(&environment_), "create it");
    check(mdb_env_set_mapsize(environment_, map_bytes(records, expected_bytes)), "set its size");
    // No other process knows the folder yet, so there is no lock file, and one sync at the end is enough.
    check(mdb_env_open(environment_, folder_.partial().c_str(),
                       MDB_NOLOCK | MDB_NOSYNC | MDB_NOMETASYNC, 0664),
          "open it");
    check(mdb_txn_begin(environment_, nullptr, 0, &transaction_), "begin a transaction");
    check(mdb_dbi_open(transaction_, nullptr, 0, &database_), "open its table");
  } catch (...) {
    close();
    throw;
  }
}

lmdb_writer::~lmdb_writer() {
  close();
}

void lmdb_writer::close() noexcept {
  if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  if (environment_ != nullptr) mdb_env_close(environment_);
  transaction_ = nullptr;
  environment_ = nullptr;
}

void lmdb_writer::check(int status, const char* doing) const {
  if (status == MDB_SUCCESS) return;
  std::string text = folder_.name().string() + ": cannot " + doing + " after " +
                     std::to_string(records_) + " records: " + mdb_strerror(status) + ".";
  // EIO as well: that is how LMDB calls a write that only began to fit.
  if (status == ENOSPC || status == EDQUOT || status == EFBIG || status == EIO) {
    std::error_code unknown;
    const auto space = std::filesystem::space(folder_.partial(), unknown);
    if (!unknown) text += " That disk has " + std::to_string(space.available >> 20) + " MiB free.";
    text += " Make room and start again; nothing was left behind.";
  }
  if (status == MDB_KEYEXIST) text += " Keys must rise from record to record.";
  throw std::runtime_error(text);
}

void lmdb_writer::put(std::string_view key, std::string_view value) {
  MDB_val k{key.size(), const_cast<char*>(key.data())};
  MDB_val v{value.size(), const_cast<char*>(value.data())};
  check(mdb_put(transaction_, database_, &k, &v, MDB_APPEND), "write");
  if (++records_ % records_per_transaction != 0) return;
  check(mdb_txn_commit(std::exchange(transaction_, nullptr)), "commit");
  check(mdb_txn_begin(environment_, nullptr, 0, &transaction_), "begin a transaction");
}

void lmdb_writer::seal() {
  if (environment_ == nullptr) return;
  check(mdb_txn_commit(std::exchange(transaction_, nullptr)), "commit");
  check(mdb_env_sync(environment_, 1), "sync");
  close();
}

void lmdb_writer::finish() {
  seal();
  folder_.give_name();
}

}  // namespace poseidon
