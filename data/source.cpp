#include "data/source.hpp"

#include "data/dummy_source.hpp"
#include "data/hdf5_source.hpp"
#include "data/image_source.hpp"
#include "data/memory_source.hpp"
#include "data/synthetic_source.hpp"

#include <utility>

namespace poseidon {

spec_error layer_error(const ::caffe::LayerParameter& layer, const spec_position& where,
                       const std::string& text) {
  return {where, "layer \"" + layer.name() + "\" (" + layer.type() + "): " + text};
}

std::shared_ptr<const sample_source> open_source(const ::caffe::LayerParameter& layer,
                                                 const spec_position& where,
                                                 const source_options& options) {
  const auto& type = layer.type();
  if (options.synthetic && type != "DummyData") return open_synthetic(layer, where, options);
  if (type == "Data") return open_data(layer, where, options);
  if (type == "ImageData") return open_image_data(layer, where, options);
  if (type == "HDF5Data") return open_hdf5(layer, where, options);
  if (type == "DummyData") return open_dummy(layer, where, options);
  if (type == "MemoryData") return open_memory(layer, where, options);
  const std::string known = "Data, ImageData, HDF5Data and DummyData are.";
  if (type == "WindowData")
    throw layer_error(layer, where,
                      "windows of images are not cut here. Cut them beforehand into files of their "
                      "own and list them for ImageData, or write them into an LMDB; " +
                          known);
  throw layer_error(layer, where, "is not a source that can be read; " + known);
}

std::int64_t batch_size(const ::caffe::LayerParameter& layer, const spec_position& where) {
  const auto& type = layer.type();
  if (type == "DummyData") return dummy_batch_size(layer, where);
  if (type == "Input") return input_batch_size(layer, where);
  const auto [field, b] = [&]() -> std::pair<const char*, std::int64_t> {
    if (type == "ImageData") return {"image_data_param", layer.image_data_param().batch_size()};
    if (type == "HDF5Data") return {"hdf5_data_param", layer.hdf5_data_param().batch_size()};
    if (type == "MemoryData") return {"memory_data_param", layer.memory_data_param().batch_size()};
    if (type == "WindowData") return {"window_data_param", layer.window_data_param().batch_size()};
    return {"data_param", layer.data_param().batch_size()};
  }();
  if (b < 1 || b > 0x7fffffff)
    throw layer_error(
        layer, where,
        std::string(field) + ".batch_size is " + std::to_string(b) + ", it has to be at least 1.");
  return b;
}

own_part own_part_of(const ::caffe::LayerParameter& layer, const spec_position& where,
                     const source_options& options) {
  return {options.workers_with_parts,
          options.micro_batches * static_cast<std::uint64_t>(batch_size(layer, where))};
}

source_shapes shapes_from_sources(source_options options) {
  return [options = std::move(options)](const ::caffe::LayerParameter& layer,
                                        const spec_position& where) {
    const auto b = batch_size(layer, where);
    auto shapes = open_source(layer, where, options)->sample_shapes();
    for (auto& s : shapes) s.insert(s.begin(), b);
    return shapes;
  };
}

}  // namespace poseidon
