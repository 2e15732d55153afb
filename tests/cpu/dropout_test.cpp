#include "models/random.hpp"
#include "tests/cpu/hand_net.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

hand_net dropout_net(const shape& s, ::caffe::Phase phase = ::caffe::TRAIN) {
  hand_net h(phase);
  h.all_diffs = true;
  h.input("x", s);
  h.layer("name: 'drop' type: 'Dropout' bottom: 'x' top: 'y' dropout_param { dropout_ratio: 0.3 }",
          {s});
  return h;
}

}  // namespace

TEST_CASE("dropout: every factor is the scalar Philox word's, forward and backward") {
  for (const shape& s : {shape{1, 1}, shape{3, 7}, shape{2, 5, 3, 3}, shape{2, 100}}) {
    const hand_net h = dropout_net(s);
    running_net r(h.n, {1, true});
    r.now = {9, (std::uint64_t{1} << 33) + 5, 0xABCDEF0123456789u};
    r.set("x", std::vector<float>(r.size(0), 1.0f));
    r.forward();
    r.set_diff("y", std::vector<float>(r.size(0), 2.0f));
    r.backward();
    const auto y = r.data("y"), dx = r.diff("x");
    const std::size_t per_sample = y.size() / static_cast<std::size_t>(s[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto words =
          random_words(r.now.seed, random_use::dropout, 1, r.now.first_sample + i / per_sample,
                       static_cast<std::uint32_t>(i % per_sample / 4));
      const bool kept = unit_float(words[i % per_sample % 4]) >= 0.3f;
      CHECK(y[i] == (kept ? 1.0f / (1.0f - 0.3f) : 0.0f));
      CHECK(dx[i] == 2 * y[i]);
    }
  }
}

TEST_CASE("dropout: a sample's mask is the same whichever batch it is in") {
  const hand_net whole = dropout_net({4, 50}), half = dropout_net({2, 50});
  running_net a(whole.n), b(half.n);
  a.set("x", std::vector<float>(200, 1.0f));
  b.set("x", std::vector<float>(100, 1.0f));
  a.now.first_sample = 100;
  b.now.first_sample = 102;
  a.forward();
  b.forward();
  const auto all = a.data("y");
  CHECK(std::vector<float>(all.begin() + 100, all.end()) == b.data("y"));
}

TEST_CASE(
    "dropout: a ratio of 1 drops all in training, which has no factor, and is the identity in "
    "TEST") {
  for (const auto phase : {::caffe::TRAIN, ::caffe::TEST}) {
    hand_net all = dropout_net({2, 35}, phase);
    all.n.layers[1].spec.mutable_dropout_param()->set_dropout_ratio(1);
    running_net r(all.n, {1, true});
    const auto x = noise(70, 1);
    const std::vector<float> none(70, 0.0f);
    r.set("x", x);
    r.forward();
    CHECK(r.data("y") == (phase == ::caffe::TRAIN ? none : x));
    r.set_diff("y", x);
    r.backward();
    CHECK(r.diff("x") == (phase == ::caffe::TRAIN ? none : x));
  }
}

TEST_CASE("dropout: TEST is the identity, and a ratio above 1 is refused") {
  const hand_net h = dropout_net({2, 3}, ::caffe::TEST);
  running_net r(h.n);
  r.set("x", noise(6, 1));
  r.forward();
  CHECK(r.data("y") == noise(6, 1));
  hand_net wrong = dropout_net({2, 3});
  wrong.n.layers[1].spec.mutable_dropout_param()->set_dropout_ratio(1.5f);
  CHECK_THROWS_WITH(running_net(wrong.n), doctest::Contains("[0, 1]"));
}
