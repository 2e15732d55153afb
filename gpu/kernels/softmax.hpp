// gpu/kernels/softmax.hpp - kernels over scores of classes: probabilities, losses, and accuracy.
//
// Shapes   scores, probabilities and their diffs [outer, classes, inner]; labels [outer, inner], numbers of classes
// Writes   outputs are overwritten
#pragma once
#include "gpu/kernels/labels.hpp"
#include "gpu/runtime/runtime.hpp"

#include <cstddef>

namespace poseidon::gpu {

struct class_shape {
  std::size_t outer = 1, classes = 1, inner = 1;

  [[nodiscard]] std::size_t places() const { return outer * inner; }
  [[nodiscard]] std::size_t values() const { return outer * classes * inner; }
};

/// y = e^x / (sum of e^x over the classes). `largest_and_sum` [2, places] is scratch.
void softmax(stream& s, const class_shape& c, const float* x, float* largest_and_sum, float* y);
/// dx = y (dy - sum of dy y). `dots` [places] is scratch.
void softmax_backward(stream& s, const class_shape& c, const float* y, const float* dy, float* dots,
                      float* dx);

/// loss = - (sum of log of the right class's probability) / normalizer. Writes the normalizer for the gradient.
void softmax_loss(stream& s, const class_shape& c, const label_rules& rules,
                  const float* probability, const float* label, float* loss, float* normalizer,
                  label_fault* fault);
/// dx = (probability - 1 for the right class) * dloss / normalizer; 0 where the label is ignored.
void softmax_loss_backward(stream& s, const class_shape& c, const label_rules& rules,
                           const float* probability, const float* label, const float* dloss,
                           const float* normalizer, float* dx);

/// loss = - (sum over places and classes k of gain[right, k] * log of k's probability) / normalizer, for a matrix of
/// gains [classes, classes]. Writes the normalizer for the gradient.
void infogain_loss(stream& s, const class_shape& c, const label_rules& rules,
                   const float* probability, const float* gain, const float* label, float* loss,
                   float* normalizer, label_fault* fault);
/// dx = (probability * sum of the right class's gains - its gain for this class) * dloss / normalizer. `gain_sums`
/// [classes] are the sums of the matrix's rows.
void infogain_loss_backward(stream& s, const class_shape& c, const label_rules& rules,
                            const float* probability, const float* gain, const float* gain_sums,
                            const float* label, const float* dloss, const float* normalizer,
                            float* dx);

/// accuracy = hits / labels that count. A hit is a label with fewer than top_k other classes that score as well.
/// `per_class` [classes], the accuracy by class, may be null. `hits` [places] is scratch.
void accuracy(stream& s, const class_shape& c, std::size_t top_k, const label_rules& rules,
              const float* score, const float* label, float* hits, float* accuracy,
              float* per_class, label_fault* fault);

}  // namespace poseidon::gpu
