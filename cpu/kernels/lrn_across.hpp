// cpu/kernels/lrn_across.hpp - LRN across channels: y = x s^-beta, s = k + alpha / n times the sum of squares over n neighbouring channels.
//
// oneDNN's keeps two values for each of x from forward to backward, 244 MB in AlexNet with a batch of 64. Here backward()
// finds s again: the squares are in the cache beside the x that it reads anyway.
//
// Source   Krizhevsky, Sutskever & Hinton, "ImageNet classification with deep convolutional neural networks", NIPS 2012, §3.3.
#pragma once
#include "cpu/bfloat16.hpp"
#include "cpu/buffer.hpp"
#include "cpu/layout.hpp"

#include <cstddef>

namespace poseidon::cpu {

/// Blobs in any layout, with zeros in its padding; all layouts give the same bits.
class lrn_across {
 public:
  struct numbers {
    std::size_t size;  ///< n, odd
    float alpha, beta, k;
  };
  lrn_across(layout form, const image_extent& extent, const numbers& with);

  // T: float, or bfloat16 where the layout has blocks.
  /// Overwrites y.
  template <class T>
  void forward(const T* x, T* y);
  /// Overwrites dx.
  template <class T>
  void backward(const T* x, const T* dy, T* dx);

 private:
  struct column;
  template <class F>
  void each_tile(F f);
  template <bool Whole, class T>
  void write_squares(const column& c, const T* x);
  template <bool Whole, class Power, class T>
  void write_results(const column& c, Power power_of, const T* x, T* y);
  template <bool Whole, class Power, class T>
  void write_shares(const column& c, Power power_of, const T* x, const T* dy);
  template <bool Whole, class T>
  void write_gradients(const column& c, const T* x, const T* dy, T* dx);

  image_extent extent_;
  block_places places_;
  std::size_t width_, step_;  // see lrn_across.cpp
  std::size_t reach_, front_, row_, tile_;
  numbers with_;
  float weight_;  // alpha / n
  buffer squares_, shares_, powers_;
};

}  // namespace poseidon::cpu
