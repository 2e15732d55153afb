#include "cpu/dnnl_run.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace poseidon::cpu {

namespace {

/// The primitives of one layer: up to ten kernels of 256 KiB, and what is allocated on the way.
constexpr std::size_t room_for_code = 16 << 20;

}  // namespace

void require_room_for_code() {
  const memory_for use("kernels that oneDNN compiles");
  void* const room = mmap(nullptr, room_for_code, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw no_memory(room_for_code);
  munmap(room, room_for_code);
}

dnnl::primitive_attr dnnl_run::attributes() const {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return a;
}

void dnnl_run::reserve(const dnnl_desc& scratch) {
  scratch_bytes_ = std::max(scratch_bytes_, scratch.get_size());
}

void dnnl_step::bind(int id, const dnnl_desc& d) {
  arguments_[id] = dnnl::memory(d, run_->engine(), nullptr);
}

void dnnl_step::point(int id, const float* at) {
  arguments_.at(id).set_data_handle(const_cast<float*>(at));
}

void dnnl_step::run() {
  if (scratch_.get_size() != 0) {
    const auto found = arguments_.find(DNNL_ARG_SCRATCHPAD);
    if (found == arguments_.end()) bind(DNNL_ARG_SCRATCHPAD, scratch_);
    point(DNNL_ARG_SCRATCHPAD, run_->scratch());
  }
  primitive_.execute(run_->stream(), arguments_);
  run_->stream().wait();
  if (reordered_bytes_ > 0) run_->count_reorder(reordered_bytes_);
}

dnnl_step product_step(dnnl_run& run, const dnnl::matmul::primitive_desc& d) {
  dnnl_step step(run, dnnl::matmul(d), d);
  step.bind(DNNL_ARG_SRC, d.src_desc());
  step.bind(DNNL_ARG_WEIGHTS, d.weights_desc());
  step.bind(DNNL_ARG_DST, d.dst_desc());
  return step;
}

dnnl_step reorder_step(dnnl_run& run, const dnnl_desc& from, const dnnl_desc& to) {
  if (from == to) return {};
  const dnnl::reorder::primitive_desc d(run.engine(), from, run.engine(), to, run.attributes());
  dnnl_step step(run, dnnl::reorder(d), d);
  step.bind(DNNL_ARG_FROM, from);
  step.bind(DNNL_ARG_TO, to);
  step.counts_as_reorder(to.get_size());
  return step;
}

dnnl_desc describe_plain(const dnnl::memory::dims& extents, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(extents.size());
  dnnl::memory::dim step = 1;
  for (std::size_t i = extents.size(); i-- > 0; step *= extents[i]) strides[i] = step;
  return {extents, type, strides};
}

dnnl_desc describe(const shape& s, layout form) {
  const dnnl::memory::dims extents(s.begin(), s.end());
  if (form == layout::pixels_bf16) return {extents, type_of(form), dnnl::memory::format_tag::nhwc};
  const std::size_t block = block_of(form);
  if (block == 1) return describe_plain(extents, type_of(form));
  return {extents, type_of(form),
          block == 8 ? dnnl::memory::format_tag::nChw8c : dnnl::memory::format_tag::nChw16c};
}

}  // namespace poseidon::cpu
