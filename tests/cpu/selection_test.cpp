#include "tests/cpu/hand_net.hpp"

#include <cmath>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// The output of a layer with one bottom for these values.
std::vector<float> of(const std::string& layer, const shape& bottom, const shape& top,
                      const std::vector<float>& x) {
  hand_net h(::caffe::TEST);
  h.input("x", bottom);
  h.layer("name: 'l' bottom: 'x' top: 'y' " + layer, {top});
  running_net r(h.n);
  r.set("x", x);
  r.forward();
  return r.data("y");
}

void check_throws(const std::string& layer, const std::vector<float>& index,
                  const std::string& text) {
  hand_net h(::caffe::TEST);
  h.input("x", {2, 3});
  h.input("label", {2});
  h.layer(
      layer, {{2, 3}},
      layer.find("Embed") == std::string::npos ? std::vector<shape>{} : std::vector<shape>{{2, 3}});
  running_net r(h.n);
  r.set("label", index);
  CHECK_THROWS_WITH_AS(r.forward(), doctest::Contains(text.c_str()), std::invalid_argument);
}

}  // namespace

TEST_CASE("ArgMax: of equal values the later is larger, in every place of the top_k") {
  const std::vector<float> x{1, 3, 3, 2, 3, 0, 0, 0, 0, -1};
  CHECK(of("type: 'ArgMax' argmax_param { top_k: 4 }", {2, 5}, {2, 1, 4}, x) ==
        std::vector<float>{4, 2, 1, 3, 3, 2, 1, 0});
  CHECK(of("type: 'ArgMax' argmax_param { top_k: 2 out_max_val: true }", {2, 5}, {2, 2, 2}, x) ==
        std::vector<float>{4, 2, 3, 3, 3, 2, 0, 0});
  CHECK(of("type: 'ArgMax' argmax_param { axis: 0 out_max_val: true }", {2, 5}, {1, 5}, x) ==
        std::vector<float>{1, 3, 3, 2, 3});
}

TEST_CASE("indices out of range: the error names layer, index and range") {
  const std::string embed =
      "name: 'words' type: 'Embed' bottom: 'label' top: 'y' embed_param { num_output: 3 input_dim: "
      "2 "
      "bias_term: false }";
  check_throws(embed, {0, 2}, "layer \"words\" (Embed): an index is 2.000000, input_dim is 2");
  check_throws(embed, {-1, 0}, "an index is -1");
  const std::string reindex =
      "name: 'pick' type: 'BatchReindex' bottom: 'x' bottom: 'label' top: 'y'";
  check_throws(reindex, {0, 2}, "layer \"pick\" (BatchReindex): an index is 2.000000");
  const std::string hinge = "name: 'h' type: 'HingeLoss' bottom: 'x' bottom: 'label' top: 'y'";
  check_throws(hinge, {0, 3},
               "layer \"h\" (HingeLoss): a label is 3.000000, the prediction has 3 classes");
  check_throws(hinge, {0, std::nanf("")}, "a label is");
}

TEST_CASE("a gradient through indices is refused when the net is compiled") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2});
  h.layer(
      "name: 'words' type: 'Embed' bottom: 'x' top: 'y' embed_param { num_output: 3 input_dim: 2 "
      "bias_term: false }",
      {{2, 3}}, {{2, 3}});
  CHECK_THROWS_WITH_AS(running_net(h.n, {1, true}), doctest::Contains("that bottom holds indices"),
                       spec_error);
}

TEST_CASE("losses whose labels are all ignored are zero, not infinite") {
  for (const std::string type : {"SoftmaxWithLoss", "InfogainLoss"}) {
    CAPTURE(type);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {2, 3});
    h.input("label", {2});
    h.input("matrix", {3, 3});
    const bool matrix = type == "InfogainLoss";
    h.layer("name: 'l' type: '" + type + "' bottom: 'x' bottom: 'label' top: 'y' " +
                (matrix ? "bottom: 'matrix' " : "") + "loss_param { ignore_label: 1 }",
            {{}});
    if (matrix) h.n.layers.back().propagate_down[2] = false;
    running_net r(h.n, {1, true});
    r.set("x", noise(6, 1));
    r.set("label", {1, 1});
    r.forward();
    CHECK(r.data("y") == std::vector<float>{0});
    r.backward();
    CHECK(r.diff("x") == std::vector<float>(6, 0.0f));
  }
}

TEST_CASE("Exp and Log: a base that has no powers is refused") {
  for (const std::string layer :
       {"type: 'Exp' exp_param { base: 0 }", "type: 'Log' log_param { base: -2 }"}) {
    CAPTURE(layer);
    CHECK_THROWS_WITH_AS(of(layer, {1}, {1}, {1}),
                         doctest::Contains("it must be above 0, or -1 for e"), spec_error);
  }
}
