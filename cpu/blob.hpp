// cpu/blob.hpp - a blob inside a replica, and views of it in the layout that a kernel works in.
#pragma once
#include "cpu/buffer.hpp"
#include "cpu/layout.hpp"

namespace poseidon::cpu {

struct cpu_blob {
  const shape* extents = nullptr;
  layout form = layout::plain;
  buffer own_data, own_diff;  ///< empty where the blob has a place in the replica's arena
  // Memory counts as floats, also where `form` says that it holds bfloat16: see as().

  /// The value of `data`, but for a batch that a data layer hands on; may be null.
  float* home = nullptr;
  /// Own memory, a batch that a data layer handed on, or another blob's memory (Split).
  float* data = nullptr;
  float* diff = nullptr;          ///< null where no layer needs it
  std::uint64_t conversions = 0;  ///< copies that views have made so far

  /// Memory of the blob's own, zeros at first.
  void take_own_data() {
    own_data = buffer(memory());
    home = data = own_data.data();
  }
  [[nodiscard]] std::size_t values() const { return static_cast<std::size_t>(count(*extents)); }
  /// Values, padding included.
  [[nodiscard]] std::size_t stored() const { return stored_size(*extents, form); }
  /// Floats of memory for them.
  [[nodiscard]] std::size_t memory() const { return floats_of(stored(), form); }
};

enum class part { data, diff };

/// Gives a kernel a blob's data or diff in the layout that the kernel wants. Where the blob already has that layout the
/// view is the blob's own memory, and load() and store() cost nothing.
class view {
 public:
  view() = default;
  view(cpu_blob& b, part p, layout wanted) : blob_(&b), part_(p), form_(wanted) {
    if (wanted != b.form) own_ = buffer(floats_of(stored_size(*b.extents, wanted), wanted));
  }
  [[nodiscard]] bool exists() const { return blob_ != nullptr; }
  [[nodiscard]] layout form() const { return form_; }
  [[nodiscard]] bool converts() const { return own_.size() != 0; }
  /// Memory in the wanted layout with the blob's current values.
  [[nodiscard]] float* load() {
    if (converts()) {
      relayout(*blob_->extents, blob_->form, blobs_memory(), form_, own_.data());
      ++blob_->conversions;
    }
    return memory();
  }
  /// Memory in the wanted layout to write into; store() hands it on.
  [[nodiscard]] float* memory() { return converts() ? own_.data() : blobs_memory(); }
  void store() {
    if (!converts()) return;
    relayout(*blob_->extents, form_, own_.data(), blob_->form, blobs_memory());
    ++blob_->conversions;
  }

 private:
  [[nodiscard]] float* blobs_memory() const {
    return part_ == part::data ? blob_->data : blob_->diff;
  }
  cpu_blob* blob_ = nullptr;
  part part_ = part::data;
  layout form_ = layout::plain;
  buffer own_;
};

}  // namespace poseidon::cpu
