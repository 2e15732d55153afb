#include "data/hdf5_source.hpp"

#include "data/dummy_source.hpp"
#include "data/epoch_order.hpp"
#include "data/list_file.hpp"
#include "data/source_path.hpp"
#include "models/files/hdf5_file.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

struct listed_file {
  fs::path path;
  std::uint64_t rows = 0;
};

using tops_of_file = std::vector<std::vector<float>>;  // by top

class hdf5_source final : public sample_source {
 public:
  hdf5_source(std::vector<fs::path> files, std::vector<std::string> tops, bool shuffles,
              const shuffle_key& key, const own_part& part)
      : tops_(std::move(tops)), shuffles_(shuffles), key_(key), part_(part) {
    for (auto& path : files) look_into(path);
  }

  std::uint64_t size() const override { return size_; }
  const std::vector<shape>& sample_shapes() const override { return shapes_; }

  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    const auto [file, row] = place_of(part_.position(global));
    const auto values = values_of(file);
    for (std::size_t t = 0; t < tops.size(); ++t)
      std::copy_n((*values)[t].begin() + static_cast<std::ptrdiff_t>(row * tops[t].size()),
                  tops[t].size(), tops[t].begin());
  }

 private:
  struct place {
    std::size_t file;
    std::uint64_t row;
  };
  /// The orders of one epoch: of the files, and of the rows by file.
  struct orders {
    std::uint64_t epoch = 0;
    permutation files;
    std::vector<permutation> rows;
  };
  struct loaded {
    std::size_t file = 0;
    std::shared_ptr<const tops_of_file> values;
  };

  void look_into(const fs::path& path) {
    const hdf5_reader file(path);
    const bool first = files_.empty();
    std::uint64_t rows = 0;
    for (std::size_t t = 0; t < tops_.size(); ++t) {
      auto extents = file.shape_of(tops_[t]);
      const auto what = path.string() + ": dataset \"" + tops_[t] + "\" is " + to_string(extents);
      if (extents.empty() || count(extents) == 0)
        throw std::runtime_error(what + "; its first axis has to be samples, and there are none.");
      const auto has = static_cast<std::uint64_t>(extents.front());
      if (t == 0) rows = has;
      if (has != rows)
        throw std::runtime_error(what + ", but \"" + tops_[0] + "\" has " + std::to_string(rows) +
                                 " samples. All tops of a file have as many.");
      extents.erase(extents.begin());
      if (first) shapes_.push_back(extents);
      if (extents != shapes_[t])
        throw std::runtime_error(what + ", but a sample of it is " + to_string(shapes_[t]) +
                                 " in " + files_.front().path.string() + ".");
    }
    files_.push_back({path, rows});
    size_ += rows;
  }

  place place_of(std::uint64_t global) const {
    const auto epoch = global / size_;
    auto left = global % size_;
    const auto order = shuffles_ ? orders_of(epoch) : nullptr;
    for (std::size_t i = 0;; ++i) {
      const auto file = order ? (*order->files)[i] : i;
      if (left < files_[file].rows) return {file, order ? (*order->rows[file])[left] : left};
      left -= files_[file].rows;
    }
  }

  std::shared_ptr<const orders> orders_of(std::uint64_t epoch) const {
    const std::scoped_lock lock(mutex_);
    if (!orders_[0] || orders_[0]->epoch != epoch) std::swap(orders_[0], orders_[1]);
    if (!orders_[0] || orders_[0]->epoch != epoch) {
      auto made = std::make_shared<orders>();
      auto key = key_;
      made->epoch = epoch;
      made->files = shuffled(files_.size(), key, epoch);
      for (const auto& file : files_) {
        ++key.part;
        made->rows.push_back(shuffled(file.rows, key, epoch));
      }
      orders_[0] = std::move(made);
    }
    return orders_[0];
  }

  std::shared_ptr<const tops_of_file> values_of(std::size_t file) const {
    const std::scoped_lock lock(mutex_);
    const auto is_it = [file](const loaded& l) { return l.values != nullptr && l.file == file; };
    if (!is_it(loaded_[0])) std::swap(loaded_[0], loaded_[1]);
    if (!is_it(loaded_[0])) {
      loaded_[0].values = nullptr;  // its memory first
      loaded_[0] = {file, read(files_[file])};
    }
    return loaded_[0].values;
  }

  std::shared_ptr<const tops_of_file> read(const listed_file& from) const {
    const hdf5_reader file(from.path);
    auto values = std::make_shared<tops_of_file>(tops_.size());
    for (std::size_t t = 0; t < tops_.size(); ++t) {
      auto wanted = shapes_[t];
      wanted.insert(wanted.begin(), static_cast<std::int64_t>(from.rows));
      const auto has = file.read(tops_[t], (*values)[t]);
      if (has != wanted)
        throw std::runtime_error(from.path.string() + ": dataset \"" + tops_[t] + "\" was " +
                                 to_string(wanted) + " when training began and is " +
                                 to_string(has) + " now. Leave the files alone meanwhile.");
    }
    return values;
  }

  std::vector<std::string> tops_;
  bool shuffles_;
  shuffle_key key_;
  own_part part_;
  std::vector<listed_file> files_;
  std::vector<shape> shapes_;
  std::uint64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const orders>, 2> orders_;  // the latest first
  mutable std::array<loaded, 2> loaded_;                         // the latest first
};

/// Names are apart by white space, as Caffe reads them.
std::vector<fs::path> files_of(const fs::path& list, const source_options& options) {
  auto file = open_list(list, "HDF5 files");
  if (is_hdf5(list))
    throw std::runtime_error(list.string() +
                             ": this is an HDF5 file. The source of HDF5Data is a text file that "
                             "lists such files, one a line.");
  std::vector<fs::path> files;
  for (std::string name; file >> name;) {
    files.push_back(locate(name, options));
    if (name.front() == '#' && !fs::exists(files.back()))
      throw std::runtime_error(list.string() + ": \"" + name + "\" is no file. " + no_comments);
  }
  if (files.empty())
    throw std::runtime_error(list.string() + ": a list without files; a source needs one.");
  return files;
}

}  // namespace

std::shared_ptr<const sample_source> open_hdf5(const ::caffe::LayerParameter& layer,
                                               const spec_position& where,
                                               const source_options& options) {
  const auto& p = layer.hdf5_data_param();
  if (layer.has_transform_param())
    throw layer_error(layer, where,
                      "has a transform_param, but HDF5Data delivers values as they are. Remove it, "
                      "and scale with a Power or Scale layer.");
  if (p.source().empty()) throw layer_error(layer, where, "has no hdf5_data_param.source.");
  try {
    return std::make_shared<hdf5_source>(
        files_of(locate(p.source(), options), options),
        std::vector<std::string>{layer.top().begin(), layer.top().end()}, p.shuffle(),
        shuffle_key{options.seed, options.layer, 0}, own_part_of(layer, where, options));
  } catch (const std::exception& e) {
    throw layer_error(
        layer, where,
        "source \"" + p.source() + "\": " + e.what() + where_it_starts(p.source(), options));
  }
}

}  // namespace poseidon
