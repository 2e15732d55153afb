#include "gpu/converted_blobs.hpp"

#include "gpu/kernels/copies.hpp"

#include <utility>

namespace poseidon::gpu {
namespace {

class converting_kernel final : public kernel {
 public:
  converting_kernel(const layer_context& c, std::unique_ptr<kernel> layer)
      : compute_(c.compute()), layer_(std::move(layer)) {
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      if (auto p = pair_of(c, c.layer.bottoms[i])) bottoms_.push_back({*p, c.wants_diff(i)});
    for (const std::size_t t : c.layer.tops)
      if (auto p = pair_of(c, t)) tops_.push_back(*p);
  }

  void feed(const batch& input) override { layer_->feed(input); }
  void factors(std::span<float> u, std::span<float> v) override { layer_->factors(u, v); }

  void forward(const pass& p) override {
    for (const auto& [b, diff_wanted] : bottoms_) convert(*b.net, b.net->data, *b.own, b.own->data);
    layer_->forward(p);
    for (const pair& t : tops_) convert(*t.own, t.own->data, *t.net, t.net->data);
  }

  void backward(const pass& p) override {
    for (const pair& t : tops_)
      if (t.net->diff != nullptr) convert(*t.net, t.net->diff, *t.own, t.own->diff);
    layer_->backward(p);
    for (const auto& [b, diff_wanted] : bottoms_)
      if (diff_wanted) convert(*b.own, b.own->diff, *b.net, b.net->diff);
  }

 private:
  /// A blob as the net has it, and as the layer has.
  struct pair {
    const gpu_blob *net, *own;
  };
  struct bottom {
    pair of;
    bool diff_wanted;
  };

  static std::optional<pair> pair_of(const layer_context& c, std::size_t blob) {
    const gpu_blob* own = c.converted->find(blob);
    return own == nullptr ? std::nullopt : std::optional(pair{&c.state.blobs[blob], own});
  }

  /// From one side's data or diff to the other's.
  void convert(const gpu_blob& of, const_values from, const gpu_blob& as, values to) {
    const shape& s = *of.extents;
    const auto channels = static_cast<std::size_t>(s[1]),
               plane = static_cast<std::size_t>(count(s, 2, s.size()));
    const bool last = channels_last(of.order);
    if (last == channels_last(as.order)) return turn(compute_, 1, 1, of.values(), from, to);
    turn(compute_, static_cast<std::size_t>(s[0]), last ? plane : channels, last ? channels : plane,
         from, to);
  }

  stream& compute_;
  std::unique_ptr<kernel> layer_;
  std::vector<bottom> bottoms_;
  std::vector<pair> tops_;
};

}  // namespace

converted_blobs::converted_blobs(const layer_context& c) {
  const auto add = [&](std::size_t b) {
    const gpu_blob& of = c.state.blobs[b];
    if (!differ(of.order, c.order(), *of.extents) || blobs_.contains(b)) return;
    gpu_blob& own = blobs_[b];
    own.extents = of.extents;
    own.order = c.order();
    const auto memory_for = [&](const_values wanted) -> values {
      if (wanted == nullptr) return nullptr;
      memory_.push_back(c.allocate(own.bytes()));
      return values_in(memory_.back(), own);
    };
    own.data = memory_for(of.data);
    own.diff = memory_for(of.diff);
  };
  if (is_source(c.layer)) return;
  for (const std::size_t b : c.layer.bottoms) add(b);
  for (const std::size_t t : c.layer.tops) add(t);
}

const gpu_blob* converted_blobs::find(std::size_t blob) const {
  const auto found = blobs_.find(blob);
  return found == blobs_.end() ? nullptr : &found->second;
}

std::unique_ptr<kernel> make_converting(const layer_context& c, std::unique_ptr<kernel> layer) {
  return std::make_unique<converting_kernel>(c, std::move(layer));
}

}  // namespace poseidon::gpu
