#include "data/image_source.hpp"

#include "data/dummy_source.hpp"
#include "data/epoch_order.hpp"
#include "data/image_list.hpp"
#include "data/image_store.hpp"
#include "data/mean_file.hpp"
#include "data/source_path.hpp"
#include "data/transform.hpp"
#include "models/random.hpp"

#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {

class image_source final : public sample_source {
 public:
  image_source(std::shared_ptr<const image_store> images, image_transform transform,
               bool with_label, bool shuffles, const shuffle_key& key, std::uint64_t skipped,
               const own_part& part)
      : images_(std::move(images)),
        transform_(std::move(transform)),
        order_(images_->size(), shuffles, key),
        skipped_(skipped),
        part_(part) {
    shapes_.push_back(transform_.output_shape());
    if (with_label) shapes_.emplace_back();
  }
  std::uint64_t size() const override { return images_->size(); }
  const std::vector<shape>& sample_shapes() const override { return shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    thread_local image_scratch scratch;
    const auto n = order_.at(part_.position(global) + skipped_);
    const auto one = images_->get(n, scratch);
    try {
      transform_.apply(global, one, tops[0]);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(images_->where(n) + " " + e.what() + ".");
    }
    if (tops.size() > 1) tops[1][0] = static_cast<float>(one.label);
  }

 private:
  std::shared_ptr<const image_store> images_;
  image_transform transform_;
  epoch_order order_;
  std::uint64_t skipped_;
  own_part part_;
  std::vector<shape> shapes_;
};

/// open()'s error, with the layer, the field and the name that it concerns.
template <class Open>
auto named(const ::caffe::LayerParameter& layer, const spec_position& where,
           const source_options& options, const char* field, const std::string& name, Open open) {
  try {
    return open();
  } catch (const std::exception& e) {
    throw layer_error(
        layer, where,
        std::string(field) + " \"" + name + "\": " + e.what() + where_it_starts(name, options));
  }
}

std::optional<mean_image> mean_of_layer(const ::caffe::LayerParameter& layer,
                                        const spec_position& where, const source_options& options) {
  const auto& spec = layer.transform_param();
  if (!spec.has_mean_file()) return std::nullopt;
  if (spec.mean_value_size() > 0)
    throw layer_error(layer, where,
                      "has mean_file \"" + spec.mean_file() + "\" and " +
                          std::to_string(spec.mean_value_size()) +
                          " mean_value. Keep one of the two.");
  return named(layer, where, options, "mean_file", spec.mean_file(),
               [&] { return read_mean(locate(spec.mean_file(), options)); });
}

void require_tops(const ::caffe::LayerParameter& layer, const spec_position& where) {
  if (layer.top_size() >= 1 && layer.top_size() <= 2) return;
  throw layer_error(layer, where,
                    "has " + std::to_string(layer.top_size()) +
                        " tops; it makes images and, as a second top, labels.");
}

picture_colour colour_of(const ::caffe::LayerParameter& layer, const spec_position& where) {
  const auto& spec = layer.transform_param();
  if (spec.force_color() && spec.force_gray())
    throw layer_error(layer, where, "has force_color and force_gray. Keep one of the two.");
  return spec.force_color()  ? picture_colour::colour
         : spec.force_gray() ? picture_colour::gray
                             : picture_colour::as_stored;
}

image_transform transform_of(const ::caffe::LayerParameter& layer, const spec_position& where,
                             const source_options& options, const std::string& source,
                             std::optional<mean_image> mean, const shape& image_shape) {
  try {
    return {layer.transform_param(),
            std::move(mean),
            image_shape,
            options.phase,
            {options.seed, options.layer}};
  } catch (const std::invalid_argument& e) {
    throw layer_error(layer, where, "source \"" + source + "\": " + e.what());
  }
}

}  // namespace

std::shared_ptr<const sample_source> open_data(const ::caffe::LayerParameter& layer,
                                               const spec_position& where,
                                               const source_options& options) {
  const auto& source = layer.data_param().source();
  require_tops(layer, where);
  if (source.empty()) throw layer_error(layer, where, "has no data_param.source.");
  auto mean = mean_of_layer(layer, where, options);
  const auto colour = colour_of(layer, where);
  auto images = named(layer, where, options, "source", source, [&] {
    const auto path = locate(source, options);
    return options.opened ? options.opened->open(path, colour) : open_images(path, colour);
  });
  auto transform =
      transform_of(layer, where, options, source, std::move(mean), images->image_shape());
  return std::make_shared<image_source>(std::move(images), std::move(transform),
                                        layer.top_size() == 2, false, shuffle_key{}, 0,
                                        own_part_of(layer, where, options));
}

std::shared_ptr<const sample_source> open_image_data(const ::caffe::LayerParameter& layer,
                                                     const spec_position& where,
                                                     const source_options& options) {
  const auto& p = layer.image_data_param();
  require_tops(layer, where);
  if (p.source().empty()) throw layer_error(layer, where, "has no image_data_param.source.");
  image_list_options list;
  list.root = p.root_folder();
  list.height = p.new_height();
  list.width = p.new_width();
  list.colour = p.is_color() ? picture_colour::colour : picture_colour::gray;
  list.locate = [options](const std::string& name) { return locate(name, options); };
  auto mean = mean_of_layer(layer, where, options);
  auto images = named(layer, where, options, "source", p.source(),
                      [&] { return open_image_list(locate(p.source(), options), list); });
  std::uint64_t skipped = 0;
  if (p.rand_skip() > 0) {
    const auto word = random_words(options.seed, random_use::shuffle, options.layer, 0, 0)[3];
    skipped = std::uint64_t{word} * p.rand_skip() >> 32;
    if (p.rand_skip() > images->size())
      throw layer_error(layer, where,
                        "rand_skip is " + std::to_string(p.rand_skip()) + ", the list has " +
                            std::to_string(images->size()) + " images.");
  }
  auto transform =
      transform_of(layer, where, options, p.source(), std::move(mean), images->image_shape());
  return std::make_shared<image_source>(
      std::move(images), std::move(transform), layer.top_size() == 2, p.shuffle(),
      shuffle_key{options.seed, options.layer, 0}, skipped, own_part_of(layer, where, options));
}

}  // namespace poseidon
