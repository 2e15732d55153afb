#include "data/image_store.hpp"

#include "data/datum_store.hpp"
#include "data/idx_file.hpp"
#include "data/mapped_file.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

class idx_store final : public image_store {
 public:
  idx_store(const fs::path& images, const fs::path& labels)
      : path_(images),
        images_(read_idx(images, 3)),
        labels_(read_idx(labels, 1)),
        shape_{1, images_.extents[1], images_.extents[2]} {
    if (images_.extents[0] != labels_.extents[0])
      throw std::runtime_error(images.string() + ": " + std::to_string(images_.extents[0]) +
                               " images, but " + labels.string() + " has " +
                               std::to_string(labels_.extents[0]) +
                               " labels. Do they belong together?");
    if (images_.values().empty())
      throw std::runtime_error(images.string() + ": an IDX file without images (" +
                               to_string(shape{images_.extents}) + "); a source needs one.");
  }
  std::uint64_t size() const override { return static_cast<std::uint64_t>(images_.extents[0]); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return std::to_string(n); }
  std::string describe() const override { return "IDX"; }
  std::string where(std::uint64_t n) const override { return path_.string() + ": image " + key(n); }
  image get(std::uint64_t n, image_scratch&) const override {
    const auto values = static_cast<std::size_t>(count(shape_));
    return {images_.values().subspan(n * values, values),
            {},
            labels_.values()[n],
            {shape_[0], shape_[1], shape_[2]}};
  }

 private:
  fs::path path_;
  idx_file images_, labels_;
  shape shape_;
};

class cifar_store final : public image_store {
 public:
  static constexpr std::size_t record_bytes = 1 + 3 * 32 * 32;
  explicit cifar_store(const std::vector<fs::path>& paths) {
    for (const auto& path : paths) {
      files_.emplace_back(path);
      const auto bytes = files_.back().bytes().size();
      if (bytes == 0 || bytes % record_bytes != 0)
        throw std::runtime_error(path.string() + ": not a CIFAR-10 binary batch, or truncated: " +
                                 std::to_string(bytes) + " bytes, expected a multiple of " +
                                 std::to_string(record_bytes) + ".");
      for (std::size_t i = 0; i < bytes / record_bytes; ++i)
        records_.push_back(files_.back().bytes().data() + i * record_bytes);
    }
    if (records_.empty()) throw std::runtime_error("no CIFAR-10 batch given.");
  }
  std::uint64_t size() const override { return records_.size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return std::to_string(n); }
  std::string describe() const override { return "CIFAR-10 binary"; }
  std::string where(std::uint64_t n) const override { return "CIFAR-10 image " + key(n); }
  image get(std::uint64_t n, image_scratch&) const override {
    return {{records_[n] + 1, record_bytes - 1}, {}, *records_[n], {3, 32, 32}};
  }

 private:
  shape shape_{3, 32, 32};
  std::vector<mapped_file> files_;
  std::vector<const std::uint8_t*> records_;
};

/// The file that lies at `path` or, packed or unpacked, at the other of path and path.gz.
fs::path plain_or_packed(const fs::path& path) {
  if (fs::exists(path)) return path;
  const auto other = path.extension() == ".gz" ? fs::path(path).replace_extension()
                                               : fs::path(path.string() + ".gz");
  return fs::exists(other) ? other : path;
}

fs::path labels_of(const fs::path& images) {
  auto name = images.filename().string();
  const auto at = name.rfind("images-idx3");
  if (at == std::string::npos)
    throw std::runtime_error(
        images.string() +
        ": an IDX images file is found its labels by name, and this one's does not have "
        "\"images-idx3\" in it. Rename both (x-images-idx3-ubyte, x-labels-idx1-ubyte) or "
        "convert them: poseidon-data convert mnist.");
  name.replace(at, 11, "labels-idx1");
  const auto labels = plain_or_packed(images.parent_path() / name);
  if (!fs::exists(labels))
    throw std::runtime_error(labels.string() + ": the labels of " + images.filename().string() +
                             " are not beside it.");
  return labels;
}
}  // namespace

std::shared_ptr<const image_store> open_idx(const fs::path& images, const fs::path& labels) {
  return std::make_shared<idx_store>(images, labels);
}

std::shared_ptr<const image_store> open_cifar10(const std::vector<fs::path>& files) {
  return std::make_shared<cifar_store>(files);
}

std::shared_ptr<const image_store> open_images(const fs::path& path, picture_colour colour) {
  if (fs::is_directory(path)) {
    if (fs::exists(path / "data.mdb")) return open_lmdb(path, colour);
    if (fs::exists(path / "CURRENT")) return open_leveldb(path, colour);
    throw std::runtime_error(path.string() +
                             ": a folder without data.mdb, so not an LMDB, and without CURRENT, so "
                             "not a LevelDB.");
  }
  if (!fs::exists(path)) {
    const auto images = plain_or_packed(path.string() + "-images-idx3-ubyte");
    if (!fs::exists(images)) throw std::runtime_error(path.string() + ": no such file or folder.");
    return open_idx(images, labels_of(images));
  }
  if (looks_like_idx(path)) return open_idx(path, labels_of(path));
  if (path.extension() == ".bin") return open_cifar10({path});
  return open_lmdb(path, colour);
}

void require_shape(const image& one, const shape& expected) {
  if (std::equal(expected.begin(), expected.end(), one.extents.begin(), one.extents.end())) return;
  throw std::runtime_error("is " + to_string(shape_of(one)) + ", the first record is " +
                           to_string(expected) + "; all records of a source have one shape");
}

std::shared_ptr<const image_store> opened_images::open(const fs::path& path,
                                                       picture_colour colour) {
  auto& store = opened_[{path, colour}];
  if (!store) store = open_images(path, colour);
  return store;
}

}  // namespace poseidon
