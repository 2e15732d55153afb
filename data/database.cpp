#include "data/database.hpp"

#include "data/leveldb_file.hpp"
#include "data/leveldb_writer.hpp"
#include "data/lmdb_file.hpp"
#include "data/lmdb_writer.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

class lmdb_reader final : public record_reader {
 public:
  lmdb_reader(const fs::path& path, const opening_progress& progress) : file_(path, progress) {}
  database_kind kind() const override { return database_kind::lmdb; }
  const fs::path& path() const override { return file_.path(); }
  std::uint64_t size() const override { return file_.size(); }
  /// Of numbers the digits, as many as the largest has: an order of the alphabet, and text to show.
  std::string key(std::uint64_t n) const override {
    const auto key = file_.at(n).key;
    if (!file_.has_integer_keys()) return std::string(key);
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), std::min(key.size(), sizeof number));
    const auto digits = std::to_string(number);
    const std::size_t width = key.size() == 4 ? 10 : 20;
    return std::string(width - std::min(width, digits.size()), '0') + digits;
  }
  std::span<const std::uint8_t> value(std::uint64_t n, std::vector<std::uint8_t>&) const override {
    return file_.at(n).value;
  }
  void check() const override { file_.check(); }

 private:
  lmdb_file file_;
};

class leveldb_reader final : public record_reader {
 public:
  leveldb_reader(const fs::path& path, const opening_progress& progress) : file_(path, progress) {}
  database_kind kind() const override { return database_kind::leveldb; }
  const fs::path& path() const override { return file_.path(); }
  std::uint64_t size() const override { return file_.size(); }
  std::string key(std::uint64_t n) const override { return file_.key(n); }
  std::span<const std::uint8_t> value(std::uint64_t n,
                                      std::vector<std::uint8_t>& scratch) const override {
    file_.read(n, scratch);
    return scratch;
  }

 private:
  leveldb_file file_;
};

/// The magic word lies behind the header of the first page.
bool begins_as_lmdb(const fs::path& path) {
  constexpr unsigned char magic[] = {0xDE, 0xC0, 0xEF, 0xBE};
  char begin[20] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin, sizeof begin) && std::memcmp(begin + 16, magic, sizeof magic) == 0;
}
}  // namespace

const char* name_of(database_kind kind) {
  return kind == database_kind::lmdb ? "LMDB" : "LevelDB";
}

bool is_database(const fs::path& path) {
  if (fs::is_directory(path)) return fs::exists(path / "data.mdb") || fs::exists(path / "CURRENT");
  return fs::is_regular_file(path) && begins_as_lmdb(path);
}

std::shared_ptr<const record_reader> open_database(const fs::path& path,
                                                   const opening_progress& progress) {
  if (!fs::exists(path)) throw std::runtime_error(path.string() + ": no such file or folder.");
  if (!fs::is_directory(path) || fs::exists(path / "data.mdb"))
    return std::make_shared<lmdb_reader>(path, progress);
  if (fs::exists(path / "CURRENT")) return std::make_shared<leveldb_reader>(path, progress);
  throw std::runtime_error(path.string() +
                           ": a folder without data.mdb, so not an LMDB, and without CURRENT, so "
                           "not a LevelDB.");
}

std::unique_ptr<record_writer> make_database(database_kind kind, const fs::path& folder,
                                             database_limits limits, bool replace) {
  if (kind == database_kind::leveldb) return std::make_unique<leveldb_writer>(folder, replace);
  return std::make_unique<lmdb_writer>(folder, limits.records, limits.bytes, replace);
}

}  // namespace poseidon
