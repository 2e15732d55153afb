#include "gpu/source.hpp"

#include "gpu/blob_memory.hpp"
#include "models/device/batch_check.hpp"

#include <array>

namespace poseidon::gpu {
namespace {

/// A batch lands in one of two waiting places; from there the compute stream takes it into the tops, which kernels of
/// the pass before may read until then.
class source_kernel final : public forward_only {
 public:
  source_kernel(const layer_context& c, context& with) : name_(c.layer.name), with_(with) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < c.layer.tops.size(); ++i) {
      tops_.push_back(&c.top(i));
      values_.push_back(c.top(i).values());
      bytes += aligned(c.top(i).values());
    }
    for (place& p : places_)
      p.memory =
          claim(with.compute, bytes, "batches of data layer \"" + name_ + "\"", smaller_batch);
  }

  void feed(const batch& input) override {
    check_batch(name_, input, values_);
    next_ = &input;
  }

  /// Without a new batch the tops keep their values (write_data, or the last batch); zeros at first.
  void forward(const pass&) override {
    if (next_ == nullptr) return;
    place& here = places_[turn_];
    turn_ = 1 - turn_;
    wait(with_.copy_in, here.taken);
    std::byte* at = here.memory.bytes();
    for (const host_values& from : next_->tops) {
      copy_to_device(with_.copy_in, at, from.data(), from.size() * sizeof(float));
      at += aligned(from.size());
    }
    record(here.arrived, with_.copy_in);
    wait(with_.compute, here.arrived);
    at = here.memory.bytes();
    for (const gpu_blob* top : tops_) {
      copy_within_device(with_.compute, top->data.at(), at, top->bytes());
      at += aligned(top->values());
    }
    record(here.taken, with_.compute);
    next_ = nullptr;
  }

 private:
  struct place {
    explicit place(int device) : arrived(device), taken(device) {}
    device_memory memory;
    event arrived, taken;
  };

  /// Bytes.
  static std::size_t aligned(std::size_t floats) {
    return (floats * sizeof(float) + 255) / 256 * 256;
  }

  std::string name_;
  std::vector<std::size_t> values_;  ///< by top
  context& with_;
  std::vector<const gpu_blob*> tops_;
  std::array<place, 2> places_{place(with_.device), place(with_.device)};
  std::size_t turn_ = 0;
  const batch* next_ = nullptr;
};

}  // namespace

std::unique_ptr<kernel> make_source(const layer_context& c, context& with) {
  return std::make_unique<source_kernel>(c, with);
}

}  // namespace poseidon::gpu
