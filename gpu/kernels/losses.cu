#include "gpu/kernels/losses.hpp"
#include "gpu/runtime/launch.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// Probabilities are taken to be at least this before their logarithm.
constexpr float least_probability = 1e-20f;

/// Caffe's labels are integers: 0.5 is 0.
POSEIDON_HOST_DEVICE inline bool is_similar(float label) {
  return static_cast<int>(label) != 0;
}

struct add_doubles {
  POSEIDON_HOST_DEVICE double operator()(double a, double b) const { return a + b; }
};

}  // namespace

void euclidean_loss(stream& s, std::size_t n, float samples, const float* a, const float* b,
                    float* difference, float* loss) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { difference[i] = a[i] - b[i]; });
  reduce_rows<double>(
      s, 1, n, 0.0,
      [=] POSEIDON_DEVICE(index, index i) { return double{difference[i]} * double{difference[i]}; },
      add_doubles{},
      [=] POSEIDON_DEVICE(index, double sum) {
        *loss = static_cast<float>(sum / static_cast<double>(samples) / 2);
      });
}

void euclidean_loss_backward(stream& s, std::size_t n, float factor, const float* difference,
                             const float* dloss, float* dx) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    dx[i] = factor * (dloss == nullptr ? 0.0f : *dloss) * difference[i];
  });
}

void sigmoid_cross_entropy(stream& s, std::size_t n, std::size_t samples, const label_rules& rules,
                           const float* x, const float* target, float* loss, float* normalizer) {
  const label_rules r = rules;
  const auto places = static_cast<double>(n), outer = static_cast<double>(samples);
  reduce_rows<counted_sum>(
      s, 1, n, counted_sum{0, 0},
      [=] POSEIDON_DEVICE(index, index i) {
        if (r.is_ignored(target[i])) return counted_sum{0, 0};
        const float v = x[i], positive = v >= 0 ? 1.0f : 0.0f;  // so that exp never overflows
        const float term =
            v * (target[i] - positive) - std::log(1 + std::exp(v - 2 * v * positive));
        return counted_sum{-static_cast<double>(term), 1};
      },
      add_counted{},
      [=] POSEIDON_DEVICE(index, counted_sum all) {
        *normalizer = r.normalizer(places, outer, all.count);
        *loss = static_cast<float>(all.sum) / *normalizer;
      });
}

void sigmoid_cross_entropy_backward(stream& s, std::size_t n, const label_rules& rules,
                                    const float* x, const float* target, const float* dloss,
                                    const float* normalizer, float* dx) {
  const label_rules r = rules;
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    const float probability = 0.5f * std::tanh(0.5f * x[i]) + 0.5f;
    dx[i] = r.is_ignored(target[i]) ? 0.0f : (probability - target[i]) * (*dloss / *normalizer);
  });
}

void hinge_loss(stream& s, const score_rows& r, bool squared, const label_rules& rules,
                const float* x, const float* label, float* margins, float* loss,
                label_fault* fault) {
  const label_rules known = rules;
  const index classes = to_index(r.classes);
  const auto rows = static_cast<double>(r.rows);
  reduce_rows<double>(
      s, 1, r.rows * r.classes, 0.0,
      [=] POSEIDON_DEVICE(index, index i) {
        const float of = label[i / classes];
        if (!known.is_class(of)) fault->raise(of);
        const bool right = known.is_class(of) && static_cast<index>(of) == i % classes;
        const float signed_score = right ? -x[i] : x[i];
        const float m = 1 + signed_score > 0 ? 1 + signed_score : 0.0f;
        margins[i] = right ? -m : m;
        return squared ? static_cast<double>(m) * static_cast<double>(m) : static_cast<double>(m);
      },
      add_doubles{},
      [=] POSEIDON_DEVICE(index, double sum) { *loss = static_cast<float>(sum / rows); });
}

void hinge_loss_backward(stream& s, const score_rows& r, bool squared, const float* margins,
                         const float* dloss, float* dx) {
  const auto rows = static_cast<float>(r.rows);
  for_each(s, r.rows * r.classes, [=] POSEIDON_DEVICE(index i) {
    const float m = margins[i], sign = m > 0 ? 1.0f : m < 0 ? -1.0f : 0.0f;
    dx[i] = *dloss / rows * (squared ? 2 * m : sign);
  });
}

void multinomial_loss(stream& s, const score_rows& r, const label_rules& rules, const float* p,
                      const float* label, float* loss, label_fault* fault) {
  const label_rules known = rules;
  const index classes = to_index(r.classes);
  const auto rows = static_cast<double>(r.rows);
  reduce_rows<double>(
      s, 1, r.rows, 0.0,
      [=] POSEIDON_DEVICE(index, index row) {
        if (!known.is_class(label[row])) {
          fault->raise(label[row]);
          return 0.0;
        }
        const float q = p[row * classes + static_cast<index>(label[row])];
        return -static_cast<double>(std::log(q > least_probability ? q : least_probability));
      },
      add_doubles{},
      [=] POSEIDON_DEVICE(index, double sum) { *loss = static_cast<float>(sum / rows); });
}

void multinomial_loss_backward(stream& s, const score_rows& r, const label_rules& rules,
                               const float* p, const float* label, const float* dloss, float* dp) {
  const label_rules known = rules;
  const index classes = to_index(r.classes);
  const auto rows = static_cast<float>(r.rows);
  for_each(s, r.rows * r.classes, [=] POSEIDON_DEVICE(index i) {
    const float of = label[i / classes];
    const bool right = known.is_class(of) && static_cast<index>(of) == i % classes;
    const float q = p[i] > least_probability ? p[i] : least_probability;
    dp[i] = right ? -*dloss / rows / q : 0.0f;
  });
}

void contrastive_loss(stream& s, const contrastive_pairs& c, const float* a, const float* b,
                      const float* similar, float* difference, float* squared, float* loss) {
  const index length = to_index(c.length);
  const contrastive_pairs p = c;
  reduce_rows<double>(
      s, c.pairs, c.length, 0.0,
      [=] POSEIDON_DEVICE(index pair, index i) {
        const std::size_t at = std::size_t{pair} * length + i;
        const float d = a[at] - b[at];
        difference[at] = d;
        return static_cast<double>(d) * static_cast<double>(d);
      },
      add_doubles{},
      [=] POSEIDON_DEVICE(index pair, double sum) { squared[pair] = static_cast<float>(sum); });
  const auto pairs = static_cast<double>(c.pairs);
  reduce_rows<double>(
      s, 1, c.pairs, 0.0,
      [=] POSEIDON_DEVICE(index, index pair) {
        const double distance = squared[pair], margin = p.margin;
        if (is_similar(similar[pair])) return distance;
        const double gap = p.legacy ? margin - distance : margin - std::sqrt(distance);
        return gap <= 0 ? 0.0 : p.legacy ? gap : gap * gap;
      },
      add_doubles{},
      [=] POSEIDON_DEVICE(index, double sum) { *loss = static_cast<float>(sum / pairs / 2); });
}

void contrastive_loss_backward(stream& s, const contrastive_pairs& c, float sign,
                               const float* difference, const float* squared, const float* similar,
                               const float* dloss, float* dx) {
  const index length = to_index(c.length);
  const contrastive_pairs p = c;
  const float factor = sign / static_cast<float>(c.pairs);
  for_each(s, c.pairs * c.length, [=] POSEIDON_DEVICE(index i) {
    const index pair = i / length;
    float pull = 1;  // the derivative of half the pair's loss by its distance, over the distance
    if (!is_similar(similar[pair]) && p.legacy) {
      pull = p.margin - squared[pair] > 0 ? -1.0f : 0.0f;
    } else if (!is_similar(similar[pair])) {
      const float distance = std::sqrt(squared[pair]), gap = p.margin - distance;
      constexpr float keeps_finite = 1e-4f;  // two equal vectors have no direction to go to
      pull = gap > 0 ? -gap / (distance + keeps_finite) : 0.0f;
    }
    dx[i] = factor * *dloss * pull * difference[i];
  });
}

}  // namespace poseidon::gpu
