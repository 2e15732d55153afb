// cpu/dnnl_run.hpp
//
// How this backend uses oneDNN: one engine, primitives with scratch memory of ours, arguments bound
// once. The library's own scratch belongs to the thread that created a primitive, and a replica is
// compiled by one thread and executed by another, so every primitive here takes it from its replica
// instead.
#pragma once
#include "cpu/buffer.hpp"
#include "cpu/dnnl_version.hpp"
#include "cpu/layout.hpp"
#include "models/device/device.hpp"

#include <dnnl.hpp>

#include <string>
#include <unordered_map>

namespace poseidon::cpu {

using dnnl_desc = dnnl::memory::desc;
using dnnl_arguments = std::unordered_map<int, dnnl::memory>;

/// Engine, stream and the scratch memory of one replica, shared by its primitives because they run
/// in turn.
class dnnl_run {
 public:
  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  [[nodiscard]] dnnl::primitive_attr attributes() const;
  /// Called for each primitive when it is made; the largest request wins.
  void reserve(const dnnl_desc& scratch);
  /// After the last reserve(), before the first execution.
  void allocate() { scratch_ = buffer(scratch_bytes_ / sizeof(float) + 1); }
  [[nodiscard]] float* scratch() { return scratch_.data(); }
  [[nodiscard]] dnnl::stream& stream() { return stream_; }
  [[nodiscard]] const reorder_count& reorders() const { return reorders_; }
  void count_reorder(std::size_t bytes) { ++reorders_.copies, reorders_.bytes += bytes; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::size_t scratch_bytes_ = 0;
  buffer scratch_;
  reorder_count reorders_;
};

/// A primitive with its arguments; run() executes it and returns when it is done.
class dnnl_step {
 public:
  dnnl_step() = default;
  template <class Descriptor>
  dnnl_step(dnnl_run& run, const dnnl::primitive& p, const Descriptor& d)
      : run_(&run), primitive_(p) {
    scratch_ = d.scratchpad_desc();
    run.reserve(scratch_);
  }
  [[nodiscard]] bool made() const { return run_ != nullptr; }
  /// Argument `id` has layout `d`; its memory is set by point().
  void bind(int id, const dnnl_desc& d);
  void point(int id, const float* at);
  void run();
  /// run() counts these bytes as reordered.
  void counts_as_reorder(std::size_t bytes) { reordered_bytes_ = bytes; }

 private:
  dnnl_run* run_ = nullptr;
  dnnl::primitive primitive_;
  dnnl_desc scratch_;
  dnnl_arguments arguments_;
  std::size_t reordered_bytes_ = 0;
};

/// A product of two matrices: SRC times WEIGHTS is DST.
[[nodiscard]] dnnl_step product_step(dnnl_run& run, const dnnl::matmul::primitive_desc& d);

/// A copy between two oneDNN layouts; nothing at all where they are the same (made() is false).
[[nodiscard]] dnnl_step reorder_step(dnnl_run& run, const dnnl_desc& from, const dnnl_desc& to);

/// oneDNN writes the machine code of a kernel without asking whether it got memory for it, and the process dies of SIGSEGV if
/// it got none. So this asks first.
/// Errors   no_memory.
void require_room_for_code();

/// Calls `make`, which makes primitives.
/// Errors   no_memory where oneDNN says that it has none; what `make` throws.
template <class Make>
auto with_room_for_code(Make make) {
  require_room_for_code();
  try {
    return make();
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_out_of_memory) throw;
    throw no_memory(0);
  }
}

/// oneDNN's type of a layout's values.
[[nodiscard]] inline dnnl::memory::data_type type_of(layout form) {
  return is_bf16(form) ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// The descriptor of a blob; blocked layouts only for four axes.
[[nodiscard]] dnnl_desc describe(const shape& s, layout form);

/// Row-major with these extents, for weights and other non-images.
[[nodiscard]] dnnl_desc describe_plain(const dnnl::memory::dims& extents,
                                       dnnl::memory::data_type type = dnnl::memory::data_type::f32);

/// Is this one of oneDNN's slow loops that exist for completeness?
template <class Descriptor>
[[nodiscard]] bool is_reference(const Descriptor& d) {
  return std::string(d.impl_info_str()).find("ref") != std::string::npos;
}

}  // namespace poseidon::cpu
