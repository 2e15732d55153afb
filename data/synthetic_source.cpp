#include "data/synthetic_source.hpp"

#include "data/dummy_source.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <sstream>

namespace poseidon {
namespace {

// Samples are windows into one bank of values, so that making them costs no more than copying.
constexpr std::size_t window_starts = 4096;
constexpr std::uint64_t samples_per_epoch = 1u << 20;

class synthetic_source final : public sample_source {
 public:
  synthetic_source(std::vector<shape> shapes, float scale, const source_options& options)
      : shapes_(std::move(shapes)), seed_(options.seed), layer_(options.layer) {
    std::size_t longest = 0;
    for (const auto& s : shapes_) longest = std::max(longest, static_cast<std::size_t>(count(s)));
    bank_.resize(longest + window_starts);
    for (std::size_t i = 0; i < bank_.size(); ++i)
      bank_[i] = scale * (256 * unit_float(words(~std::uint64_t{0}, i / 4)[i % 4]) - 128);
  }

  std::uint64_t size() const override { return samples_per_epoch; }
  const std::vector<shape>& sample_shapes() const override { return shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    const auto dice = words(global % samples_per_epoch, 0);
    for (std::size_t t = 0; t < tops.size(); ++t) {
      if (shapes_[t].empty())
        tops[t][0] = static_cast<float>(dice[0] & 1);
      else
        std::copy_n(bank_.begin() + dice[1] % window_starts, tops[t].size(), tops[t].begin());
    }
  }

 private:
  [[nodiscard]] std::array<std::uint32_t, 4> words(std::uint64_t sample, std::size_t group) const {
    return random_words(seed_, random_use::filler, layer_, sample,
                        static_cast<std::uint32_t>(group));
  }

  std::vector<shape> shapes_;
  std::vector<float> bank_;
  std::uint64_t seed_;
  std::uint32_t layer_;
};

shape input_shape(const ::caffe::LayerParameter& layer, int top) {
  const auto& p = layer.input_param();
  if (p.shape_size() == 0) return {};
  const auto& dims = p.shape(p.shape_size() == 1 ? 0 : top).dim();
  return {dims.begin(), dims.end()};
}

/// The image shape that the layer states: nothing, or channels and a size.
std::optional<shape> stated_image(const ::caffe::LayerParameter& layer) {
  const std::int64_t channels =
      layer.transform_param().force_gray() ||
              (layer.type() == "ImageData" && !layer.image_data_param().is_color())
          ? 1
          : 3;
  if (const std::int64_t crop = layer.transform_param().crop_size(); crop > 0)
    return shape{channels, crop, crop};
  const auto& images = layer.image_data_param();
  if (images.new_height() > 0 && images.new_width() > 0)
    return shape{channels, images.new_height(), images.new_width()};
  return std::nullopt;
}

std::vector<shape> sample_shapes(const ::caffe::LayerParameter& layer, const spec_position& where,
                                 const source_options& options) {
  std::vector<shape> shapes;
  if (layer.type() == "Input") {
    for (int t = 0; t < layer.top_size(); ++t) {
      auto s = input_shape(layer, t);
      s.erase(s.begin());
      shapes.push_back(std::move(s));
    }
    return shapes;
  }
  auto image = *options.synthetic;
  if (image.empty()) {
    if (const auto stated = stated_image(layer)) {
      image = *stated;
    } else {
      auto real = options;
      real.synthetic.reset();
      try {
        return open_source(layer, where, real)->sample_shapes();
      } catch (const std::exception& e) {
        throw layer_error(layer, where,
                          "states no shape (crop_size), and its source cannot be asked (" +
                              std::string(e.what()) + "). Give one: --synthetic CxHxW.");
      }
    }
  } else if (const std::int64_t crop = layer.transform_param().crop_size(); crop > 0) {
    if (image.size() != 3 || crop > image[1] || crop > image[2])
      throw layer_error(layer, where,
                        "crop_size " + std::to_string(crop) + " does not fit into --synthetic " +
                            to_string(image) + ".");
    image = {image[0], crop, crop};
  }
  shapes.push_back(image);
  for (int t = 1; t < layer.top_size(); ++t) shapes.emplace_back();
  return shapes;
}

}  // namespace

std::shared_ptr<const sample_source> open_synthetic(const ::caffe::LayerParameter& layer,
                                                    const spec_position& where,
                                                    const source_options& options) {
  const auto& transform = layer.transform_param();
  // Input has no transform, and its nets are fed with anything: values of about one.
  const float scale = layer.type() == "Input" ? 1.0f / 128 : transform.scale();
  return std::make_shared<synthetic_source>(sample_shapes(layer, where, options), scale, options);
}

std::int64_t input_batch_size(const ::caffe::LayerParameter& layer, const spec_position& where) {
  std::int64_t batch = 0;
  for (int t = 0; t < layer.top_size(); ++t) {
    const auto s = input_shape(layer, t);
    if (s.empty())
      throw layer_error(layer, where, "top \"" + layer.top(t) + "\" has no batch axis.");
    if (t > 0 && s[0] != batch)
      throw layer_error(layer, where,
                        "top \"" + layer.top(t) + "\" has a batch of " + std::to_string(s[0]) +
                            ", the tops before it " + std::to_string(batch) + ".");
    batch = s[0];
  }
  return batch;
}

shape parse_sample_shape(const std::string& text) {
  shape s;
  std::stringstream in(text + (text.empty() ? "" : "x"));  // so that "3x" has an empty last part
  for (std::string part; std::getline(in, part, 'x');) {
    char* end = nullptr;
    const auto extent = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || extent < 1 || extent > (1 << 20))
      throw spec_error("\"" + text + "\" is no shape: expected something like 3x224x224.");
    s.push_back(extent);
  }
  return s;
}

}  // namespace poseidon
