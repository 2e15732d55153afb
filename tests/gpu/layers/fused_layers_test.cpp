// Layers whose kernels do a neighbour's work, as they do without keep_all_diffs: what is learned and what comes out is
// the CPU's, in training and in tests, in both layouts.
#include "tests/gpu/layers/both_backends.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

const shape image{3, 6, 5, 4};

/// x and a convolution of it, "y"; then whatever a test puts there; then what it ends in, and a loss.
struct chain {
  hand_net h;

  explicit chain(::caffe::Phase phase = ::caffe::TRAIN) : h(phase) {
    h.input("x", image);
    h.input("label", {3});
  }
  void convolve(const std::string& bottom, const std::string& top, bool bias = true) {
    h.layer("name: '" + top + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + top +
                "' convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: " +
                (bias ? "true }" : "false }"),
            {image},
            bias ? std::vector<shape>{{6, 6, 3, 3}, {6}} : std::vector<shape>{{6, 6, 3, 3}});
  }
  void normalize(const std::string& bottom, const std::string& top,
                 const std::string& options = "") {
    h.layer("name: 'norm' type: 'BatchNorm' bottom: '" + bottom + "' top: '" + top +
                "' batch_norm_param { " + options + " }",
            {image}, {{6}, {6}, {1}});
  }
  void scale(const std::string& blob, bool bias = true) {
    h.layer("name: 'scale' type: 'Scale' bottom: '" + blob + "' top: '" + blob +
                "' scale_param { bias_term: " + (bias ? "true }" : "false }"),
            {}, bias ? std::vector<shape>{{6}, {6}} : std::vector<shape>{{6}});
  }
  void relu(const std::string& blob, const std::string& slope = "0") {
    h.layer("name: 'relu' type: 'ReLU' bottom: '" + blob + "' top: '" + blob +
                "' relu_param { negative_slope: " + slope + " }",
            {});
  }
  void end(const std::string& bottom) {
    h.layer("name: 'ip' type: 'InnerProduct' bottom: '" + bottom +
                "' top: 'ip' inner_product_param { num_output: 4 }",
            {{3, 4}}, {{4, 6 * 5 * 4}, {4}});
    h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss'", {{}});
    h.n.outputs = {h.blob("loss")};
  }
};

/// Two passes from noise, the second with other parameters: outputs and gradients of both devices agree.
void check_fused(const net& n) {
  for (const device_layout layout : both_layouts) {
    CAPTURE(layout == device_layout::nhwc);
    running_net cpu(n), gpu(n, {}, strict_gpu(layout));
    for (std::uint32_t pass = 0; pass < 2; ++pass) {
      CAPTURE(pass);
      for (auto* r : {&cpu, &gpu}) {
        r->set("x", noise(r->size(n.layers[0].tops[0]), 10 + pass));
        r->set("label", labels(3, 4));
        for (std::size_t p = 0; p < n.parameters.size();
             ++p) {  // sums of variances are not negative
          for (float& w : r->parameters[p]) w = pass == 0 ? std::abs(w) + 0.05f : w * 0.9f;
          if (n.parameters[p].shape.size() > 1)
            for (std::size_t i = 0; pass == 0 && i < r->parameters[p].size(); i += 2)
              r->parameters[p][i] *= -1;
        }
        r->touch();
        r->forward();
        if (n.phase == ::caffe::TRAIN) r->backward();
      }
      for (const std::size_t b : n.outputs)
        CHECK(deviation(gpu.data(n.blobs[b].name), cpu.data(n.blobs[b].name)) <= same_numbers);
      if (n.phase == ::caffe::TEST) continue;
      for (std::size_t p = 0; p < n.parameters.size(); ++p) {
        CAPTURE(n.parameters[p].name);
        CHECK(deviation(gpu.gradient(p), cpu.gradient(p)) <= 1e-4);
      }
    }
  }
}

}  // namespace

TEST_CASE("gpu: a convolution does the ReLU in place behind it, and that of its bias's gradient") {
  for (const std::string slope : {"0", "0.1", "-0.3"})
    for (const bool bias : {true, false}) {
      CAPTURE(slope);
      CAPTURE(bias);
      chain c;
      c.convolve("x", "first");
      c.convolve("first", "y", bias);
      c.relu("y", slope);
      c.end("y");
      check_fused(c.h.n);
    }
}

TEST_CASE("gpu: a max pooling behind a convolution's ReLU makes that one's gradient, too") {
  for (const std::string slope : {"0", "0.3"})
    for (const std::string pool :
         {"pool: MAX kernel_size: 2 stride: 2", "pool: MAX kernel_size: 3 stride: 1 pad: 1",
          "pool: AVE kernel_size: 2 stride: 2"})
      for (const bool mask : {false, true}) {
        if (mask && pool.find("AVE") != std::string::npos) continue;
        CAPTURE(slope);
        CAPTURE(pool);
        CAPTURE(mask);
        chain c;
        c.convolve("x", "y");
        c.relu("y", slope);
        const bool same = pool.find("stride: 1") != std::string::npos;
        const shape pooled = same ? shape{3, 6, 5, 4} : shape{3, 6, 3, 2};
        std::vector<shape> tops{pooled};
        if (mask) tops.push_back(pooled);
        c.h.layer("name: 'pool' type: 'Pooling' bottom: 'y' top: 'p' " +
                      std::string(mask ? "top: 'mask' " : "") + "pooling_param { " + pool + " }",
                  tops);
        if (mask) c.h.layer("name: 'silence' type: 'Silence' bottom: 'mask'", {});
        c.h.layer(
            "name: 'ip' type: 'InnerProduct' bottom: 'p' top: 'ip' inner_product_param { "
            "num_output: 4 }",
            {{3, 4}}, {{4, 6 * pooled[2] * pooled[3]}, {4}});
        c.h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss'",
                  {{}});
        c.h.n.outputs = {c.h.blob("loss")};
        check_fused(c.h.n);
      }
}

TEST_CASE("gpu: BatchNorm, Scale and ReLU in place are one, backwards too") {
  for (const auto phase : {::caffe::TRAIN, ::caffe::TEST})
    for (const std::string slope : {"none", "0", "0.2", "-0.2"})
      for (const bool bias : {true, false})
        for (const bool in_place : {true, false})
          for (const std::string options : {"", "use_global_stats: true"}) {
            CAPTURE(phase == ::caffe::TEST);
            CAPTURE(slope);
            CAPTURE(bias);
            CAPTURE(in_place);
            CAPTURE(options);
            chain c(phase);
            c.convolve("x", "y", false);
            const std::string top = in_place ? "y" : "z";
            c.normalize("y", top, options);
            c.scale(top, bias);
            if (slope != "none") c.relu(top, slope);
            c.end(top);
            check_fused(c.h.n);
          }
}

TEST_CASE("gpu: a Scale behind a BatchNorm of the pictures learns, with nothing below") {
  chain c;
  c.normalize("x", "y");
  c.scale("y");
  c.relu("y");
  c.end("y");
  check_fused(c.h.n);
}

TEST_CASE("gpu: a sum of two does the ReLU in place behind it, and both gradients") {
  for (const std::string options : {"", "eltwise_param { coeff: 1 coeff: -0.5 }"})
    for (const bool both : {true, false}) {
      CAPTURE(options);
      CAPTURE(both);
      chain c;
      c.convolve("x", "a");
      if (both) c.convolve("a", "b");
      c.h.layer("name: 'split' type: 'Split' bottom: '" + std::string(both ? "b" : "a") +
                    "' top: 'one' top: 'two'",
                {image, image});
      c.convolve("one", "left");
      c.h.layer("name: 'sum' type: 'Eltwise' bottom: 'left' bottom: '" +
                    std::string(both ? "two" : "x") + "' top: 'sum' " + options,
                {image});
      c.relu("sum");
      if (!both) c.h.layer("name: 'silence' type: 'Silence' bottom: 'two'", {});
      c.end("sum");
      check_fused(c.h.n);
    }
}

namespace {

/// Residual blocks: of each the first bottom is normalised; the other one is what went in, or a convolution of that.
struct blocks : chain {
  std::string last = "a";
  int number = 0;

  blocks() {
    convolve("x", "a", false);
    normalized("a");
    h.layer("name: 'relu_a' type: 'ReLU' bottom: 'a' top: 'a'", {});
  }
  void normalized(const std::string& blob) {
    h.layer(
        "name: 'norm_" + blob + "' type: 'BatchNorm' bottom: '" + blob + "' top: '" + blob + "'",
        {}, {{6}, {6}, {1}});
    h.layer("name: 'scale_" + blob + "' type: 'Scale' bottom: '" + blob + "' top: '" + blob +
                "' scale_param { bias_term: true }",
            {}, {{6}, {6}});
  }
  void block(bool project, const std::string& options = "", const std::string& slope = "0",
             bool in_place_last = true) {
    const std::string n = std::to_string(++number), one = "one" + n, two = "two" + n;
    h.layer("name: 'split" + n + "' type: 'Split' bottom: '" + last + "' top: '" + one +
                "' top: '" + two + "'",
            {image6, image6});
    convolve(one, "left" + n, false);
    if (in_place_last) normalized("left" + n);
    if (project) {
      convolve(two, "right" + n, false);
      normalized("right" + n);
    }
    const std::string other = project ? "right" + n : two;
    h.layer("name: 'sum" + n + "' type: 'Eltwise' bottom: 'left" + n + "' bottom: '" + other +
                "' top: 'sum" + n + "' " + options,
            {image6});
    h.layer("name: 'relu_sum" + n + "' type: 'ReLU' bottom: 'sum" + n + "' top: 'sum" + n +
                "' relu_param { negative_slope: " + slope + " }",
            {});
    last = "sum" + n;
  }
  static inline const shape image6{3, 6, 5, 4};
};

}  // namespace

TEST_CASE(
    "gpu: sums that end residual blocks add their Split's gradients, and give both bottoms one") {
  for (const bool first_projects : {true, false})
    for (const bool second_projects : {true, false})
      for (const std::string options : {"", "eltwise_param { coeff: 0.5 coeff: 0.5 }",
                                        "eltwise_param { coeff: 1 coeff: -0.5 }"})
        for (const std::string slope : {"0", "0.2", "1"})
          for (const bool normalized : {true, false}) {
            CAPTURE(first_projects);
            CAPTURE(second_projects);
            CAPTURE(options);
            CAPTURE(slope);
            CAPTURE(normalized);
            blocks b;
            b.block(first_projects);
            b.block(second_projects, options, slope, normalized);
            b.block(false);
            b.end(b.last);
            check_fused(b.h.n);
          }
}

TEST_CASE("gpu: what follows a ReLU in place may also work in place") {
  chain c;
  c.convolve("x", "y");
  c.relu("y");
  c.h.layer("name: 'dropout' type: 'Dropout' bottom: 'y' top: 'y'", {});
  c.end("y");
  check_fused(c.h.n);
}

TEST_CASE("gpu: a Scale's parameters may be fresh ones by the time that its BatchNorm goes back") {
  chain c;
  c.convolve("x", "y", false);
  c.normalize("y", "y");
  c.scale("y");
  c.relu("y");
  c.end("y");
  const net& n = c.h.n;
  const auto place = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find_if(n.layers.begin(), n.layers.end(),
                                                 [&](const auto& l) { return l.name == name; }) -
                                    n.layers.begin());
  };
  const std::size_t convolution = place("y"), scale = place("scale");
  running_net cpu(n), gpu(n, {}, strict_gpu(device_layout::nchw));
  for (auto* r : {&cpu, &gpu}) {
    r->set("x", noise(r->size(n.layers[0].tops[0]), 10));
    r->set("label", labels(3, 4));
    r->forward();
  }
  cpu.backward();
  for (std::size_t i = n.layers.size(); i-- > 0;) {
    if (n.layers[i].needs_backward) gpu.r->at(i).backward(gpu.now);
    if (i != scale) continue;
    for (const std::size_t p : n.layers[scale].parameters)
      for (float& v : gpu.parameters[p]) v = 1000;
    gpu.touch();
    // What the convolution reads arrives behind that, and it waits for it.
    gpu.r->bring_parameters(scale);
    gpu.r->bring_parameters(convolution);
    gpu.r->at(convolution).forward(gpu.now);
  }
  gpu.r->finish();
  CHECK(deviation(gpu.gradient(0), cpu.gradient(0)) <= 1e-4);
}
