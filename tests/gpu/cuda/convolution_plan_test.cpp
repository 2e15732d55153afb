// Plans of cuDNN for a GPU that this machine need not have: h100.json describes it, as cuDNN itself wrote it on one.
#include "gpu/cuda/convolution_plan.hpp"

#include "gpu/layers/convolution_shape.hpp"
#include "gpu/runtime/error.hpp"
#include "gpu/tuning.hpp"
#include "models/net/net_builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

using namespace poseidon;
using namespace poseidon::gpu;
using cuda::convolution_plan;
using cuda::cudnn_device;

namespace {

cudnn_device an_h100() {
  std::ifstream file("tests/gpu/cuda/h100.json");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return cudnn_device(text.str());
}

net training_net(const std::string& folder) {
  build_options options;
  options.sources = [&](const ::caffe::LayerParameter& l, const spec_position&) {
    const std::int64_t batch = l.data_param().batch_size(), crop = l.transform_param().crop_size();
    const std::int64_t side = folder == "lenet" ? 28 : crop != 0 ? crop : 32;
    return std::vector<shape>{{batch, folder == "lenet" ? 1 : 3, side, side}, {batch}};
  };
  return build_net(read_net("models/zoo/" + folder + "/train_val.prototxt"), options);
}

convolution_shape square(std::int64_t batch, std::int64_t in, std::int64_t side, std::int64_t out,
                         std::int64_t kernel) {
  convolution_shape s;
  s.axes = 2;
  s.batch = batch;
  s.in = in;
  s.out = out;
  s.image = {side, side};
  s.result = {side - kernel + 1, side - kernel + 1};
  s.kernel = {kernel, kernel};
  s.stride = s.dilation = {1, 1};
  return s;
}

constexpr convolution_direction directions[] = {convolution_direction::forward,
                                                convolution_direction::data_gradient,
                                                convolution_direction::weight_gradient};

std::vector<std::tuple<convolution_direction, math, layout>> every_way() {
  std::vector<std::tuple<convolution_direction, math, layout>> all;
  for (const auto direction : directions) {
    for (const auto precision : {math::fp32, math::tf32})
      for (const layout order : {layout::nchw, layout::nhwc})
        all.emplace_back(direction, precision, order);
    all.emplace_back(direction, math::bf16, layout::nhwc_bf16);
  }
  return all;
}

bool notes_have(const convolution_plan& p, cudnnBackendNumericalNote_t note) {
  return std::find(p.engine().notes.begin(), p.engine().notes.end(), note) !=
         p.engine().notes.end();
}

}  // namespace

TEST_CASE(
    "plans: cuDNN can compute every convolution of the zoo, in TF32 and strictly in NCHW and "
    "NHWC, and in bfloat16, always alike") {
  const cudnn_device device = an_h100();
  std::set<std::tuple<convolution_shape, convolution_direction, math>> seen;
  std::map<layout, std::size_t> workspace;  // of all plans but strict ones
  for (const std::string folder :
       {"lenet", "cifar10_quick", "cifar10_full", "alexnet", "caffenet", "googlenet", "vgg16",
        "vgg19", "vgg19_22k", "resnet50", "resnet152", "inception_v3"}) {
    const net n = training_net(folder);
    for (const net_layer& l : n.layers) {
      if (l.type != "Convolution") continue;
      auto shape = resolve_convolution(l, n.blobs[l.bottoms[0]].shape, n.blobs[l.tops[0]].shape);
      for (const auto& [direction, precision, order] : every_way()) {
        shape.order = order;
        if (!seen.insert({shape, direction, precision}).second) continue;
        library_options options;
        options.precision = precision;
        options.deterministic = true;
        CAPTURE(folder);
        CAPTURE(l.name);
        CAPTURE(static_cast<int>(order));
        try {
          const convolution_plan plan(device, shape, direction, options);
          CHECK(plan.workspace_bytes() <= options.workspace_bytes);
          CHECK_FALSE(notes_have(plan, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
          if (precision == math::fp32)
            CHECK_FALSE(notes_have(plan, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
          else
            workspace[order] += plan.workspace_bytes();
        } catch (const error& e) {
          FAIL_CHECK(e.what());
        }
      }
    }
  }
  CHECK(seen.size() > 1000);
  MESSAGE("workspaces: " << workspace[layout::nchw] / 1000000 << " MB in NCHW, "
                         << workspace[layout::nhwc] / 1000000 << " MB in NHWC, "
                         << workspace[layout::nhwc_bf16] / 1000000 << " MB in NHWC of bfloat16");
  // The memory in which images are transposed.
  CHECK(workspace[layout::nhwc] < workspace[layout::nchw] / 2);
}

TEST_CASE("plans: --autotune has several ways to try, the first of which is the one without it") {
  const cudnn_device device = an_h100();
  std::size_t products = 0, with_choice = 0;
  for (const std::string folder : {"lenet", "alexnet", "googlenet", "resnet50"}) {
    const net n = training_net(folder);
    std::set<convolution_shape> seen;
    for (const net_layer& l : n.layers) {
      if (l.type != "Convolution") continue;
      const auto shape =
          resolve_convolution(l, n.blobs[l.bottoms[0]].shape, n.blobs[l.tops[0]].shape);
      if (!seen.insert(shape).second) continue;
      for (const auto direction : directions) {
        CAPTURE(folder);
        CAPTURE(l.name);
        const library_options options;
        const auto ways = convolution_plan::several(device, shape, direction, options, most_ways);
        const convolution_plan alone(device, shape, direction, options);
        REQUIRE_FALSE(ways.empty());
        CHECK(ways.size() <= most_ways);
        CHECK(ways[0].engine().number == alone.engine().number);
        CHECK(ways[0].workspace_bytes() == alone.workspace_bytes());
        for (const auto& way : ways) CHECK(way.workspace_bytes() <= options.workspace_bytes);
        ++products;
        if (ways.size() > 1) ++with_choice;
      }
    }
  }
  MESSAGE(with_choice << " of " << products << " products have more than one way");
  CHECK(with_choice == products);
}

TEST_CASE("plans: strict products take no engine that rounds more than a sum of floats does") {
  library_options strict, rounded;
  strict.precision = math::fp32;
  rounded.precision = math::tf32;
  const auto with = [](cudnnBackendNumericalNote_t note) {
    return cuda::engine_facts{convolution_direction::forward, 1, {note}};
  };
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
    CAPTURE(static_cast<int>(note));
    CHECK_FALSE(cuda::objection(with(note), strict).empty());
    CHECK(cuda::objection(with(note), rounded).empty());
  }
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION})
    CHECK_FALSE(cuda::objection(with(note), rounded).empty());
  CHECK(cuda::objection(with(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP), strict).empty());
  // One that says nothing of it; its number means another engine in the other directions.
  CHECK_FALSE(cuda::objection({convolution_direction::weight_gradient, 17, {}}, strict).empty());
  CHECK(cuda::objection({convolution_direction::weight_gradient, 17, {}}, rounded).empty());
  CHECK(cuda::objection({convolution_direction::weight_gradient, 1, {}}, strict).empty());
  CHECK(cuda::objection({convolution_direction::forward, 17, {}}, strict).empty());
}

TEST_CASE("plans: convolutions of one and of three spatial axes have plans too") {
  const cudnn_device device = an_h100();
  convolution_shape line = square(8, 16, 9, 32, 3), space = line;
  line.axes = 1;
  line.image[1] = line.result[1] = line.kernel[1] = line.stride[1] = line.dilation[1] = 0;
  space.axes = 3;
  space.image[2] = 9, space.result[2] = 7, space.kernel[2] = 3;
  space.stride[2] = space.dilation[2] = 1;
  for (const auto direction : directions) {
    CHECK_NOTHROW(convolution_plan(device, line, direction, {}));
    CHECK_NOTHROW(convolution_plan(device, space, direction, {}));
  }
}

TEST_CASE(
    "plans: a limit on the workspace is kept, and what cannot be is said with the convolution") {
  const cudnn_device device = an_h100();
  const convolution_shape s = square(32, 256, 13, 384, 3);
  library_options none;
  none.workspace_bytes = 0;
  for (const auto direction : directions) {
    try {
      CHECK(convolution_plan(device, s, direction, none).workspace_bytes() == 0);
    } catch (const error& e) {
      CHECK(e.kind() == error_kind::unsupported);
      const std::string text = e.what();
      CHECK(text.find("gradient of a convolution of 32x256x13x13 with 384x256x3x3") !=
            std::string::npos);
    }
  }
  convolution_shape wrong = s;
  wrong.result = {5, 5};  // not what this window gives
  CHECK_THROWS_AS(convolution_plan(device, wrong, convolution_direction::forward, {}),
                  const error&);
}
