// data/image_store.hpp
//
// Images and labels as a file stores them, by position, before any transform. The kind of file is
// recognised by its content, not by its name: an LMDB or LevelDB folder of Datum, an IDX images file (plain
// or gzip; its labels lie beside it), or the binary batches of CIFAR-10 and CIFAR-100.
#pragma once
#include "data/datum.hpp"
#include "data/opening.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// Thread-safe: get() of any position from any thread.
class image_store {
 public:
  virtual ~image_store() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;              ///< at least 1
  [[nodiscard]] virtual const shape& image_shape() const = 0;        ///< the first image's shape
  [[nodiscard]] virtual std::string key(std::uint64_t n) const = 0;  ///< for messages
  [[nodiscard]] virtual std::string name(std::uint64_t) const { return {}; }  ///< a file's
  [[nodiscard]] virtual std::string describe() const = 0;  ///< "LMDB of Datum", "IDX", ...
  /// "path/data.mdb: record "00000012"": the beginning of messages about the n-th image.
  [[nodiscard]] virtual std::string where(std::uint64_t n) const = 0;

  /// The n-th image, n < size(). The result points into the store or into `scratch`. Its shape may
  /// differ from the first one's.
  /// Errors   std::runtime_error naming source, key and what is wrong with the record.
  [[nodiscard]] virtual image get(std::uint64_t n, image_scratch& scratch) const = 0;
};

/// `path`: an LMDB folder or file, a LevelDB folder, an IDX images file, the prefix of a pair of IDX
/// files ("dir/train" of dir/train-images-idx3-ubyte.gz), a .bin file of CIFAR-10 or CIFAR-100 (fine labels). `colour` is what
/// encoded Datums are decoded to.
/// Errors   std::runtime_error: missing, empty, truncated (both sizes), of an unknown
///          kind.
[[nodiscard]] std::shared_ptr<const image_store> open_images(
    const std::filesystem::path& path, picture_colour colour = picture_colour::as_stored,
    const opening_progress& progress = {});

/// Checks that an image has the shape that all of a source's images must have.
/// Errors   std::runtime_error "is 1x2x3, the first record is 1x2x2; ...".
void require_shape(const image& one, const shape& expected);

/// Opens each path, for one colour, once for as long as it lives: a packed file is not unpacked again for the next
/// layer or net that reads it. One thread.
class opened_images {
 public:
  /// Called for each path that is opened; its result lives until the path is open.
  using watcher = std::function<opening_progress(const std::filesystem::path&)>;
  explicit opened_images(watcher watch = {}) : watch_(std::move(watch)) {}

  /// Errors   as open_images().
  [[nodiscard]] std::shared_ptr<const image_store> open(const std::filesystem::path& path,
                                                        picture_colour colour);

 private:
  std::map<std::pair<std::filesystem::path, picture_colour>, std::shared_ptr<const image_store>>
      opened_;
  watcher watch_;
};

/// A pair of IDX files by name. Errors   as above; counts of images and labels that differ.
[[nodiscard]] std::shared_ptr<const image_store> open_idx(const std::filesystem::path& images,
                                                          const std::filesystem::path& labels);

/// CIFAR-10's binary batches, one after the other: records of a label byte and 3x32x32 values.
/// Errors   std::runtime_error: another size than that of whole records, a label that it does not have.
[[nodiscard]] std::shared_ptr<const image_store> open_cifar10(
    const std::vector<std::filesystem::path>& files);

/// CIFAR-100's binary file, whose records begin with a coarse label (one of 20) and a fine one (one of 100).
enum class cifar100_label { fine, coarse };
[[nodiscard]] std::shared_ptr<const image_store> open_cifar100(
    const std::vector<std::filesystem::path>& files, cifar100_label label);

}  // namespace poseidon
