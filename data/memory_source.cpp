#include "data/memory_source.hpp"

#include "data/dummy_source.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {
namespace {

class memory_source final : public sample_source {
 public:
  memory_source(std::shared_ptr<const memory_samples> samples, const shape& one)
      : samples_(std::move(samples)), shapes_{one, {}} {}
  std::uint64_t size() const override { return samples_->labels.size(); }
  const std::vector<shape>& sample_shapes() const override { return shapes_; }
  void fill(std::uint64_t global, std::span<const std::span<float>> tops) const override {
    const auto n = global % size();
    std::copy_n(samples_->values.begin() + static_cast<std::ptrdiff_t>(n * tops[0].size()),
                tops[0].size(), tops[0].begin());
    if (tops.size() > 1) tops[1][0] = samples_->labels[n];
  }

 private:
  std::shared_ptr<const memory_samples> samples_;
  std::vector<shape> shapes_;
};

}  // namespace

std::shared_ptr<const sample_source> open_memory(const ::caffe::LayerParameter& layer,
                                                 const spec_position& where,
                                                 const source_options& options) {
  const auto& p = layer.memory_data_param();
  const shape one{p.channels(), p.height(), p.width()};
  if (std::any_of(one.begin(), one.end(), [](auto extent) { return extent < 1; }))
    throw layer_error(layer, where,
                      "memory_data_param says that a sample is " + to_string(one) +
                          "; channels, height and width have to be at least 1.");
  const auto given = options.memory.find(layer.name());
  if (given == options.memory.end())
    throw layer_error(layer, where,
                      "takes its samples from the memory of a program, and this one has none for "
                      "it. Train from a Data, HDF5Data or ImageData layer instead (poseidon-data "
                      "convert makes their sources).");
  const auto& samples = *given->second;
  if (samples.labels.empty() ||
      samples.values.size() != samples.labels.size() * static_cast<std::size_t>(count(one)))
    throw layer_error(layer, where,
                      "was given " + std::to_string(samples.values.size()) + " values and " +
                          std::to_string(samples.labels.size()) + " labels; each sample is " +
                          to_string(one) + " and one label.");
  return std::make_shared<memory_source>(given->second, one);
}

}  // namespace poseidon
