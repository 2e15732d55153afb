// LRN across channels alone: every layout, planes that are no whole vectors, rows of any length.
#include "cpu/kernels/lrn_across.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/reference/image_layers.hpp"

#include <cmath>
#include <vector>

using namespace poseidon;
using namespace poseidon::cpu;
using namespace poseidon::test;

namespace {

/// dx = dy s^-beta - 2 alpha beta / n x sum(dy y / s), in double.
std::vector<double> gradient(const shape& e, const lrn_across::numbers& n,
                             const std::vector<float>& x, const std::vector<float>& dy) {
  const std::int64_t channels = e[1], plane = e[2] * e[3];
  const auto reach = static_cast<std::int64_t>(n.size / 2);
  const auto around = [&](std::int64_t c, auto f) {
    double sum = 0;
    for (std::int64_t o = std::max<std::int64_t>(0, c - reach);
         o <= std::min(channels - 1, c + reach); ++o)
      sum += f(o);
    return sum;
  };
  std::vector<double> dx(x.size());
  for (std::int64_t s = 0; s < e[0]; ++s)
    for (std::int64_t i = 0; i < plane; ++i) {
      const auto at = [&](std::int64_t c) {
        return static_cast<std::size_t>((s * channels + c) * plane + i);
      };
      const auto divisor = [&](std::int64_t c) {
        return n.k + n.alpha / static_cast<double>(n.size) *
                         around(c, [&](std::int64_t o) { return double{x[at(o)]} * x[at(o)]; });
      };
      for (std::int64_t c = 0; c < channels; ++c)
        dx[at(c)] = dy[at(c)] * std::pow(divisor(c), -n.beta) -
                    2 * n.alpha * n.beta / static_cast<double>(n.size) * x[at(c)] *
                        around(c, [&](std::int64_t o) {
                          return dy[at(o)] * x[at(o)] * std::pow(divisor(o), -n.beta - 1);
                        });
    }
  return dx;
}

struct results {
  std::vector<float> y, dx;
};

results run(layout form, const shape& e, const lrn_across::numbers& n, const std::vector<float>& x,
            const std::vector<float>& dy) {
  const std::size_t stored = stored_size(e, form);
  buffer in(stored), out(stored), top(stored), bottom(stored);
  relayout(e, layout::plain, x.data(), form, in.data());
  relayout(e, layout::plain, dy.data(), form, top.data());
  lrn_across lrn(form, image_of(e), n);
  lrn.forward(in.data(), out.data());
  lrn.backward(in.data(), top.data(), bottom.data());
  results r{std::vector<float>(x.size()), std::vector<float>(x.size())};
  relayout(e, form, out.data(), layout::plain, r.y.data());
  relayout(e, form, bottom.data(), layout::plain, r.dx.data());
  double padding = 0;  // of which nothing may become of
  for (const buffer* b : {&out, &bottom})
    for (std::size_t i = 0; i < stored; ++i) padding += std::abs(double{b->data()[i]});
  for (const auto* v : {&r.y, &r.dx})
    for (const float f : *v) padding -= std::abs(double{f});
  CHECK(std::abs(padding) < 1e-6 * static_cast<double>(stored));
  return r;
}

}  // namespace

TEST_CASE("LRN: across channels equals the naive loops, with the same bits in every layout") {
  for (const std::int64_t channels : {1, 5, 16, 70, 300})
    for (const shape& plane : {shape{1, 1}, shape{1, 7}, shape{2, 4}, shape{5, 9}})
      for (const lrn_across::numbers& n :
           {lrn_across::numbers{5, 1e-4f, 0.75f, 1}, lrn_across::numbers{3, 2, 0.75f, 2},
            lrn_across::numbers{9, 1, 0.5f, 1}, lrn_across::numbers{1, 3, 1.3f, 0.5f},
            lrn_across::numbers{19, 1, 0.75f, 1}}) {
        const shape e{2, channels, plane[0], plane[1]};
        CAPTURE(to_string(e));
        CAPTURE(n.size);
        const auto values = static_cast<std::size_t>(count(e));
        auto x = noise(values, 1);
        const auto dy = noise(values, 2);
        for (float& v : x) v *= 3;
        const results plain = run(layout::plain, e, n, x, dy);
        CHECK(deviation(plain.y, reference::lrn_across(2, static_cast<int>(channels),
                                                       static_cast<int>(plane[0] * plane[1]),
                                                       static_cast<int>(n.size), n.alpha, n.beta,
                                                       n.k, reference::widen(x))) < 1e-6);
        CHECK(deviation(plain.dx, gradient(e, n, x, dy)) < 1e-6);
        for (const layout form : {layout::c8, layout::c16}) {
          const results blocked = run(form, e, n, x, dy);
          CHECK(blocked.y == plain.y);
          CHECK(blocked.dx == plain.dx);
        }
      }
}
