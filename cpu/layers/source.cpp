// cpu/layers/source.cpp - data layers: what data/ delivered becomes the tops, without a copy where nothing
// writes.
#include "cpu/layer.hpp"

#include <cstring>
#include <stdexcept>

namespace poseidon::cpu {
namespace {

class source_kernel final : public forward_only {
 public:
  explicit source_kernel(const layer_context& c) : name_(c.layer.name) {
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      tops_.push_back(&c.top(i));
      copied_.push_back(written_in_place(c, c.layer.tops[i]));
    }
  }

  void feed(const batch& input) override {
    if (input.tops.size() != tops_.size()) refuse("tops", input.tops.size(), tops_.size());
    for (std::size_t i = 0; i < tops_.size(); ++i) {
      if (input.tops[i].size() != tops_[i]->values()) {
        refuse("values", input.tops[i].size(), tops_[i]->values());
      }
    }
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

  [[noreturn]] void refuse(const char* what, std::size_t has, std::size_t needs) const {
    throw std::invalid_argument("data layer \"" + name_ + "\" was fed " + std::to_string(has) +
                                " " + what + ", the net needs " + std::to_string(needs));
  }

  std::string name_;
  std::vector<cpu_blob*> tops_;
  std::vector<bool> copied_;
  const batch* next_ = nullptr;
};

}  // namespace

std::unique_ptr<kernel> make_source(const layer_context& c) {
  return std::make_unique<source_kernel>(c);
}

}  // namespace poseidon::cpu
