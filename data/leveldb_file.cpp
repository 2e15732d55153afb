#include "data/leveldb_file.hpp"

#include "data/fail.hpp"
#include "models/first_bytes.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <leveldb/db.h>
#include <stdexcept>
#include <unistd.h>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

bool is_table(const fs::path& file) {
  return file.extension() == ".ldb" || file.extension() == ".sst";
}

/// Every record's checksum is compared.
leveldb::ReadOptions checked() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

/// LevelDB names files of the view in its messages; the user knows the original.
std::string said(const leveldb::Status& status, const leveldb_view& view, const fs::path& path) {
  auto text = status.ToString();
  const auto inside = view.path().string();
  for (auto at = text.find(inside); at != std::string::npos; at = text.find(inside, at + 1))
    text.replace(at, inside.size(), path.string());
  return text;
}

}  // namespace

leveldb_view::leveldb_view(const fs::path& database) {
  if (!fs::is_directory(database)) fail(database, "no such folder.");
  if (!fs::exists(database / "CURRENT"))
    fail(database, "a folder without CURRENT, so not a LevelDB.");
  for (const auto& entry : fs::directory_iterator(database))
    if (const auto pointer = lfs_pointer_at(entry.path()); !pointer.empty())
      fail(entry.path(), "this is " + pointer + ".");
  auto name = (fs::temp_directory_path() / "poseidon-leveldb-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    fail(name, std::string("cannot make a folder to view a LevelDB through: ") +
                   std::strerror(errno) + ". TMPDIR chooses another place.");
  path_ = name;
  try {
    for (const auto& entry : fs::directory_iterator(database)) {
      const auto file = entry.path().filename();
      if (is_table(file))
        fs::create_symlink(fs::absolute(entry.path()), path_ / file);
      else if (entry.is_regular_file() && file != "LOCK" && file != "LOG" && file != "LOG.old")
        fs::copy_file(entry.path(), path_ / file);
    }
    for (const auto& entry :
         fs::directory_iterator(path_))  // a copy of a read-only file is one too
      if (!entry.is_symlink())
        fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    fail(database, std::string("cannot be viewed: ") + e.what() + ".");
  }
}

leveldb_view::~leveldb_view() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

leveldb_file::leveldb_file(const fs::path& path, const opening_progress& progress)
    : path_(path), view_(path) {
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::DB* opened = nullptr;
  const auto status = leveldb::DB::Open(options, view_.path().string(), &opened);
  database_.reset(opened);
  if (!status.ok())
    fail(path_, "a LevelDB that cannot be opened: " + said(status, view_, path_) +
                    ". Is another program writing it? If not, it is damaged.");
  auto scan = checked();
  scan.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> at(database_->NewIterator(scan));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    keys_.push_back(at->key().ToString());
    if (progress) progress(keys_.size(), 0);
  }
  if (!at->status().ok())
    fail(path_, "a LevelDB that is damaged after " + std::to_string(keys_.size()) +
                    " records: " + said(at->status(), view_, path_) + ". Copy it again.");
}

leveldb_file::~leveldb_file() = default;

void leveldb_file::read(std::size_t n, std::vector<std::uint8_t>& value) const {
  std::string record;
  const auto status = database_->Get(checked(), keys_[n], &record);
  if (!status.ok()) throw std::runtime_error("cannot be read: " + said(status, view_, path_));
  value.assign(record.begin(), record.end());
}

}  // namespace poseidon
