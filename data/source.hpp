// data/source.hpp
//
// A data layer's input: a source of samples with random access by position, and the transform that
// turns a sample into values. It has no state that depends on order: sample n is the same on any node.
#pragma once
#include "data/sample_schedule.hpp"
#include "models/device/device.hpp"
#include "models/net/net_builder.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

class opened_images;  // data/image_store.hpp

/// One data layer's samples, already transformed. Thread-safe for concurrent fill().
class sample_source {
 public:
  virtual ~sample_source() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;  ///< samples in one epoch
  /// Shapes of one sample's tops without the batch axis; "1 value" tops (labels) have an empty
  /// shape.
  [[nodiscard]] virtual const std::vector<shape>& sample_shapes() const = 0;
  /// Writes sample `global` (of epoch global / size()) to tops[t], each as long as its shape says.
  /// Random crops and mirrors are keyed by (seed, layer, global).
  /// Errors   std::runtime_error naming source, key and what is wrong with the record.
  virtual void fill(std::uint64_t global, std::span<const std::span<float>> tops) const = 0;
};

/// Samples in memory, for MemoryData layers: one label for each sample, values in sample order.
struct memory_samples {
  std::vector<float> values;
  std::vector<float> labels;
};

struct source_options {
  ::caffe::Phase phase = ::caffe::TRAIN;
  std::filesystem::path directory;  ///< relative sources start here (Caffe: the working directory)
  std::filesystem::path data_root;  ///< if not empty, relative sources start here instead
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  ///< place in the net, a key for augmentation
  /// Random samples of this shape (empty: as the layer says) instead of what the layer reads.
  std::optional<shape> synthetic;
  std::map<std::string, std::shared_ptr<const memory_samples>> memory;  ///< by layer name
  /// Number of workers if each has its own part of the data (see own_part); 1: each has the whole.
  std::uint64_t workers_with_parts = 1;
  std::uint64_t micro_batches = 1;        ///< micro-batches of each worker in a clock
  std::shared_ptr<opened_images> opened;  ///< shared by the sources of a run; may be empty
};

/// Opens the source of a Data (LMDB, LevelDB, or IDX: source is a "prefix" or an images file),
/// ImageData, HDF5Data, MemoryData or DummyData layer.
/// Errors   spec_error with file, line, layer: missing, empty or corrupt source, crop larger than
///          the image, ...
[[nodiscard]] std::shared_ptr<const sample_source> open_source(const ::caffe::LayerParameter& layer,
                                                               const spec_position& where,
                                                               const source_options& options);

/// The layer's batch size.
[[nodiscard]] std::int64_t batch_size(const ::caffe::LayerParameter& layer,
                                      const spec_position& where);

/// The position of all nodes' samples in this layer's data.
[[nodiscard]] own_part own_part_of(const ::caffe::LayerParameter& layer, const spec_position& where,
                                   const source_options& options);

/// For build_net: opens each source once and answers its shapes.
[[nodiscard]] source_shapes shapes_from_sources(source_options options);

}  // namespace poseidon
