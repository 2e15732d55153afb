#include "data/image_store.hpp"

#include "data/database.hpp"
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

constexpr std::size_t cifar_values = 3 * 32 * 32;

/// A record is the bytes of its labels, then the values.
struct cifar_layout {
  const char* name;
  std::size_t labels;   ///< bytes
  std::size_t taken;    ///< which of them is the label
  std::size_t classes;  ///< that it can name
};
constexpr cifar_layout cifar10{"CIFAR-10", 1, 0, 10};
constexpr cifar_layout cifar100_fine{"CIFAR-100", 2, 1, 100};
constexpr cifar_layout cifar100_coarse{"CIFAR-100", 2, 0, 20};

class cifar_store final : public image_store {
 public:
  cifar_store(const std::vector<fs::path>& paths, const cifar_layout& layout) : layout_(layout) {
    for (const auto& path : paths) add(path);
    if (records_.empty())
      throw std::runtime_error(std::string("no ") + layout.name + " batch given.");
  }
  std::uint64_t size() const override { return records_.size(); }
  const shape& image_shape() const override { return shape_; }
  std::string key(std::uint64_t n) const override { return std::to_string(n); }
  std::string describe() const override { return std::string(layout_.name) + " binary"; }
  std::string where(std::uint64_t n) const override {
    return std::string(layout_.name) + " image " + key(n);
  }
  image get(std::uint64_t n, image_scratch&) const override {
    return {
        {records_[n] + layout_.labels, cifar_values}, {}, records_[n][layout_.taken], {3, 32, 32}};
  }

 private:
  void add(const fs::path& path) {
    files_.emplace_back(path);
    const auto bytes = files_.back().bytes();
    const auto record = layout_.labels + cifar_values;
    if (bytes.empty() || bytes.size() % record != 0)
      throw std::runtime_error(path.string() + ": not a " + layout_.name +
                               " binary batch, or truncated: " + std::to_string(bytes.size()) +
                               " bytes, expected a multiple of " + std::to_string(record) + ".");
    for (std::size_t at = 0; at < bytes.size(); at += record) {
      const std::size_t label = bytes[at + layout_.taken];
      if (label >= layout_.classes)
        throw std::runtime_error(path.string() + ": image " + std::to_string(at / record) +
                                 " has label " + std::to_string(label) + ", " + layout_.name +
                                 " has " + std::to_string(layout_.classes) +
                                 " of them. Is it another file, or damaged?");
      records_.push_back(bytes.data() + at);
    }
  }

  cifar_layout layout_;
  shape shape_{3, 32, 32};
  std::vector<mapped_file> files_;
  std::vector<const std::uint8_t*> records_;
};

/// The one of the two layouts whose records make up the file.
std::shared_ptr<const image_store> open_cifar(const fs::path& path) {
  const auto bytes = fs::file_size(path);
  const bool is_100 = bytes % (1 + cifar_values) != 0 && bytes % (2 + cifar_values) == 0;
  return is_100 ? open_cifar100({path}, cifar100_label::fine) : open_cifar10({path});
}

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
  return std::make_shared<cifar_store>(files, cifar10);
}

std::shared_ptr<const image_store> open_cifar100(const std::vector<fs::path>& files,
                                                 cifar100_label label) {
  return std::make_shared<cifar_store>(
      files, label == cifar100_label::fine ? cifar100_fine : cifar100_coarse);
}

std::shared_ptr<const image_store> open_images(const fs::path& path, picture_colour colour,
                                               const opening_progress& progress) {
  if (fs::is_directory(path)) return open_datums(open_database(path, progress), colour);
  if (!fs::exists(path)) {
    const auto images = plain_or_packed(path.string() + "-images-idx3-ubyte");
    if (!fs::exists(images)) throw std::runtime_error(path.string() + ": no such file or folder.");
    return open_idx(images, labels_of(images));
  }
  if (looks_like_idx(path)) return open_idx(path, labels_of(path));
  if (path.extension() == ".bin") return open_cifar(path);
  return open_datums(open_database(path, progress), colour);
}

void require_shape(const image& one, const shape& expected) {
  if (std::equal(expected.begin(), expected.end(), one.extents.begin(), one.extents.end())) return;
  throw std::runtime_error("is " + to_string(shape_of(one)) + ", the first record is " +
                           to_string(expected) + "; all records of a source have one shape");
}

std::shared_ptr<const image_store> opened_images::open(const fs::path& path,
                                                       picture_colour colour) {
  auto& store = opened_[{path, colour}];
  if (!store) store = open_images(path, colour, watch_ ? watch_(path) : opening_progress{});
  return store;
}

}  // namespace poseidon
