// gpu/kernels/losses.hpp - losses that compare value by value.
//
// Writes   outputs are overwritten; `loss` and `dloss` are one value each
#pragma once
#include "gpu/kernels/labels.hpp"
#include "gpu/runtime/runtime.hpp"

#include <cstddef>

namespace poseidon::gpu {

/// loss = sum of (a - b)^2 / 2 / samples; writes a - b to `difference`.
void euclidean_loss(stream& s, std::size_t n, float samples, const float* a, const float* b,
                    float* difference, float* loss);
/// dx = factor * difference * dloss; dloss may be null: 0.
void euclidean_loss_backward(stream& s, std::size_t n, float factor, const float* difference,
                             const float* dloss, float* dx);

/// Cross entropy of sigmoid(x) against targets in [0, 1], divided by the normalizer, which is written for the gradient.
void sigmoid_cross_entropy(stream& s, std::size_t n, std::size_t samples, const label_rules& rules,
                           const float* x, const float* target, float* loss, float* normalizer);
void sigmoid_cross_entropy_backward(stream& s, std::size_t n, const label_rules& rules,
                                    const float* x, const float* target, const float* dloss,
                                    const float* normalizer, float* dx);

/// Rows of scores, one for each class, and a label for each row.
struct score_rows {
  std::size_t rows = 0, classes = 0;
};
/// loss = sum over rows and classes of m, or of m^2 if `squared`, / rows; m = max(0, 1 - x) of the right class, and
/// max(0, 1 + x) of the others. Writes m with the sign of its derivative.
void hinge_loss(stream& s, const score_rows& r, bool squared, const label_rules& rules,
                const float* x, const float* label, float* margins, float* loss,
                label_fault* fault);
void hinge_loss_backward(stream& s, const score_rows& r, bool squared, const float* margins,
                         const float* dloss, float* dx);
/// loss = - sum of log p[right] / rows, of probabilities.
void multinomial_loss(stream& s, const score_rows& r, const label_rules& rules, const float* p,
                      const float* label, float* loss, label_fault* fault);
void multinomial_loss_backward(stream& s, const score_rows& r, const label_rules& rules,
                               const float* p, const float* label, const float* dloss, float* dp);

/// Pairs of vectors a, b that are to be close where `similar`, and further apart than the margin elsewhere.
struct contrastive_pairs {
  std::size_t pairs = 0, length = 0;
  float margin = 1;
  bool legacy = false;  ///< the margin is compared with the squared distance
};
/// Writes a - b to `difference`, and the squared distance of each pair.
void contrastive_loss(stream& s, const contrastive_pairs& c, const float* a, const float* b,
                      const float* similar, float* difference, float* squared, float* loss);
/// dx of a; of b with sign -1.
void contrastive_loss_backward(stream& s, const contrastive_pairs& c, float sign,
                               const float* difference, const float* squared, const float* similar,
                               const float* dloss, float* dx);

}  // namespace poseidon::gpu
