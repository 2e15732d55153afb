#include "tests/cpu/hand_net.hpp"

#include <cmath>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// Sum of -log softmax over the labels that are not ignored, logits [3, 4, 2], labels [3, 2].
double summed_loss(const std::vector<float>& x, const std::vector<float>& labels, int ignored) {
  double loss = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t i = 0; i < 2; ++i) {
      const int label = static_cast<int>(labels[n * 2 + i]);
      if (label == ignored) continue;
      double sum = 0;
      for (std::size_t k = 0; k < 4; ++k) sum += std::exp(double{x[(n * 4 + k) * 2 + i]});
      loss += std::log(sum) - double{x[(n * 4 + static_cast<std::size_t>(label)) * 2 + i]};
    }
  }
  return loss;
}

}  // namespace

TEST_CASE("softmax loss: each normalization divides by what Caffe divides by") {
  const auto x = noise(24, 3);
  const std::vector<float> labels = {0, 1, 2, 3, 2, 1};
  struct expectation {
    std::string parameters;
    int ignored;
    double divisor;
  };
  for (const expectation& e : {
           expectation{"", -1, 6},
           {"loss_param { ignore_label: 2 }", 2, 4},
           {"loss_param { normalization: FULL ignore_label: 2 }", 2, 6},
           {"loss_param { normalization: BATCH_SIZE }", -1, 3},
           {"loss_param { normalization: NONE }", -1, 1},
           {"loss_param { normalize: false }", -1, 3},
           {"loss_param { normalize: true ignore_label: 1 }", 1, 4},
           {"loss_param { normalize: false normalization: FULL }", -1, 6},
       }) {
    CAPTURE(e.parameters);
    hand_net h;
    h.input("x", {3, 4, 2});
    h.input("label", {3, 2});
    h.layer(
        "name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'l' " + e.parameters,
        {{}});
    running_net r(h.n);
    r.set("x", x);
    r.set("label", labels);
    r.forward();
    CHECK(r.data("l")[0] ==
          doctest::Approx(summed_loss(x, labels, e.ignored) / e.divisor).epsilon(1e-5));
  }
}

TEST_CASE("softmax loss: with every label ignored the loss and the diff are zero, not NaN") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2, 3});
  h.input("label", {2});
  h.layer(
      "name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'l' loss_param { "
      "ignore_label: 1 }",
      {{}});
  running_net r(h.n, {1, true});
  r.set("x", noise(6, 1));
  r.set("label", {1, 1});
  r.forward();
  r.backward();
  CHECK(r.data("l")[0] == 0);
  CHECK(r.diff("x") == std::vector<float>(6, 0.0f));
}

TEST_CASE("softmax loss: huge logits overflow nothing") {
  hand_net h;
  h.input("x", {1, 2});
  h.input("label", {1});
  h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'l'", {{}});
  running_net r(h.n);
  r.set("x", {1e4f, 0});
  r.set("label", {0});
  r.forward();
  CHECK(r.data("l")[0] == 0);
  r.set("label", {1});
  r.forward();
  CHECK(r.data("l")[0] == doctest::Approx(-std::log(1.17549435e-38)));  // Caffe's floor: FLT_MIN
}
