// tools/bench/lib/lmdb_layer.hpp - the data layer of benchmarks that read.
#pragma once
#include "data/source.hpp"

#include <string>

/// Images and labels of an LMDB, as they are.
inline ::caffe::LayerParameter lmdb_layer(const std::string& path, std::uint32_t batch) {
  ::caffe::LayerParameter layer;
  layer.set_type("Data");
  layer.add_top("data");
  layer.add_top("label");
  layer.mutable_data_param()->set_source(path);
  layer.mutable_data_param()->set_batch_size(batch);
  return layer;
}
