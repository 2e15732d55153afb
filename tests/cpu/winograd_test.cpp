// Winograd's way of 3x3 and 5x5 windows: the passes on vectors of eight and of sixteen channels, and as the layers take
// them.
#include "cpu/buffer.hpp"
#include "cpu/kernels/gather.hpp"
#include "cpu/winograd/convolution.hpp"
#include "cpu/winograd/layer.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/reference/image_layers.hpp"

#include <random>

using namespace poseidon;
using namespace poseidon::test;
namespace ref = poseidon::reference;

namespace {

std::string text_of(const ref::conv& c, const std::string& more = "") {
  return "name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: " +
         std::to_string(c.oc) + " kernel_h: " + std::to_string(c.kh) +
         " kernel_w: " + std::to_string(c.kw) + " stride: " + std::to_string(c.stride) +
         " pad: " + std::to_string(c.pad) + " dilation: " + std::to_string(c.dilation) +
         " group: " + std::to_string(c.groups) + " " + more + " }";
}

hand_net winograd_net(const ref::conv& c, const std::string& more = "") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {c.n, c.ic, c.h, c.w});
  std::vector<shape> parameters{{c.oc, c.ic / c.groups, c.kh, c.kw}, {c.oc}};
  if (more.find("bias_term: false") != std::string::npos) parameters.pop_back();
  h.layer(text_of(c, more), {{c.n, c.oc, c.oh(), c.ow()}}, parameters);
  return h;
}

bool suits(const ref::conv& c, const std::string& more = "") {
  const hand_net h = winograd_net(c, more);
  return cpu::suits_winograd(h.n, h.n.layers[1], {c.n, c.ic, c.h, c.w}, {c.n, c.oc, c.oh(), c.ow()},
                             cpu_math::fp32);
}

// The transformations cost a digit, most of all where a weight's gradient has few terms.
constexpr double tolerance = 2e-5;

// CIFAR-10 quick's, then tiles cut at both edges, rows of tiles longer than what is worked at once, channels
// that do not fill their blocks, every padding, groups, and tiles of which some are worked after the others.
const std::vector<ref::conv> shapes = {
    {3, 32, 16, 16, 32, 5, 5, 1, 2}, {5, 32, 8, 8, 64, 5, 5, 1, 2},
    {4, 32, 12, 12, 48, 5, 5},       {2, 32, 15, 9, 32, 5, 5, 1, 2},
    {1, 32, 7, 131, 32, 5, 5, 1, 1}, {1, 46, 17, 18, 47, 5, 5, 1, 3},
    {2, 32, 5, 6, 32, 5, 5, 1, 4},   {2, 96, 13, 13, 64, 5, 5, 1, 2, 1, 2},
    {3, 32, 16, 16, 32, 3, 3, 1, 1}, {5, 64, 7, 7, 96, 3, 3, 1, 1},
    {4, 32, 12, 13, 48, 3, 3},       {1, 32, 9, 131, 32, 3, 3, 1, 1},
    {1, 46, 17, 18, 47, 3, 3, 1, 2}, {2, 96, 13, 13, 64, 3, 3, 1, 1, 1, 2},
    {9, 32, 13, 15, 40, 3, 3, 1, 1},
};

// So many weights that they are transformed in parts, over rows and columns that do not divide evenly, once for each
// of several groups of tiles; and a group of channels likewise.
const std::vector<ref::conv> wide_shapes = {
    {3, 176, 33, 35, 208, 3, 3, 1, 1}, {1, 192, 50, 71, 184, 3, 3, 1, 1},
    {3, 112, 26, 37, 176, 5, 5, 1, 2}, {2, 384, 13, 13, 352, 3, 3, 1, 1, 1, 2},
    {1, 330, 18, 22, 104, 3, 3, 1, 0},
};

/// A winograd_convolution with its blobs in blocks of `form`, and plain ones outside.
class blocked_convolution {
 public:
  blocked_convolution(const ref::conv& c, cpu::layout form)
      : c_(c),
        form_(form),
        convolution_(
            {size(c.n), image(in(), c.groups), image(out(), c.groups), size(c.pad), size(c.pad)},
            size(c.groups), form, size(c.kh)),
        scratch_(convolution_.scratch_floats()) {}

  std::vector<float> forward(const std::vector<float>& x, const std::vector<float>& w,
                             const std::vector<float>& b) {
    auto y = blocked(out());
    convolution_.forward(blocked(in(), x).data(), w.data(), {b.data(), 1}, y.data(),
                         scratch_.data());
    return plain(out(), y);
  }
  std::vector<float> backward_data(const std::vector<float>& dy, const std::vector<float>& w) {
    auto dx = blocked(in());
    convolution_.backward_data(blocked(out(), dy).data(), w.data(), dx.data(), scratch_.data());
    return plain(in(), dx);
  }
  void backward_weights(const std::vector<float>& x, const std::vector<float>& dy,
                        std::vector<float>& dw, std::vector<float>& db) {
    convolution_.backward_weights(blocked(in(), x).data(), blocked(out(), dy).data(), dw.data(),
                                  db.data(), scratch_.data());
  }

 private:
  static std::size_t size(auto i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] shape in() const { return {c_.n, c_.ic, c_.h, c_.w}; }
  [[nodiscard]] shape out() const { return {c_.n, c_.oc, c_.oh(), c_.ow()}; }
  [[nodiscard]] cpu::winograd_image image(const shape& s, auto groups) const {
    return {size(s[1] / groups), size(s[2]), size(s[3]), cpu::stored_size(s, form_) / size(s[0])};
  }
  [[nodiscard]] cpu::buffer blocked(const shape& s) const {
    return cpu::buffer(cpu::stored_size(s, form_));
  }
  [[nodiscard]] cpu::buffer blocked(const shape& s, const std::vector<float>& from) const {
    auto to = blocked(s);
    cpu::relayout(s, cpu::layout::plain, from.data(), form_, to.data());
    return to;
  }
  [[nodiscard]] std::vector<float> plain(const shape& s, const cpu::buffer& from) const {
    std::vector<float> to(size(count(s)));
    cpu::relayout(s, form_, from.data(), cpu::layout::plain, to.data());
    return to;
  }

  ref::conv c_;
  cpu::layout form_;
  cpu::winograd_convolution convolution_;
  cpu::buffer scratch_;
};

}  // namespace

TEST_CASE("Winograd: every pass equals the naive loops, in blocks of eight and of sixteen") {
  for (const cpu::layout form : {cpu::layout::c8, cpu::layout::c16}) {
    if (form == cpu::layout::c16 && !cpu::has_wide_vectors()) continue;
    for (const ref::conv& c : shapes) {
      CAPTURE(text_of(c));
      CAPTURE(cpu::block_of(form));
      const auto x = noise(static_cast<std::size_t>(c.n * c.ic * c.h * c.w), 1),
                 dy = noise(static_cast<std::size_t>(c.n * c.oc * c.oh() * c.ow()), 2),
                 w = noise(static_cast<std::size_t>(c.oc * c.ic / c.groups * c.kh * c.kw), 3),
                 b = noise(static_cast<std::size_t>(c.oc), 4);
      blocked_convolution under_test(c, form);
      CHECK(deviation(under_test.forward(x, w, b),
                      ref::convolve(c, ref::widen(x), ref::widen(w), ref::widen(b))) < tolerance);
      const auto g = ref::convolve_backward(c, ref::widen(x), ref::widen(w), ref::widen(dy));
      CHECK(deviation(under_test.backward_data(dy, w), g.dx) < tolerance);
      std::vector<float> dw(w.size()), db(b.size());
      under_test.backward_weights(x, dy, dw, db);
      CHECK(deviation(dw, g.dw) < tolerance);
      CHECK(deviation(db, g.db) < tolerance);
    }
  }
}

TEST_CASE("Winograd: layers' forward and backward equal the naive loops for every shape") {
  for (const ref::conv& c : shapes) {
    CAPTURE(text_of(c));
    CHECK(suits(c));
    const hand_net h = winograd_net(c);
    running_net r(h.n, {1, true});
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]), b = ref::widen(r.parameters[1]);
    CHECK(deviation(r.data("y"), ref::convolve(c, ref::widen(x), w, b)) < tolerance);
    r.set_diff("y", dy);
    r.backward();
    const auto g = ref::convolve_backward(c, ref::widen(x), w, ref::widen(dy));
    CHECK(deviation(r.diff("x"), g.dx) < tolerance);
    CHECK(deviation(r.gradient(0), g.dw) < tolerance);
    CHECK(deviation(r.gradient(1), g.db) < tolerance);
  }
}

TEST_CASE("Winograd: layers equal the direct kernels for wide shapes and along a walk of shapes") {
  std::vector<ref::conv> all = wide_shapes;
  std::mt19937 dice(40);
  const auto from_to = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(dice);
  };
  while (all.size() < wide_shapes.size() + 24) {
    const int taps = from_to(0, 1) == 0 ? 3 : 5, in = from_to(32, 130), out = from_to(32, 130);
    const ref::conv c{from_to(1, 4), in, from_to(5, 30),      from_to(5, 30), out, taps,
                      taps,          1,  from_to(0, taps - 1)};
    if (suits(c)) all.push_back(c);
  }
  for (const ref::conv& c : all) {
    CAPTURE(text_of(c));
    CHECK(suits(c));
    const hand_net h = winograd_net(c), d = winograd_net(c, "engine: CAFFE");
    running_net r(h.n, {1, true}), direct(d.n, {1, true});
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    for (running_net* n : {&r, &direct}) {
      n->set("x", x);
      n->forward();
      n->set_diff("y", dy);
      n->backward();
    }
    CHECK(deviation(r.data("y"), ref::widen(direct.data("y"))) < tolerance);
    CHECK(deviation(r.diff("x"), ref::widen(direct.diff("x"))) < tolerance);
    CHECK(deviation(r.gradient(0), ref::widen(direct.gradient(0))) < tolerance);
    CHECK(deviation(r.gradient(1), ref::widen(direct.gradient(1))) < tolerance);
  }
}

TEST_CASE("Winograd: a sample has the same bits alone and in any batch") {
  for (const ref::conv& c :
       {ref::conv{5, 40, 17, 15, 48, 3, 3, 1, 1}, ref::conv{3, 176, 33, 35, 208, 3, 3, 1, 1},
        ref::conv{3, 112, 18, 21, 176, 5, 5, 1, 2}}) {
    for (const cpu::layout form : {cpu::layout::c8, cpu::layout::c16}) {
      if (form == cpu::layout::c16 && !cpu::has_wide_vectors()) continue;
      CAPTURE(text_of(c));
      ref::conv one = c;
      one.n = 1;
      const auto size = [](const ref::conv& s, int channels, int h, int w) {
        return static_cast<std::size_t>(s.n * channels * h * w);
      };
      const auto x = noise(size(c, c.ic, c.h, c.w), 1),
                 dy = noise(size(c, c.oc, c.oh(), c.ow()), 2),
                 w = noise(static_cast<std::size_t>(c.oc * c.ic * c.kh * c.kw), 3),
                 b = noise(static_cast<std::size_t>(c.oc), 4);
      blocked_convolution together(c, form), alone(one, form);
      const auto y = together.forward(x, w, b), dx = together.backward_data(dy, w);
      const auto sample = [](const std::vector<float>& all, std::size_t each, int which) {
        const auto at = all.begin() + static_cast<std::ptrdiff_t>(each) * which;
        return std::vector<float>(at, at + static_cast<std::ptrdiff_t>(each));
      };
      const std::size_t in = x.size() / static_cast<std::size_t>(c.n),
                        out = dy.size() / static_cast<std::size_t>(c.n);
      for (int i = 0; i < c.n; ++i) {
        CHECK(alone.forward(sample(x, in, i), w, b) == sample(y, out, i));
        CHECK(alone.backward_data(sample(dy, out, i), w) == sample(dx, in, i));
      }
    }
  }
}

TEST_CASE("Winograd: a ReLU behind it, no bias, and weights that stay as they are") {
  const ref::conv c{3, 32, 9, 16, 32, 5, 5, 1, 2};
  const ref::values zero(32);
  for (const bool learns : {true, false}) {
    hand_net h = winograd_net(c, "bias_term: false");
    h.layer("name: 'relu' type: 'ReLU' bottom: 'y' top: 'y' relu_param { negative_slope: 0.25 }",
            {});
    h.n.layers[1].learn[0] = learns;
    running_net r(h.n);
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]);
    const auto y = ref::relu(ref::convolve(c, ref::widen(x), w, zero), 0.25);
    CHECK(deviation(r.data("y"), y) < tolerance);
    r.set_diff("y", dy);
    r.backward();
    const auto g =
        ref::convolve_backward(c, ref::widen(x), w, ref::relu_backward(y, ref::widen(dy), 0.25));
    CHECK(deviation(r.diff("x"), g.dx) < tolerance);
    if (learns) CHECK(deviation(r.gradient(0), g.dw) < tolerance);
  }
}

TEST_CASE("Winograd: what a pass left in the scratch memory changes no bit of the next") {
  std::vector<ref::conv> all = shapes;
  all.insert(all.end(), wide_shapes.begin(), wide_shapes.end());
  for (const ref::conv& c : all) {
    CAPTURE(text_of(c));
    const hand_net h = winograd_net(c);
    running_net r(h.n);
    r.set("x", noise(r.size(0), 1));
    r.set_diff("y", noise(r.size(1), 2));
    std::vector<std::vector<float>> first, second;
    for (auto* seen : {&first, &second}) {
      r.forward();
      r.backward();
      *seen = {r.data("y"), r.diff("x"), r.gradient(0), r.gradient(1)};
    }
    CHECK(first == second);
  }
}

TEST_CASE("Winograd: taken where it pays, and not for engine: CAFFE") {
  CHECK(suits({2, 32, 16, 16, 32, 5, 5, 1, 2}));
  CHECK(suits({2, 32, 16, 16, 32, 3, 3, 1, 1}));
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 2}, "engine: CAFFE"));
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 1, 1}));              // another window
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 3, 5, 1, 1}));        // not a square
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 2, 2}));        // a stride
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 4, 2}));     // dilation
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 2, 1, 2}));  // too few for two groups
  CHECK_FALSE(suits({2, 84, 16, 16, 84, 5, 5, 1, 2, 1, 2}));  // groups that share a block
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 5}));        // more padding than a window reaches
  CHECK_FALSE(suits({2, 3, 16, 16, 32, 5, 5, 1, 2}));         // a first layer
  CHECK_FALSE(suits({2, 16, 16, 16, 32, 5, 5, 1, 2}));        // a small net
  CHECK(suits({2, 40, 16, 16, 40, 5, 5, 1, 2}));              // channels that blocks of 8 hold
  CHECK(suits({1, 512, 14, 14, 512, 3, 3, 1, 1}));            // weights beyond the caches
  CHECK_FALSE(suits({64, 32, 5, 5, 32, 5, 5}));               // a tile of which a sixteenth is used
  CHECK_FALSE(suits({1, 32, 8, 8, 32, 5, 5, 1, 2}));          // few tiles
}
