// apps/bare/feature_run.hpp
//
// The values of a trained net's blobs, batch by batch, in phase TEST: Caffe's extract_features. Each lane is a replica
// with a thread of its own that computes whole batches. So the values depend neither on the number of lanes nor on which
// batches are requested.
#pragma once
#include "data/source.hpp"
#include "models/device/device.hpp"
#include "models/files/snapshot.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace poseidon::app {

struct feature_request {
  std::filesystem::path model;
  std::vector<std::filesystem::path> weights;  ///< each copied over those before
  std::vector<std::string> blobs;              ///< empty: the net's only output
  std::filesystem::path data_root;
  int level = 0;
  std::vector<std::string> stages;
  std::uint32_t lanes = 1;
  /// Makes the samples of the net's Input layer, of this shape without the batch; empty: the net has to read data.
  std::function<std::shared_ptr<const sample_source>(const shape& sample)> input;
};

/// One batch, by blob as requested: batch() rows each.
struct feature_batch {
  std::vector<std::vector<float>> values;
  std::vector<std::int32_t> labels;  ///< empty where the net's data have none
};

class feature_run {
 public:
  /// Errors   spec_error: what net, data and weights say; no layer reads data; a blob that the net does not have or
  ///          that has no row for each image; a layer whose parameters are in no file of weights.
  explicit feature_run(const feature_request& request);

  /// The number of records in the net's source; DummyData has infinitely many.
  [[nodiscard]] std::uint64_t records() const;
  [[nodiscard]] std::uint64_t batch() const { return batch_; }
  /// The blobs by name, as requested.
  [[nodiscard]] const std::vector<std::string>& blobs() const { return blobs_; }
  [[nodiscard]] const std::vector<shape>& row_shapes() const { return row_shapes_; }  ///< by blob

  /// Calls `take` with the batches first ... last - 1, in this order. Batch n begins with sample n * batch(); the first
  /// record follows the last one, as in Caffe.
  /// Errors   what a source or a kernel throws.
  void run(std::uint64_t first, std::uint64_t last,
           const std::function<void(std::uint64_t, const feature_batch&)>& take);

 private:
  struct lane {
    std::unique_ptr<replica> copy;
    std::vector<poseidon::batch> fed;  ///< by source
    feature_batch out;
  };
  struct wanted_blob {
    std::size_t blob = 0;
    std::size_t after = 0;  ///< the layer that writes it last: later layers may reuse its memory
  };
  void open_sources(const feature_request& request, const source_options& options);
  void find_blobs(const feature_request& request);
  void find_blob_of(const feature_request& request, const std::string& name);
  void load(const feature_request& request);
  void forward(lane& on, std::uint64_t number);
  void read_blobs(lane& on, std::size_t layer);
  void read_labels(lane& on) const;

  net net_;
  std::vector<std::size_t> source_layers_;
  std::vector<std::shared_ptr<const sample_source>> sources_;
  std::size_t counted_ = 0;  ///< the source whose records count: the first that is no DummyData
  std::uint64_t batch_ = 0;
  std::size_t last_layer_ = 0;  ///< later layers are not computed
  std::vector<wanted_blob> wanted_;
  std::vector<std::string> blobs_;
  std::vector<shape> row_shapes_;
  parameter_arrays arrays_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::shared_ptr<device> device_;
  std::vector<lane> lanes_;
};

}  // namespace poseidon::app
