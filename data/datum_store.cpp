#include "data/datum_store.hpp"

#include "data/leveldb_file.hpp"
#include "data/lmdb_file.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {

std::span<const std::uint8_t> record_of(const lmdb_file& file, std::uint64_t n,
                                        std::vector<std::uint8_t>&) {
  return file.at(n).value;
}
std::span<const std::uint8_t> record_of(const leveldb_file& file, std::uint64_t n,
                                        std::vector<std::uint8_t>& scratch) {
  file.read(n, scratch);
  return scratch;
}
std::string key_of(const lmdb_file& file, std::uint64_t n) {
  return std::string(file.at(n).key);
}
std::string key_of(const leveldb_file& file, std::uint64_t n) {
  return file.key(n);
}

template <class File>
class datum_store final : public image_store {
 public:
  datum_store(const std::filesystem::path& path, std::string kind, picture_colour colour)
      : file_(path), kind_(std::move(kind)), colour_(colour) {
    if (file_.size() == 0)
      throw std::runtime_error(file_.path().string() + (kind_ == "LMDB" ? ": an " : ": a ") +
                               kind_ + " without records; a source needs one.");
    image_scratch scratch;
    shape_ = shape_of(get(0, scratch));
  }
  std::uint64_t size() const override { return file_.size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return key_of(file_, n); }
  std::string describe() const override { return kind_ + " of Datum"; }
  std::string where(std::uint64_t n) const override {
    return file_.path().string() + ": record \"" + key(n) + "\"";
  }
  image get(std::uint64_t n, image_scratch& scratch) const override {
    try {
      return parse_datum(record_of(file_, n, scratch.record), scratch, colour_);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(where(n) + " " + e.what() + ".");
    }
  }

 private:
  File file_;
  std::string kind_;
  picture_colour colour_;
  shape shape_;
};

}  // namespace

std::shared_ptr<const image_store> open_lmdb(const std::filesystem::path& path,
                                             picture_colour colour) {
  return std::make_shared<datum_store<lmdb_file>>(path, "LMDB", colour);
}

std::shared_ptr<const image_store> open_leveldb(const std::filesystem::path& path,
                                                picture_colour colour) {
  return std::make_shared<datum_store<leveldb_file>>(path, "LevelDB", colour);
}

}  // namespace poseidon
