#include "tests/cpu/hand_net.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// Inner product, softmax and loss of some samples: `filtered` through a Filter, else of exactly
/// `samples`.
hand_net classifier(int samples, bool filtered) {
  hand_net h;
  const std::string x = filtered ? "fx" : "x", label = filtered ? "flabel" : "label";
  h.input("x", {samples, 6});
  h.input("label", {samples});
  if (filtered) {
    h.input("chosen", {samples});
    h.layer(
        "name: 'f' type: 'Filter' bottom: 'x' bottom: 'label' bottom: 'chosen' top: 'fx' top: "
        "'flabel'",
        {{samples, 6}, {samples}});
  }
  h.layer("name: 'ip1' type: 'InnerProduct' bottom: '" + x +
              "' top: 'h' inner_product_param { num_output: 5 }",
          {{samples, 5}}, {{5, 6}, {5}});
  h.layer("name: 'relu' type: 'ReLU' bottom: 'h' top: 'h'", {});
  h.layer(
      "name: 'ip2' type: 'InnerProduct' bottom: 'h' top: 'y' inner_product_param { num_output: 3 }",
      {{samples, 3}}, {{3, 5}, {3}});
  h.layer("name: 'split' type: 'Split' bottom: 'y' top: 'y1' top: 'y2'",
          {{samples, 3}, {samples, 3}});
  h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'y1' bottom: '" + label + "' top: 'l'",
          {{}});
  h.layer("name: 'silence' type: 'Silence' bottom: 'y2'", {});
  auto& loss = h.n.layers[h.n.layers.size() - 2];
  loss.propagate_down = {true, false};
  return h;
}

const std::vector<float> labels{2, 0, 1, 1, 2};

}  // namespace

TEST_CASE("Filter: what lies behind it sees the chosen samples and nothing else, pass after pass") {
  const hand_net h = classifier(5, true);
  running_net r(h.n);
  r.set("x", noise(30, 1));
  r.set("label", labels);
  for (const std::vector<float>& chosen : std::vector<std::vector<float>>{
           {1, 1, 1, 1, 1}, {0, 2, 0, 0, 0}, {1, 0, -1, 0, 1}, {1, 1, 1, 1, 1}}) {
    r.set("chosen", chosen);
    r.forward();
    r.backward();
    std::vector<float> x, label;
    const auto all = noise(30, 1);
    for (std::size_t n = 0; n < 5; ++n) {
      if (chosen[n] == 0) continue;
      x.insert(x.end(), all.begin() + 6 * static_cast<int>(n),
               all.begin() + 6 * static_cast<int>(n + 1));
      label.push_back(labels[n]);
    }
    const hand_net direct = classifier(static_cast<int>(label.size()), false);
    running_net d(direct.n);
    d.set("x", x);
    d.set("label", label);
    d.forward();
    d.backward();
    CHECK(r.r->extents(r.index("y"))[0] == static_cast<std::int64_t>(label.size()));
    CHECK(r.data("l") == d.data("l"));
    for (std::size_t p = 0; p < 4; ++p) CHECK(r.gradient(p) == d.gradient(p));
  }
}

TEST_CASE(
    "Filter: without a chosen sample losses and gradients are zero, and the next pass is whole "
    "again") {
  const hand_net h = classifier(5, true);
  running_net r(h.n), fresh(h.n);
  for (running_net* n : {&r, &fresh}) {
    n->set("x", noise(30, 1));
    n->set("label", labels);
    n->set("chosen", {1, 0, 1, 0, 0});
  }
  fresh.forward();
  fresh.backward();
  r.forward();
  r.backward();
  r.set("chosen", {0, 0, 0, 0, 0});
  r.forward();
  r.backward();
  CHECK(r.data("l") == std::vector<float>{0});
  for (std::size_t p = 0; p < 4; ++p)
    CHECK(r.gradient(p) == std::vector<float>(r.gradient(p).size()));
  CHECK(r.data("y") == std::vector<float>(15));  // the net says 5 samples; there are none
  r.set("chosen", {1, 0, 1, 0, 0});
  r.forward();
  r.backward();
  CHECK(r.data("l") == fresh.data("l"));
  for (std::size_t p = 0; p < 4; ++p) CHECK(r.gradient(p) == fresh.gradient(p));
}

TEST_CASE(
    "Filter: gradients go back to the samples that they came from, and are zero for the others") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {4, 2});
  h.input("label", {4});
  h.layer("name: 'f' type: 'Filter' bottom: 'x' bottom: 'label' top: 'y'", {{4, 2}});
  running_net r(h.n, {1, true});
  r.set("x", {1, 2, 3, 4, 5, 6, 7, 8});
  r.set("label", {0, 1, 0, 1});
  r.forward();
  CHECK(r.data("y") == std::vector<float>{3, 4, 7, 8, 0, 0, 0, 0});
  r.set_diff("y", {-1, -2, -3, -4, 0, 0, 0, 0});
  r.backward();
  CHECK(r.diff("x") == std::vector<float>{0, 0, -1, -2, 0, 0, -3, -4});
}
