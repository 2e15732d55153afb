#include "tests/cpu/hand_net.hpp"

#include <cmath>
#include <limits>
#include <thread>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// A small net with everything that the backend rearranges: pooled and ReLU convolutions, a fused
/// ReLU, dropout.
hand_net small_net(int batch, ::caffe::Phase phase = ::caffe::TRAIN) {
  hand_net h(phase);
  h.input("data", {batch, 3, 16, 16});
  h.input("label", {batch});
  h.layer(
      "name: 'conv1' type: 'Convolution' bottom: 'data' top: 'c1' convolution_param { num_output: "
      "20 "
      "kernel_size: 5 }",
      {{batch, 20, 12, 12}}, {{20, 3, 5, 5}, {20}});
  h.layer(
      "name: 'pool1' type: 'Pooling' bottom: 'c1' top: 'p1' pooling_param { pool: MAX kernel_size: "
      "2 stride: 2 }",
      {{batch, 20, 6, 6}});
  h.layer(
      "name: 'conv2' type: 'Convolution' bottom: 'p1' top: 'c2' convolution_param { num_output: 16 "
      "kernel_size: 3 pad: 1 }",
      {{batch, 16, 6, 6}}, {{16, 20, 3, 3}, {16}});
  h.layer("name: 'relu2' type: 'ReLU' bottom: 'c2' top: 'c2'", {});
  h.layer(
      "name: 'pool2' type: 'Pooling' bottom: 'c2' top: 'p2' pooling_param { pool: AVE kernel_size: "
      "3 stride: 2 }",
      {{batch, 16, 3, 3}});
  h.layer(
      "name: 'ip1' type: 'InnerProduct' bottom: 'p2' top: 'i1' inner_product_param { num_output: "
      "30 }",
      {{batch, 30}}, {{30, 144}, {30}});
  h.layer("name: 'relu3' type: 'ReLU' bottom: 'i1' top: 'i1'", {});
  h.layer("name: 'drop' type: 'Dropout' bottom: 'i1' top: 'i1'", {});
  h.layer(
      "name: 'ip2' type: 'InnerProduct' bottom: 'i1' top: 'i2' inner_product_param { num_output: "
      "10 }",
      {{batch, 10}}, {{10, 30}, {10}});
  h.layer("name: 'i2_split' type: 'Split' bottom: 'i2' top: 's0' top: 's1'",
          {{batch, 10}, {batch, 10}});
  h.layer("name: 'acc' type: 'Accuracy' bottom: 's0' bottom: 'label' top: 'acc'", {{}});
  h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 's1' bottom: 'label' top: 'loss'", {{}});
  return h;
}

void give_input(running_net& r, int batch) {
  r.set("data", noise(static_cast<std::size_t>(batch) * 768, 5));
  std::vector<float> labels;
  for (int i = 0; i < batch; ++i) labels.push_back(static_cast<float>(i * 7 % 10));
  r.set("label", labels);
}

std::vector<std::vector<float>> gradients(running_net& r) {
  std::vector<std::vector<float>> g;
  for (std::size_t p = 0; p < r.n.parameters.size(); ++p) g.push_back(r.gradient(p));
  return g;
}

}  // namespace

TEST_CASE(
    "replica: the same inputs give the same bits again, in another replica and on another thread") {
  const hand_net h = small_net(4);
  running_net a(h.n), b(h.n);
  give_input(a, 4);
  give_input(b, 4);
  a.forward(), a.backward();
  const auto first = gradients(a);
  const auto loss = a.data("loss");
  a.forward(), a.backward();
  CHECK(gradients(a) == first);
  std::thread([&] {
    b.dev->arithmetic()->enter_thread(1);
    b.forward(), b.backward();
  }).join();
  CHECK(gradients(b) == first);
  CHECK(b.data("loss") == loss);
}

TEST_CASE("replica: gradients are the derivative of the loss along themselves") {
  const hand_net h = small_net(4);
  running_net r(h.n);
  give_input(r, 4);
  r.forward(), r.backward();
  const auto g = gradients(r);
  double square = 0;
  for (const auto& v : g)
    for (const float x : v) square += double{x} * double{x};
  const auto loss_at = [&](double along) {
    for (std::size_t p = 0; p < g.size(); ++p)
      for (std::size_t i = 0; i < g[p].size(); ++i)
        r.parameters[p][i] += static_cast<float>(along * g[p][i]);
    r.touch();
    r.forward();
    return double{r.data("loss")[0]};
  };
  const double h1 = 1e-3 / std::sqrt(square);
  const double up = loss_at(h1), down = loss_at(-2 * h1);
  CHECK((up - down) / (2 * h1) / square == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("replica: keeping every diff changes no result beyond rounding") {
  const hand_net h = small_net(4);
  running_net fused(h.n), kept(h.n, {1, true});
  give_input(fused, 4), give_input(kept, 4);
  fused.forward(), fused.backward();
  kept.forward(), kept.backward();
  CHECK(fused.data("loss") == kept.data("loss"));
  for (std::size_t p = 0; p < h.n.parameters.size(); ++p) {
    CHECK(deviation(fused.gradient(p), kept.gradient(p)) < 1e-5);
  }
}

TEST_CASE(
    "replica: what is copied between memory layouts is counted, and is the same in every pass") {
  const hand_net h = small_net(4);
  running_net a(h.n);
  give_input(a, 4);
  const auto none = a.r->reorders();
  CHECK(none.copies == 0);
  a.forward();
  const auto one = a.r->reorders();
  // At least ip1's input: pool2 leaves it in the layout of convolutions.
  CHECK(one.copies >= 1);
  CHECK(one.bytes >= 4 * 144 * sizeof(float));
  a.forward();  // with the same weights, which are packed already
  CHECK(a.r->reorders().copies - one.copies <= one.copies);

  hand_net plain;
  plain.input("x", {2, 3});
  plain.layer("name: 'r' type: 'ReLU' bottom: 'x' top: 'y'", {{2, 3}});
  running_net b(plain.n);
  b.forward();
  CHECK(b.r->reorders().copies == 0);
}

TEST_CASE("replica: a batch is fed without copying, and one of the wrong size is refused") {
  const hand_net h = small_net(2);
  running_net r(h.n);
  batch b;
  const auto values = noise(2 * 768, 5);
  b.tops.emplace_back(values.begin(), values.end());
  give_input(r, 2);
  r.r->at(0).feed(b);
  r.forward();
  CHECK(r.data("data") == values);
  b.tops[0].pop_back();
  CHECK_THROWS_WITH(r.r->at(0).feed(b), doctest::Contains("1535 values, the net needs 1536"));
  CHECK_THROWS_AS(r.r->at(2).feed(b), std::logic_error);
}

TEST_CASE("replica: Split hands on values without copying and sums its tops' diffs in order") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2, 3});
  h.layer("name: 's' type: 'Split' bottom: 'x' top: 'a' top: 'b' top: 'c'",
          {{2, 3}, {2, 3}, {2, 3}});
  h.layer("name: 'r' type: 'ReLU' bottom: 'b' top: 'b'", {});
  running_net r(h.n, {1, true});
  r.set("x", {-1, 2, -3, 4, -5, 6});
  r.forward();
  CHECK(r.data("a") == std::vector<float>{-1, 2, -3, 4, -5, 6});  // not what the ReLU made of b
  CHECK(r.data("b") == std::vector<float>{0, 2, 0, 4, 0, 6});
  r.set_diff("a", {1e8f, 1, 1, 1, 1, 1});
  r.set_diff("b", {-1e8f, 2, 2, 2, 2, 2});
  r.set_diff("c", {3, 3, 3, 3, 3, 3});
  r.r->at(1).backward(r.now);
  CHECK(r.diff("x") == std::vector<float>{3, 6, 6, 6, 6, 6});  // (1e8 - 1e8) + 3
}

TEST_CASE("replica: a parameter that two layers share gets the sum of their gradients") {
  hand_net h;
  h.input("x", {2, 4});
  h.layer(
      "name: 'a' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 4 "
      "bias_term: false }",
      {{2, 4}}, {{4, 4}});
  h.layer(
      "name: 'b' type: 'InnerProduct' bottom: 'y' top: 'z' inner_product_param { num_output: 4 "
      "bias_term: false }",
      {{2, 4}}, {{4, 4}});
  hand_net shared = h;
  shared.n.layers[2].parameters = {0};
  shared.n.parameters.pop_back();
  running_net apart(h.n), together(shared.n);
  apart.parameters[1] = apart.parameters[0];
  apart.holders[1]->values = apart.parameters[1].data();
  apart.touch();
  for (running_net* r : {&apart, &together}) {
    r->set("x", noise(8, 1));
    for (int i = 0; i < 2; ++i) {  // twice: the second pass must not add to the first
      r->forward();
      r->set_diff("z", noise(8, 2));
      r->backward();
    }
  }
  auto sum = apart.gradient(1);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += apart.gradient(0)[i];
  CHECK(together.gradient(0) == sum);
}

TEST_CASE("replica: the sum over layers that share is the same in whatever order they ran") {
  // ((-1e8 + 1e8) + 3) is 3 in float32, ((3 + 1e8) - 1e8) is 0: the order shows.
  hand_net h;
  h.input("x", {1, 1});
  for (const std::string name : {"a", "b", "c"}) {
    h.layer("name: '" + name + "' type: 'InnerProduct' bottom: 'x' top: '" + name +
                "' inner_product_param { num_output: 1 bias_term: false }",
            {{1, 1}}, {{1, 1}});
    h.n.layers.back().parameters = {0};
  }
  h.n.parameters.resize(1);
  running_net r(h.n);
  r.set("x", {1});
  for (const auto& order : {std::vector{3, 2, 1}, {1, 2, 3}, {2, 3, 1}}) {
    r.forward();
    r.set_diff("a", {3});
    r.set_diff("b", {1e8f});
    r.set_diff("c", {-1e8f});
    for (const auto l : order) r.r->at(static_cast<std::size_t>(l)).backward(r.now);
    CHECK(r.gradient(0) == std::vector<float>{3});
  }
}

TEST_CASE("replica: the first layer with a NaN or an infinity is named") {
  const hand_net h = small_net(2);
  running_net r(h.n);
  give_input(r, 2);
  r.forward();
  CHECK_FALSE(r.r->first_nonfinite().has_value());
  r.parameters[2][7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(r.r->first_nonfinite() == "conv2");
  auto data = r.data("data");
  data[3] = std::numeric_limits<float>::infinity();
  r.set("data", data);
  CHECK(r.r->first_nonfinite() == "data");
}

TEST_CASE("replica: an unknown type is refused with its name and the types there are") {
  hand_net h;
  h.input("x", {1, 1});
  h.layer("name: 'odd' type: 'Quantum' bottom: 'x' top: 'y'", {{1, 1}});
  CHECK_THROWS_WITH_AS(running_net(h.n),
                       doctest::Contains("layer \"odd\" (Quantum): the CPU has no kernel"),
                       spec_error);
  CHECK_THROWS_WITH(running_net(h.n), doctest::Contains("Convolution"));
  CHECK_FALSE(make_cpu_device()->supports("Quantum"));
  CHECK(make_cpu_device()->supports("LRN"));
}

TEST_CASE("replica: a label outside the classes is refused with both values") {
  const hand_net h = small_net(2);
  running_net r(h.n);
  give_input(r, 2);
  r.set("label", {3, 11});
  CHECK_THROWS_WITH(r.forward(), doctest::Contains("11"));
  r.set("label", {3, -1});
  CHECK_THROWS_WITH(r.forward(), doctest::Contains("10 classes"));
}

TEST_CASE(
    "accuracy: counts ties as misses, ignores what it is told to, and knows top_k and classes") {
  hand_net h(::caffe::TEST);
  h.input("x", {4, 3});
  h.input("label", {4});
  h.layer(
      "name: 'a' type: 'Accuracy' bottom: 'x' bottom: 'label' top: 'a' top: 'per' accuracy_param { "
      "ignore_label: 2 }",
      {{}, {3}});
  h.layer(
      "name: 'b' type: 'Accuracy' bottom: 'x' bottom: 'label' top: 'b' accuracy_param { top_k: 2 }",
      {{}});
  running_net r(h.n);
  r.set("x", {5, 1, 0, /**/ 2, 2, 0, /**/ 0, 1, 5, /**/ 1, 3, 2});
  r.set("label", {0, 1, 2, 1});
  r.forward();
  CHECK(r.data("a")[0] == doctest::Approx(2.0 / 3));  // hit, tie, ignored, hit
  CHECK(r.data("per") == std::vector<float>{1, 0.5f, 0});
  CHECK(r.data("b")[0] == 1);
}
