// gpu/layers/selection.cpp - layers that pick values: Crop, BatchReindex, Embed.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/gather.hpp"
#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

/// A box of bottom 0, as large as bottom 1 from one axis on. Bottom 1 gives nothing but its shape, so its gradient is
/// zero.
class crop_kernel final : public kernel {
 public:
  explicit crop_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        reference_(c.wants_diff(1) ? &c.bottom(1) : nullptr),
        backward_wanted_(c.wants_diff(0)) {
    const auto& p = c.layer.spec.crop_param();
    const shape &in = c.bottom_shape(0), &out = c.top_shape(0);
    if (in.size() > static_cast<std::size_t>(box::most_axes))
      c.refuse("the GPU crops up to " + std::to_string(box::most_axes) + " axes, the bottom is " +
               to_string(in) + ".");
    box_.axes = static_cast<int>(in.size());
    const int begin = p.axis() < 0 ? p.axis() + box_.axes : p.axis();
    std::size_t step = 1;
    for (int a = box_.axes; a-- > 0;
         step *= static_cast<std::size_t>(in[static_cast<std::size_t>(a)])) {
      const bool cropped = a >= begin && p.offset_size() > 0;
      const std::size_t offset = cropped ? p.offset(p.offset_size() == 1 ? 0 : a - begin) : 0;
      box_.extent[a] = static_cast<std::size_t>(out[static_cast<std::size_t>(a)]);
      box_.first[a] = offset * step;
      box_.step[a] = step;
    }
  }
  void forward(const pass&) override {
    take_box(compute_, box_, top_.values(), bottom_.data, top_.data);
  }
  void backward(const pass&) override {
    if (reference_ != nullptr) clear(compute_, reference_->diff.at(), reference_->bytes());
    if (!backward_wanted_) return;
    clear(compute_, bottom_.diff.at(), bottom_.bytes());
    put_box(compute_, box_, top_.values(), top_.diff, bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  const gpu_blob* reference_;
  bool backward_wanted_;
  box box_;
};

/// Sample number z[i] of bottom 0 becomes sample i of the top.
class batch_reindex_kernel final : public kernel {
 public:
  explicit batch_reindex_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        number_(c.bottom(1)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        size_(static_cast<std::size_t>(count(c.bottom_shape(0), 1, c.bottom_shape(0).size()))),
        fault_(c.fault([name = c.layer.name, samples = samples_](float index) {
          return "layer \"" + name + "\" (BatchReindex): an index is " + std::to_string(index) +
                 ", its first bottom has " + std::to_string(samples) + " samples (0 to " +
                 std::to_string(samples - 1) + ").";
        })) {
    c.require_no_gradient(1, "indices");
  }
  void forward(const pass&) override {
    gather_rows(compute_, samples_, size_, number_.values(), number_.data, bottom_.data, top_.data,
                fault_);
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      add_gathered_rows(compute_, samples_, size_, number_.values(), number_.data, top_.diff,
                        bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &number_, &top_;
  bool backward_wanted_;
  std::size_t samples_, size_;
  label_fault* fault_;
};

/// Each number becomes a row of a learned table, plus a bias.
class embed_kernel final : public kernel {
 public:
  explicit embed_kernel(const layer_context& c)
      : compute_(c.compute()),
        number_(c.bottom(0)),
        top_(c.top(0)),
        rows_(c.layer.spec.embed_param().input_dim()),
        length_(c.layer.spec.embed_param().num_output()),
        table_(c.parameter(0)),
        table_gradient_(c.gradient(0)),
        fault_(c.fault([name = c.layer.name, rows = rows_](float index) {
          return "layer \"" + name + "\" (Embed): an index is " + std::to_string(index) +
                 ", input_dim is " + std::to_string(rows) + " (0 to " + std::to_string(rows - 1) +
                 "). Do the data and input_dim belong together?";
        })) {
    c.require_no_gradient(0, "indices");
    if (!c.layer.spec.embed_param().bias_term()) return;
    bias_ = c.parameter(1);
    bias_gradient_ = c.gradient(1);
  }
  void forward(const pass&) override {
    gather_rows(compute_, rows_, length_, number_.values(), number_.data, table_, top_.data,
                fault_);
    if (bias_ != nullptr) scale_channels(compute_, tops(), top_.data, nullptr, bias_, top_.data);
  }
  void backward(const pass&) override {
    if (top_.diff == nullptr) return;
    if (table_gradient_.wanted()) {
      add_gathered_rows(compute_, rows_, length_, number_.values(), number_.data, top_.diff,
                        table_gradient_.begin());
      table_gradient_.end();
    }
    if (bias_gradient_.wanted()) {
      sum_channels(compute_, tops(), top_.diff, bias_gradient_.begin());
      bias_gradient_.end();
    }
  }

 private:
  [[nodiscard]] channel_shape tops() const { return {number_.values(), length_, 1}; }

  stream& compute_;
  const gpu_blob &number_, &top_;
  std::size_t rows_, length_;
  const float *table_, *bias_ = nullptr;
  gradient_slot table_gradient_, bias_gradient_;
  label_fault* fault_;
};

}  // namespace

std::unique_ptr<kernel> make_crop(const layer_context& c) {
  return std::make_unique<crop_kernel>(c);
}

std::unique_ptr<kernel> make_batch_reindex(const layer_context& c) {
  return std::make_unique<batch_reindex_kernel>(c);
}

std::unique_ptr<kernel> make_embed(const layer_context& c) {
  return std::make_unique<embed_kernel>(c);
}

}  // namespace poseidon::gpu
