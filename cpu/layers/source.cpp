// cpu/layers/source.cpp - data layers: what data/ delivered becomes the tops, without a copy where nothing
// writes.
#include "cpu/layer.hpp"
#include "models/device/batch_check.hpp"

#include <cstring>

namespace poseidon::cpu {
namespace {

class source_kernel final : public forward_only {
 public:
  explicit source_kernel(const layer_context& c) : name_(c.layer.name) {
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      tops_.push_back(&c.top(i));
      values_.push_back(c.top(i).values());
      copied_.push_back(written_in_place(c, c.layer.tops[i]));
    }
  }

  void feed(const batch& input) override {
    check_batch(name_, input, values_);
    next_ = &input;
  }

  /// Without a new batch the tops keep their values (write_data, or the last batch); zeros at first.
  void forward(const pass&) override {
    if (next_ == nullptr) {
      for (cpu_blob* top : tops_) {
        if (top->data == nullptr) top->take_own_data();
      }
      return;
    }
    for (std::size_t i = 0; i < tops_.size(); ++i) {
      const host_values& from = next_->tops[i];
      if (copied_[i]) {
        std::memcpy(tops_[i]->data, from.data(), from.size() * sizeof(float));
      } else {
        tops_[i]->data = const_cast<float*>(from.data());  // read only: see written_in_place
      }
    }
    next_ = nullptr;
  }

 private:
  static bool written_in_place(const layer_context& c, std::size_t blob) {
    for (std::size_t i = c.index + 1; i < c.state.graph.layers.size(); ++i) {
      for (const std::size_t t : c.state.graph.layers[i].tops) {
        if (t == blob) return true;
      }
    }
    return false;
  }

  std::string name_;
  std::vector<std::size_t> values_;  ///< by top
  std::vector<cpu_blob*> tops_;
  std::vector<bool> copied_;
  const batch* next_ = nullptr;
};

}  // namespace

std::unique_ptr<kernel> make_source(const layer_context& c) {
  return std::make_unique<source_kernel>(c);
}

}  // namespace poseidon::cpu
