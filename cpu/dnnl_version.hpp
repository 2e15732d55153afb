// cpu/dnnl_version.hpp
//
// The calls in which oneDNN 2 (Debian 12) and oneDNN 3 (Debian 13 and later) differ. No other file asks for the version. Both
// halves define the same functions:
//
//   forward_descriptor<P>(engine, attributes, what...)         what a primitive P computes, and on which layouts
//   backward_descriptor<P>(engine, attributes, hint, what...)  ... where P goes backward; `hint` is its forward descriptor
//   lrn_forward_descriptor(), lrn_backward_descriptor()        the same for LRN, whose arguments are not those of version 2
//   then_relu(slope)                                           a ReLU that a primitive applies to its result
//
// With version 2 these are the calls that this backend has always made, so its results keep their bits.
// Errors   dnnl::error; its status is dnnl_unimplemented where oneDNN has no kernel for `what`.
#pragma once
#include <dnnl.hpp>

namespace poseidon::cpu {

/// LRN's numbers as oneDNN counts them.
struct lrn_numbers {
  dnnl::memory::dim size;
  float alpha, beta, k;
};

#if DNNL_VERSION_MAJOR < 3

// An operation has a descriptor of its own, from which the primitive's is made.

template <class Primitive, class... What>
[[nodiscard]] auto forward_descriptor(const dnnl::engine& engine,
                                      const dnnl::primitive_attr& attributes, const What&... what) {
  const typename Primitive::desc operation(what...);
  return typename Primitive::primitive_desc(operation, attributes, engine);
}

template <class Primitive, class Hint, class... What>
[[nodiscard]] auto backward_descriptor(const dnnl::engine& engine,
                                       const dnnl::primitive_attr& attributes, const Hint& hint,
                                       const What&... what) {
  const typename Primitive::desc operation(what...);
  return typename Primitive::primitive_desc(operation, attributes, engine, hint);
}

// One layout stands for the values and the results.
[[nodiscard]] inline auto lrn_forward_descriptor(const dnnl::engine& engine,
                                                 const dnnl::primitive_attr& attributes,
                                                 dnnl::prop_kind kind, dnnl::algorithm how,
                                                 const dnnl::memory::desc& blob,
                                                 const lrn_numbers& n) {
  return forward_descriptor<dnnl::lrn_forward>(engine, attributes, kind, how, blob, n.size, n.alpha,
                                               n.beta, n.k);
}

[[nodiscard]] inline auto lrn_backward_descriptor(const dnnl::engine& engine,
                                                  const dnnl::primitive_attr& attributes,
                                                  const dnnl::lrn_forward::primitive_desc& hint,
                                                  dnnl::algorithm how,
                                                  const dnnl::memory::desc& blob,
                                                  const lrn_numbers& n) {
  return backward_descriptor<dnnl::lrn_backward>(engine, attributes, hint, how, blob, blob, n.size,
                                                 n.alpha, n.beta, n.k);
}

[[nodiscard]] inline dnnl::post_ops then_relu(float slope) {
  dnnl::post_ops after;
  const float scale = 1.0f;  // of the ReLU's result; version 3 has none
  after.append_eltwise(scale, dnnl::algorithm::eltwise_relu, slope, 0);
  return after;
}

#else

template <class Primitive, class... What>
[[nodiscard]] auto forward_descriptor(const dnnl::engine& engine,
                                      const dnnl::primitive_attr& attributes, const What&... what) {
  return typename Primitive::primitive_desc(engine, what..., attributes);
}

template <class Primitive, class Hint, class... What>
[[nodiscard]] auto backward_descriptor(const dnnl::engine& engine,
                                       const dnnl::primitive_attr& attributes, const Hint& hint,
                                       const What&... what) {
  return typename Primitive::primitive_desc(engine, what..., hint, attributes);
}

// Values and results have a layout each: forward bottom and top; backward the gradients of bottom and top, then the bottom.
[[nodiscard]] inline auto lrn_forward_descriptor(const dnnl::engine& engine,
                                                 const dnnl::primitive_attr& attributes,
                                                 dnnl::prop_kind kind, dnnl::algorithm how,
                                                 const dnnl::memory::desc& blob,
                                                 const lrn_numbers& n) {
  return forward_descriptor<dnnl::lrn_forward>(engine, attributes, kind, how, blob, blob, n.size,
                                               n.alpha, n.beta, n.k);
}

[[nodiscard]] inline auto lrn_backward_descriptor(const dnnl::engine& engine,
                                                  const dnnl::primitive_attr& attributes,
                                                  const dnnl::lrn_forward::primitive_desc& hint,
                                                  dnnl::algorithm how,
                                                  const dnnl::memory::desc& blob,
                                                  const lrn_numbers& n) {
  return backward_descriptor<dnnl::lrn_backward>(engine, attributes, hint, how, blob, blob, blob,
                                                 n.size, n.alpha, n.beta, n.k);
}

[[nodiscard]] inline dnnl::post_ops then_relu(float slope) {
  dnnl::post_ops after;
  after.append_eltwise(dnnl::algorithm::eltwise_relu, slope, 0);
  return after;
}

#endif

}  // namespace poseidon::cpu
