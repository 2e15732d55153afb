#include "data/leveldb_writer.hpp"

#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
constexpr std::size_t records_per_batch = 1000;

bool is_leveldb_file(const std::filesystem::path& name) {
  const auto text = name.string(), extension = name.extension().string();
  return text == "CURRENT" || text == "LOCK" || text == "LOG" || text == "LOG.old" ||
         text.rfind("MANIFEST-", 0) == 0 || extension == ".ldb" || extension == ".sst" ||
         extension == ".log" || extension == ".dbtmp";
}
}  // namespace

leveldb_writer::leveldb_writer(std::filesystem::path folder, bool replace)
    : folder_(std::move(folder), replace, is_leveldb_file),
      batch_(std::make_unique<leveldb::WriteBatch>()) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.max_open_files = 100;           // as Caffe makes them
  options.write_buffer_size = 256 << 20;  // fewer, larger tables
  leveldb::DB* opened = nullptr;
  const auto status = leveldb::DB::Open(options, folder_.partial().string(), &opened);
  database_.reset(opened);
  check(status, "create it");
}

leveldb_writer::~leveldb_writer() = default;

void leveldb_writer::check(const leveldb::Status& status, const char* doing) const {
  if (status.ok()) return;
  throw std::runtime_error(folder_.name().string() + ": cannot " + doing + " after " +
                           std::to_string(records_) + " records: " + status.ToString() +
                           ". Nothing was left behind.");
}

void leveldb_writer::put(std::string_view key, std::string_view value) {
  if (records_ > 0 && key <= last_key_)
    throw std::runtime_error(folder_.name().string() + ": cannot write after " +
                             std::to_string(records_) +
                             " records: Keys must rise from record to record.");
  last_key_ = key;
  batch_->Put({key.data(), key.size()}, {value.data(), value.size()});
  if (++records_ % records_per_batch == 0) write(false);
}

void leveldb_writer::write(bool sync) {
  leveldb::WriteOptions options;
  options.sync = sync;
  check(database_->Write(options, batch_.get()), "write");
  batch_->Clear();
}

void leveldb_writer::seal() {
  if (database_ == nullptr) return;
  write(true);
  // Into tables now, so that no reader has to do it again and again.
  database_->CompactRange(nullptr, nullptr);
  database_.reset();
}

void leveldb_writer::finish() {
  seal();
  folder_.give_name();
}

}  // namespace poseidon
