#include "data/source.hpp"

#include "data/dummy_source.hpp"
#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "data/transform.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {
namespace fs = std::filesystem;

/// A Data layer: the images of a store, transformed.
class image_source final : public sample_source {
 public:
  image_source(std::shared_ptr<const image_store> images, image_transform transform,
               bool with_label)
      : images_(std::move(images)), transform_(std::move(transform)) {
    shapes_.push_back(transform_.output_shape());
    if (with_label) shapes_.emplace_back();
  }
  std::uint64_t size() const override { return images_->size(); }
  const std::vector<shape>& sample_shapes() const override { return shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    std::vector<float> scratch;
    const auto one = images_->get(global % images_->size(), scratch);
    transform_.apply(global, one, tops[0]);
    if (tops.size() > 1) tops[1][0] = static_cast<float>(one.label);
  }

 private:
  std::shared_ptr<const image_store> images_;
  image_transform transform_;
  std::vector<shape> shapes_;
};

fs::path start_of(const source_options& options) {
  return options.data_root.empty() ? options.directory : options.data_root;
}

fs::path locate(const std::string& name, const source_options& options) {
  const fs::path path(name);
  return path.is_absolute() ? path : start_of(options) / path;
}

/// For a file that is not there: where a relative name was looked for.
std::string hint(const std::string& name, const source_options& options) {
  if (fs::path(name).is_absolute() || fs::exists(locate(name, options))) return "";
  return " Relative names start at \"" +
         fs::absolute(start_of(options)).lexically_normal().string() +
         "\" (--data-root changes that).";
}

std::shared_ptr<const sample_source> open_data(const ::caffe::LayerParameter& layer,
                                               const spec_position& where,
                                               const source_options& options) {
  const auto& source = layer.data_param().source();
  const auto& spec = layer.transform_param();
  const auto name_of = [](const char* what, const std::string& name) {
    return std::string(what) + " \"" + name + "\": ";
  };
  if (layer.top_size() < 1 || layer.top_size() > 2)
    throw layer_error(layer, where,
                      "has " + std::to_string(layer.top_size()) +
                          " tops; it makes images and, as a second top, labels.");
  if (source.empty()) throw layer_error(layer, where, "has no data_param.source.");
  if (spec.has_mean_file() && spec.mean_value_size() > 0)
    throw layer_error(layer, where,
                      "has mean_file \"" + spec.mean_file() + "\" and " +
                          std::to_string(spec.mean_value_size()) +
                          " mean_value. Keep one of the two.");
  std::shared_ptr<const image_store> images;
  try {
    const auto path = locate(source, options);
    images = options.opened ? options.opened->open(path) : open_images(path);
  } catch (const std::exception& e) {
    throw layer_error(layer, where, name_of("source", source) + e.what() + hint(source, options));
  }
  std::optional<mean_image> mean;
  if (spec.has_mean_file()) {
    try {
      mean = read_mean(locate(spec.mean_file(), options));
    } catch (const std::exception& e) {
      throw layer_error(
          layer, where,
          name_of("mean_file", spec.mean_file()) + e.what() + hint(spec.mean_file(), options));
    }
  }
  try {
    image_transform transform(spec, std::move(mean), images->image_shape(), options.phase,
                              {options.seed, options.layer});
    return std::make_shared<image_source>(std::move(images), std::move(transform),
                                          layer.top_size() == 2);
  } catch (const std::invalid_argument& e) {
    throw layer_error(layer, where, name_of("source", source) + e.what());
  }
}
}  // namespace

spec_error layer_error(const ::caffe::LayerParameter& layer, const spec_position& where,
                       const std::string& text) {
  return {where, "layer \"" + layer.name() + "\" (" + layer.type() + "): " + text};
}

std::shared_ptr<const sample_source> open_source(const ::caffe::LayerParameter& layer,
                                                 const spec_position& where,
                                                 const source_options& options) {
  if (layer.type() == "Data") return open_data(layer, where, options);
  if (layer.type() == "DummyData") return open_dummy(layer, where, options);
  throw layer_error(layer, where, "is not a source that can be read; Data and DummyData are.");
}

std::int64_t batch_size(const ::caffe::LayerParameter& layer, const spec_position& where) {
  if (layer.type() == "DummyData") return dummy_batch_size(layer, where);
  const std::int64_t b = layer.data_param().batch_size();
  if (b < 1 || b > 0x7fffffff)
    throw layer_error(
        layer, where,
        "data_param.batch_size is " + std::to_string(b) + ", it has to be at least 1.");
  return b;
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
