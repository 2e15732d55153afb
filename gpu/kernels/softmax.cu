#include "gpu/kernels/softmax.hpp"
#include "gpu/runtime/launch.hpp"

#include <cfloat>
#include <cmath>

namespace poseidon::gpu {
namespace {

/// Where values and labels lie.
struct class_places {
  index classes, inner;

  /// Value of class k at a place.
  POSEIDON_HOST_DEVICE index at(index place, index k) const {
    return (place / inner * classes + k) * inner + place % inner;
  }
  /// The place of a value, and its class.
  POSEIDON_HOST_DEVICE index place_of(index i) const {
    return i / (classes * inner) * inner + i % inner;
  }
  POSEIDON_HOST_DEVICE index class_of(index i) const { return i / inner % classes; }
};

class_places places_of(const class_shape& c) {
  return {to_index(c.classes), to_index(c.inner)};
}

struct larger_of {
  POSEIDON_HOST_DEVICE float operator()(float a, float b) const { return a < b ? b : a; }
};
struct sum_of {
  POSEIDON_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};

/// One place's contribution to an accuracy, and whether it counts.
struct tally {
  double right, seen;
};

}  // namespace

void softmax(stream& s, const class_shape& c, const float* x, float* largest_and_sum, float* y) {
  const class_places p = places_of(c);
  float *largest = largest_and_sum, *sum = largest_and_sum + c.places();
  reduce_rows<float>(
      s, c.places(), c.classes, -FLT_MAX,
      [=] POSEIDON_DEVICE(index place, index k) { return x[p.at(place, k)]; }, larger_of{},
      [=] POSEIDON_DEVICE(index place, float most) { largest[place] = most; });
  reduce_rows<float>(
      s, c.places(), c.classes, 0.0f,
      [=] POSEIDON_DEVICE(index place, index k) {
        const index at = p.at(place, k);
        return y[at] = std::exp(x[at] - largest[place]);
      },
      sum_of{}, [=] POSEIDON_DEVICE(index place, float all) { sum[place] = all; });
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) { y[i] /= sum[p.place_of(i)]; });
}

void softmax_backward(stream& s, const class_shape& c, const float* y, const float* dy, float* dots,
                      float* dx) {
  const class_places p = places_of(c);
  reduce_rows<float>(
      s, c.places(), c.classes, 0.0f,
      [=] POSEIDON_DEVICE(index place, index k) {
        const index at = p.at(place, k);
        return dy[at] * y[at];
      },
      sum_of{}, [=] POSEIDON_DEVICE(index place, float dot) { dots[place] = dot; });
  for_each(s, c.values(),
           [=] POSEIDON_DEVICE(index i) { dx[i] = (dy[i] - dots[p.place_of(i)]) * y[i]; });
}

void softmax_loss(stream& s, const class_shape& c, const label_rules& rules,
                  const float* probability, const float* label, float* loss, float* normalizer,
                  label_fault* fault) {
  const class_places p = places_of(c);
  const label_rules r = rules;
  const auto places = static_cast<double>(c.places()), samples = static_cast<double>(c.outer);
  reduce_rows<counted_sum>(
      s, 1, c.places(), counted_sum{0, 0},
      [=] POSEIDON_DEVICE(index, index place) {
        if (r.is_ignored(label[place])) return counted_sum{0, 0};
        if (!r.is_class(label[place])) {
          fault->raise(label[place]);
          return counted_sum{0, 0};
        }
        const float q = probability[p.at(place, static_cast<index>(label[place]))];
        return counted_sum{-static_cast<double>(std::log(q > FLT_MIN ? q : FLT_MIN)), 1};
      },
      add_counted{},
      [=] POSEIDON_DEVICE(index, counted_sum all) {
        *normalizer = r.normalizer(places, samples, all.count);
        *loss = static_cast<float>(all.sum) / *normalizer;
      });
}

void softmax_loss_backward(stream& s, const class_shape& c, const label_rules& rules,
                           const float* probability, const float* label, const float* dloss,
                           const float* normalizer, float* dx) {
  const class_places p = places_of(c);
  const label_rules r = rules;
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const float of = label[p.place_of(i)];
    const float scale = *dloss / *normalizer;
    if (r.is_ignored(of) || !r.is_class(of)) {
      dx[i] = 0;
    } else {
      dx[i] =
          (p.class_of(i) == static_cast<index>(of) ? probability[i] - 1 : probability[i]) * scale;
    }
  });
}

void infogain_loss(stream& s, const class_shape& c, const label_rules& rules,
                   const float* probability, const float* gain, const float* label, float* loss,
                   float* normalizer, label_fault* fault) {
  const class_places p = places_of(c);
  const label_rules r = rules;
  const auto places = static_cast<double>(c.places()), samples = static_cast<double>(c.outer);
  reduce_rows<counted_sum>(
      s, 1, c.values(), counted_sum{0, 0},
      [=] POSEIDON_DEVICE(index, index i) {
        const float of = label[p.place_of(i)];
        if (r.is_ignored(of)) return counted_sum{0, 0};
        if (!r.is_class(of)) {
          fault->raise(of);
          return counted_sum{0, 0};
        }
        constexpr float least = 1e-20f;
        const float q = probability[i] > least ? probability[i] : least;
        const index k = p.class_of(i);
        return counted_sum{-static_cast<double>(gain[static_cast<index>(of) * p.classes + k]) *
                               static_cast<double>(std::log(q)),
                           k == 0 ? 1.0 : 0.0};
      },
      add_counted{},
      [=] POSEIDON_DEVICE(index, counted_sum all) {
        *normalizer = r.normalizer(places, samples, all.count);
        *loss = static_cast<float>(all.sum / static_cast<double>(*normalizer));
      });
}

void infogain_loss_backward(stream& s, const class_shape& c, const label_rules& rules,
                            const float* probability, const float* gain, const float* gain_sums,
                            const float* label, const float* dloss, const float* normalizer,
                            float* dx) {
  const class_places p = places_of(c);
  const label_rules r = rules;
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const float of = label[p.place_of(i)];
    if (r.is_ignored(of) || !r.is_class(of)) {
      dx[i] = 0;
      return;
    }
    const auto right = static_cast<index>(of);
    dx[i] = *dloss / *normalizer *
            (probability[i] * gain_sums[right] - gain[right * p.classes + p.class_of(i)]);
  });
}

void accuracy(stream& s, const class_shape& c, std::size_t top_k, const label_rules& rules,
              const float* score, const float* label, float* hits, float* accuracy,
              float* per_class, label_fault* fault) {
  const class_places p = places_of(c);
  const label_rules r = rules;
  const auto most = static_cast<float>(top_k);
  // How many classes score at least as well as the label's own, which counts itself.
  reduce_rows<float>(
      s, c.places(), c.classes, 0.0f,
      [=] POSEIDON_DEVICE(index place, index k) {
        if (!r.is_class(label[place])) return 0.0f;
        const float own = score[p.at(place, static_cast<index>(label[place]))];
        return score[p.at(place, k)] >= own ? 1.0f : 0.0f;
      },
      sum_of{},
      [=] POSEIDON_DEVICE(index place, float better) {
        hits[place] = better <= most ? 1.0f : 0.0f;
      });
  const auto add = [] POSEIDON_DEVICE(tally a, tally b) {
    return tally{a.right + b.right, a.seen + b.seen};
  };
  // Without a single label Caffe divides by zero; none of none is right here.
  reduce_rows<tally>(
      s, 1, c.places(), tally{0, 0},
      [=] POSEIDON_DEVICE(index, index place) {
        if (r.is_ignored(label[place])) return tally{0, 0};
        if (!r.is_class(label[place])) {
          fault->raise(label[place]);
          return tally{0, 0};
        }
        return tally{static_cast<double>(hits[place]), 1};
      },
      add,
      [=] POSEIDON_DEVICE(index, tally all) {
        *accuracy =
            all.seen == 0 ? 0 : static_cast<float>(all.right) / static_cast<float>(all.seen);
      });
  if (per_class == nullptr) return;
  reduce_rows<tally>(
      s, c.classes, c.places(), tally{0, 0},
      [=] POSEIDON_DEVICE(index k, index place) {
        const bool own = !r.is_ignored(label[place]) && r.is_class(label[place]) &&
                         static_cast<index>(label[place]) == k;
        return own ? tally{static_cast<double>(hits[place]), 1} : tally{0, 0};
      },
      add,
      [=] POSEIDON_DEVICE(index k, tally all) {
        per_class[k] =
            all.seen == 0 ? 0 : static_cast<float>(all.right) / static_cast<float>(all.seen);
      });
}

}  // namespace poseidon::gpu
