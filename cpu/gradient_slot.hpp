// cpu/gradient_slot.hpp - where a layer writes the gradient of a parameter, be it its own or shared.
#pragma once
#include "cpu/buffer.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poseidon::cpu {

/// The gradient of one parameter that several layers share. Each of them has memory of its own, and
/// the last to run in a pass adds everything up, from the net's last layer to its first as Caffe
/// does: parallel branches may run in any order, the sum must not.
class shared_gradient {
 public:
  shared_gradient(std::span<float> total, std::size_t layers) : total_(total) {
    for (std::size_t i = 1; i < layers; ++i) others_.emplace_back(total.size());
  }
  /// Memory of the i-th layer, counted from the net's end; what comes last there is the sum.
  [[nodiscard]] std::span<float> part(std::size_t i) {
    return i == 0 ? total_ : std::span(others_[i - 1].data(), others_[i - 1].size());
  }
  /// One layer's part of this pass is written.
  void written() {
    if (++written_ <= others_.size()) return;
    written_ = 0;
    for (const buffer& other : others_)
      for (std::size_t v = 0; v < total_.size(); ++v) total_[v] += other.data()[v];
  }

 private:
  std::span<float> total_;
  std::vector<buffer> others_;
  std::size_t written_ = 0;
};

/// Where one layer writes the gradient of one parameter: between begin() and end(), once per pass.
class gradient_slot {
 public:
  gradient_slot() = default;
  explicit gradient_slot(std::span<float> target, std::shared_ptr<shared_gradient> with = {})
      : target_(target), shared_(std::move(with)) {}
  [[nodiscard]] bool wanted() const { return !target_.empty(); }
  [[nodiscard]] float* begin() { return target_.data(); }
  void end() {
    if (shared_ != nullptr) shared_->written();
  }

 private:
  std::span<float> target_;
  std::shared_ptr<shared_gradient> shared_;
};

}  // namespace poseidon::cpu
