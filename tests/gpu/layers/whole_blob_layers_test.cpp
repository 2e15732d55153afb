// Layers that combine blobs, products, and layers over classes, against the CPU's.
#include "tests/gpu/layers/both_backends.hpp"

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE(
    "gpu: InnerProduct and its gradients equal the CPU's, transposed or not, without bias too") {
  struct product_case {
    std::string options;
    shape in, out, weights;
  };
  for (const auto& c : std::vector<product_case>{{"", {1, 1}, {1, 1}, {1, 1}},
                                                 {"", {5, 3, 4, 2}, {5, 7}, {7, 24}},
                                                 {"transpose: true", {5, 3, 4}, {5, 7}, {12, 7}},
                                                 {"axis: 2", {2, 3, 9}, {2, 3, 5}, {5, 9}},
                                                 {"", {64, 33}, {64, 40}, {40, 33}}}) {
    CAPTURE(c.options);
    const std::string number = "num_output: " + std::to_string(c.out.back()) + " " + c.options;
    check_both(one_layer("type: 'InnerProduct' inner_product_param { " + number + " }", {c.in},
                         {c.out}, {c.weights, {c.out.back()}})
                   .h.n);
    check_both(
        one_layer("type: 'InnerProduct' inner_product_param { " + number + " bias_term: false }",
                  {c.in}, {c.out}, {c.weights})
            .h.n);
  }
}

TEST_CASE("gpu: Eltwise equals the CPU's; ties of MAX go where Caffe's go") {
  const shape s{2, 3, 4, 5};
  for (const std::string options :
       {"operation: SUM", "operation: SUM coeff: 0.5 coeff: -2 coeff: 1", "operation: PROD",
        "operation: MAX"}) {
    CAPTURE(options);
    check_both(one_layer("type: 'Eltwise' eltwise_param { " + options + " }", {s, s, s}, {s}).h.n);
  }
  const one_layer ties("type: 'Eltwise' eltwise_param { operation: MAX }", {s, s, s}, {s});
  const auto same = noise(2 * 3 * 4 * 5, 1);
  check_both(ties.h.n, {{"x0", same}, {"x1", same}, {"x2", same}});
}

TEST_CASE("gpu: Concat, Slice, Tile, Reshape, Flatten and Silence equal the CPU's") {
  check_both(
      one_layer("type: 'Concat'", {{2, 3, 4, 5}, {2, 1, 4, 5}, {2, 5, 4, 5}}, {{2, 9, 4, 5}}).h.n);
  check_both(one_layer("type: 'Concat' concat_param { axis: 0 }", {{2, 3}, {1, 3}}, {{3, 3}}).h.n);
  check_both(
      one_layer("type: 'Concat' concat_param { axis: -1 }", {{2, 3, 4}, {2, 3, 1}}, {{2, 3, 5}})
          .h.n);
  check_both(one_layer("type: 'Slice' slice_param { slice_point: 1 slice_point: 4 }", {{2, 6, 3}},
                       {{2, 1, 3}, {2, 3, 3}, {2, 2, 3}})
                 .h.n);
  check_both(one_layer("type: 'Tile' tile_param { tiles: 3 }", {{2, 3, 4}}, {{2, 9, 4}}).h.n);
  check_both(
      one_layer("type: 'Tile' tile_param { tiles: 2 axis: 2 }", {{2, 3, 4}}, {{2, 3, 8}}).h.n);
  check_both(one_layer("type: 'Flatten'", {{2, 3, 4}}, {{2, 12}}).h.n);
  check_both(one_layer("type: 'Reshape'", {{2, 3, 4}}, {{6, 4}}).h.n);
  hand_net silent;
  silent.all_diffs = true;
  silent.input("x", {2, 3});
  silent.layer("name: 'split' type: 'Split' bottom: 'x' top: 'a' top: 'b' top: 'c'",
               {{2, 3}, {2, 3}, {2, 3}});
  silent.layer("name: 'silence' type: 'Silence' bottom: 'a' bottom: 'b'", {});
  check_both(silent.n);
}

TEST_CASE("gpu: Softmax equals the CPU's along any axis, with scores that would overflow") {
  check_both(one_layer("type: 'Softmax'", {{5, 10}}, {{5, 10}}).h.n);
  check_both(one_layer("type: 'Softmax'", {{1, 1000}}, {{1, 1000}}).h.n);
  check_both(
      one_layer("type: 'Softmax' softmax_param { axis: 2 }", {{2, 3, 4, 5}}, {{2, 3, 4, 5}}).h.n);
  auto large = noise(50, 1);
  for (float& v : large) v *= 500;
  check_both(one_layer("type: 'Softmax'", {{5, 10}}, {{5, 10}}).h.n, {{"x0", large}});
}

namespace {

hand_net loss_net(const std::string& options, const shape& scores, const shape& label_shape,
                  bool with_probabilities = false) {
  hand_net h;
  h.all_diffs = true;
  h.input("x", scores);
  h.input("label", label_shape);
  h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'loss'" +
              std::string(with_probabilities ? " top: 'p'" : "") + " " + options,
          {{}, scores});
  return h;
}

}  // namespace

TEST_CASE(
    "gpu: SoftmaxWithLoss equals the CPU's with every normalization, with ignored labels, in "
    "space") {
  for (const std::string options :
       {"", "loss_weight: 0.3", "loss_param { normalization: FULL }",
        "loss_param { normalization: BATCH_SIZE }", "loss_param { normalization: NONE }",
        "loss_param { ignore_label: 2 }", "loss_param { ignore_label: 2 normalization: FULL }",
        "loss_param { normalize: false }"}) {
    CAPTURE(options);
    check_both(loss_net(options, {7, 5}, {7}).n, {{"label", labels(7, 5)}});
    check_both(loss_net(options, {2, 4, 3, 2}, {2, 1, 3, 2}).n, {{"label", labels(12, 4)}});
  }
  check_both(loss_net("", {7, 5}, {7}, true).n, {{"label", labels(7, 5)}});
  check_both(loss_net("loss_param { ignore_label: 1 }", {3, 5}, {3}).n, {{"label", {1, 1, 1}}});
}

TEST_CASE("gpu: Accuracy equals the CPU's: top k, ties, ignored labels, by class") {
  for (const std::string options : {"", "top_k: 3", "ignore_label: 1", "axis: 1 top_k: 2"}) {
    for (const bool per_class : {false, true}) {
      CAPTURE(options);
      hand_net h(::caffe::TEST);
      h.input("x", {9, 6});
      h.input("label", {9});
      h.layer("name: 'acc' type: 'Accuracy' bottom: 'x' bottom: 'label' top: 'acc'" +
                  std::string(per_class ? " top: 'each'" : "") + " accuracy_param { " + options +
                  " }",
              {{}, {6}});
      auto scores = noise(54, 4);
      for (std::size_t i = 0; i < 12; ++i) scores[i] = 0.5f;  // equal scores count as better
      check_both(h.n, {{"x", scores}, {"label", labels(9, 6)}});
    }
  }
}

TEST_CASE("gpu: a label that is no class is named with its layer, and nothing crashes") {
  const hand_net h = loss_net("", {3, 5}, {3});
  running_net gpu(h.n, {1, true}, strict_gpu(device_layout::nhwc));
  for (const float bad : {5.0f, -1.0f, 1e20f}) {
    gpu.set("x", noise(15, 1));
    gpu.set("label", {0, bad, 2});
    gpu.forward();
    try {
      gpu.backward();
      FAIL("the label was accepted");
    } catch (const std::invalid_argument& e) {
      const std::string text = e.what();
      CHECK(text.find("layer \"loss\" (SoftmaxWithLoss): a label is " + std::to_string(bad)) == 0);
      CHECK(text.find("the prediction has 5 classes (0 to 4)") != std::string::npos);
    }
  }
}

TEST_CASE("gpu: EuclideanLoss and SigmoidCrossEntropyLoss equal the CPU's") {
  const shape s{4, 3, 2};
  for (const std::string type : {"EuclideanLoss", "SigmoidCrossEntropyLoss"}) {
    hand_net h;
    h.all_diffs = true;
    h.input("x", s);
    h.input("label", s);
    h.layer(
        "name: 'loss' type: '" + type + "' bottom: 'x' bottom: 'label' top: 'loss' loss_weight: 2",
        {{}});
    auto targets = noise(24, 9);
    for (float& t : targets) t = t * 0.5f + 0.5f;
    check_both(h.n, {{"label", targets}});
  }
}

TEST_CASE("gpu: HingeLoss, MultinomialLogisticLoss and ContrastiveLoss equal the CPU's") {
  for (const std::string type :
       {"type: 'HingeLoss'", "type: 'HingeLoss' hinge_loss_param { norm: L2 }",
        "type: 'MultinomialLogisticLoss'"}) {
    CAPTURE(type);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {6, 4});
    h.input("label", {6});
    h.layer("name: 'loss' " + type + " bottom: 'x' bottom: 'label' top: 'loss'", {{}});
    auto x = noise(24, 3);
    if (h.n.layers.back().type == "MultinomialLogisticLoss")
      for (float& v : x) v = std::abs(v) + 0.01f;
    check_both(h.n, {{"x", x}, {"label", labels(6, 4)}});
  }
  for (const std::string options : {"", "contrastive_loss_param { margin: 3 }",
                                    "contrastive_loss_param { legacy_version: true margin: 4 }"}) {
    CAPTURE(options);
    hand_net h;
    h.all_diffs = true;
    h.input("a", {6, 5});
    h.input("b", {6, 5});
    h.input("label", {6});
    h.layer(
        "name: 'loss' type: 'ContrastiveLoss' bottom: 'a' bottom: 'b' bottom: 'label' top: "
        "'loss' " +
            options,
        {{}});
    check_both(h.n, {{"label", {0, 1, 0, 1, 0, 0}}});
  }
}

TEST_CASE("gpu: Reduction, MVN and ArgMax equal the CPU's") {
  for (const std::string how : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    CAPTURE(how);
    check_both(
        one_layer("type: 'Reduction' reduction_param { operation: " + how + " axis: 1 coeff: 2 }",
                  {{3, 4, 5}}, {{3}})
            .h.n);
    check_both(
        one_layer("type: 'Reduction' reduction_param { operation: " + how + " }", {{3, 4, 5}}, {{}})
            .h.n);
  }
  for (const std::string options : {"", "normalize_variance: false", "across_channels: true"}) {
    CAPTURE(options);
    check_both(
        one_layer("type: 'MVN' mvn_param { " + options + " }", {{2, 3, 4, 5}}, {{2, 3, 4, 5}}).h.n);
  }
  struct argmax_case {
    std::string options;
    shape top;
  };
  for (const auto& c : std::vector<argmax_case>{{"", {3, 1, 1}},
                                                {"top_k: 3", {3, 1, 3}},
                                                {"top_k: 2 out_max_val: true", {3, 2, 2}},
                                                {"axis: 1 top_k: 2", {3, 2, 5}},
                                                {"axis: 2 out_max_val: true", {3, 4, 1}}}) {
    CAPTURE(c.options);
    hand_net h(::caffe::TEST);
    h.input("x", {3, 4, 5});
    h.layer("name: 'a' type: 'ArgMax' bottom: 'x' top: 'y' argmax_param { " + c.options + " }",
            {c.top});
    auto x = noise(60, 2);
    for (float& v : x) v = std::round(v * 3);  // with many that are equal
    check_both(h.n, {{"x", x}});
  }
}

TEST_CASE("gpu: Crop, BatchReindex and Embed equal the CPU's; an index beyond the end is named") {
  check_both(one_layer("type: 'Crop' crop_param { axis: 2 offset: 1 offset: 2 }",
                       {{2, 3, 6, 7}, {2, 1, 4, 3}}, {{2, 3, 4, 3}})
                 .h.n);
  check_both(one_layer("type: 'Crop' crop_param { axis: 1 offset: 1 }", {{2, 4, 5}, {9, 2, 3}},
                       {{2, 2, 3}})
                 .h.n);
  hand_net reindex;
  reindex.all_diffs = true;
  reindex.input("x", {4, 3, 2});
  reindex.input("label", {5});
  reindex.layer("name: 're' type: 'BatchReindex' bottom: 'x' bottom: 'label' top: 'y'",
                {{5, 3, 2}});
  check_both(reindex.n, {{"label", {3, 0, 0, 3, 1}}});
  hand_net embed;
  embed.input("label", {2, 3});
  embed.layer(
      "name: 'embed' type: 'Embed' bottom: 'label' top: 'y' embed_param { input_dim: 5 num_output: "
      "4 }",
      {{2, 3, 4}}, {{5, 4}, {4}});
  check_both(embed.n, {{"label", {4, 0, 1, 4, 4, 2}}});
  running_net gpu(embed.n, {1, true}, strict_gpu(device_layout::nhwc));
  gpu.set("label", {4, 0, 1, 5, 4, 2});
  gpu.forward();
  CHECK_THROWS_WITH_AS(
      gpu.backward(),
      "layer \"embed\" (Embed): an index is 5.000000, input_dim is 5 (0 to 4). Do the data and "
      "input_dim belong together?",
      std::invalid_argument);
}

TEST_CASE("gpu: InfogainLoss with its matrix from a bottom equals the CPU's") {
  for (const std::string options : {"", "loss_param { ignore_label: 1 normalization: FULL }"}) {
    CAPTURE(options);
    hand_net h;
    h.input("x", {6, 4, 2});
    h.layer("name: 'power' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 }",
            {{6, 4, 2}});
    h.n.layers.back().needs_backward = true;
    h.n.layers.back().propagate_down = {true};
    h.input("label", {6, 2});
    h.input("gain", {1, 1, 4, 4});
    h.layer(
        "name: 'loss' type: 'InfogainLoss' bottom: 'y' bottom: 'label' bottom: 'gain' top: "
        "'loss' " +
            options,
        {{}});
    net_layer& l = h.n.layers.back();
    l.needs_backward = true;
    l.propagate_down = {true, false, false};
    check_both(h.n, {{"label", labels(12, 4)}});
  }
}
