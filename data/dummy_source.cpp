#include "data/dummy_source.hpp"

#include "models/net/fillers.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poseidon {
namespace {

std::vector<shape> top_shapes(const ::caffe::LayerParameter& layer, const spec_position& where) {
  const auto& p = layer.dummy_data_param();
  const auto tops = layer.top_size();
  if (p.num_size() > 0 && p.shape_size() > 0)
    throw layer_error(layer, where,
                      "has both shape and the old num, channels, height, width. Keep shape.");
  const auto given = p.shape_size() > 0 ? p.shape_size() : p.num_size();
  if (given != 1 && given != tops)
    throw layer_error(layer, where,
                      "has " + std::to_string(given) + " shapes for " + std::to_string(tops) +
                          " tops. Give one, or one for each top.");
  if (p.shape_size() == 0 &&
      (p.channels_size() != given || p.height_size() != given || p.width_size() != given))
    throw layer_error(layer, where,
                      "has " + std::to_string(given) + " num, " +
                          std::to_string(p.channels_size()) + " channels, " +
                          std::to_string(p.height_size()) + " height, " +
                          std::to_string(p.width_size()) + " width. Give as many of each.");
  std::vector<shape> shapes;
  for (int t = 0; t < tops; ++t) {
    const int i = given == 1 ? 0 : t;
    if (p.shape_size() > 0)
      shapes.emplace_back(p.shape(i).dim().begin(), p.shape(i).dim().end());
    else
      shapes.push_back({p.num(i), p.channels(i), p.height(i), p.width(i)});
    const auto& s = shapes.back();
    if (s.empty() || std::any_of(s.begin(), s.end(), [](auto extent) { return extent <= 0; }))
      throw layer_error(layer, where,
                        "top \"" + layer.top(t) + "\" is " + to_string(s) +
                            ". A source needs a batch axis, and every axis at least 1.");
    if (s[0] != shapes[0][0])
      throw layer_error(layer, where,
                        "top \"" + layer.top(t) + "\" has " + std::to_string(s[0]) +
                            " samples, top \"" + layer.top(0) + "\" has " +
                            std::to_string(shapes[0][0]) + ". All tops share the batch axis.");
  }
  return shapes;
}

class dummy_source final : public sample_source {
 public:
  dummy_source(const ::caffe::LayerParameter& layer, const spec_position& where,
               const source_options& options)
      : options_(options) {
    const auto& fillers = layer.dummy_data_param().data_filler();
    if (fillers.size() > 1 && fillers.size() != layer.top_size())
      throw layer_error(layer, where,
                        "has " + std::to_string(fillers.size()) + " data_filler for " +
                            std::to_string(layer.top_size()) +
                            " tops. Give none, one, or one for each top.");
    const auto shapes = top_shapes(layer, where);
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      net_parameter p;
      p.name = layer.name() + " top " + layer.top(static_cast<int>(t));
      p.shape = shapes[t];
      p.shape[0] = 1;  // one sample is drawn at a time
      if (!fillers.empty()) p.filler = fillers[fillers.size() == 1 ? 0 : static_cast<int>(t)];
      sample_shapes_.emplace_back(shapes[t].begin() + 1, shapes[t].end());
      fillers_.push_back(std::move(p));
    }
    check_fillers(layer, where);
  }

  std::uint64_t size() const override { return std::numeric_limits<std::int64_t>::max(); }
  const std::vector<shape>& sample_shapes() const override { return sample_shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    for (std::size_t t = 0; t < tops.size(); ++t) fill_top(t, global, tops[t]);
  }

 private:
  void fill_top(std::size_t t, std::uint64_t global, std::span<float> values) const {
    const auto& p = fillers_[t];
    if (p.filler.type() == "constant") {
      std::fill(values.begin(), values.end(), p.filler.value());
      return;
    }
    const auto words = random_words(options_.seed, random_use::filler, options_.layer, global,
                                    static_cast<std::uint32_t>(t));
    const auto seed = std::uint64_t{words[1]} << 32 | words[0];
    poseidon::fill(p, static_cast<std::uint32_t>(t), seed, values);
  }

  /// Fills each top once, so that a mistake is reported here, with its place, and not in the first
  /// iteration.
  void check_fillers(const ::caffe::LayerParameter& layer, const spec_position& where) const {
    for (std::size_t t = 0; t < fillers_.size(); ++t) {
      std::vector<float> values(static_cast<std::size_t>(count(fillers_[t].shape)));
      try {
        fill_top(t, 0, values);
      } catch (const std::exception& e) {
        throw layer_error(layer, where, e.what());
      }
    }
  }

  source_options options_;
  std::vector<shape> sample_shapes_;
  std::vector<net_parameter> fillers_;
};
}  // namespace

std::shared_ptr<const sample_source> open_dummy(const ::caffe::LayerParameter& layer,
                                                const spec_position& where,
                                                const source_options& options) {
  return std::make_shared<dummy_source>(layer, where, options);
}

std::int64_t dummy_batch_size(const ::caffe::LayerParameter& layer, const spec_position& where) {
  const auto shapes = top_shapes(layer, where);
  if (shapes.empty()) throw layer_error(layer, where, "has no top.");
  return shapes[0][0];
}

}  // namespace poseidon
