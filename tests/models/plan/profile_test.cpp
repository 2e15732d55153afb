// Profiles: what is refused and how, that they fit their net, and that those of the zoo say what was published.
#include "models/plan/profile.hpp"

#include "tests/folder.hpp"
#include "tests/models/nets.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

constexpr const char* good = R"(net: "n" measured: "by hand" batch: 4
layer { name: "conv1" forward_ms: 1.5 backward_ms: 3 }
layer { name: "ip1" forward_ms: 0.25 }
)";

net small_net() {
  return test::build(
      test::input("data", {4, 3, 8, 8}) + test::input("label", {4}) +
      test::layer("conv1", "Convolution", "data", "conv1",
                  "convolution_param { num_output: 5 kernel_size: 3 }") +
      test::layer("relu1", "ReLU", "conv1", "conv1") +
      test::layer("ip1", "InnerProduct", "conv1", "ip1", "inner_product_param { num_output: 7 }") +
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip1\" "
      "bottom: \"label\" top: \"loss\" }\n");
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
    return {};
  } catch (const spec_error& e) {
    return e.what();
  }
}

std::string refused(const std::string& text) {
  return refusal([&] { (void)parse_profile(text, "a.profile"); });
}

double total_ms(const std::vector<layer_time>& layers) {
  double sum = 0;
  for (const auto& l : layers) sum += l.forward_ms + l.backward_ms;
  return sum;
}

}  // namespace

TEST_CASE(
    "profile: times are those of the file, in proportion to the batch; layers not named take "
    "none") {
  const auto n = small_net();
  const auto times = times_on(parse_profile(good, "a.profile"), n, 8);
  REQUIRE(times.size() == n.layers.size());
  for (std::size_t l = 0; l < times.size(); ++l) {
    const auto& name = n.layers[l].name;
    INFO(name);
    CHECK(times[l].forward == (name == "conv1" ? 3 : name == "ip1" ? 0.5 : 0));
    CHECK(times[l].backward == (name == "conv1" ? 6 : 0));
  }
}

TEST_CASE(
    "profile: a layer that the net does not have is refused with its line and the nearest name") {
  const auto p = parse_profile("batch: 4\n\nlayer { name: \"conv_1\" forward_ms: 1 }", "a.profile");
  CHECK(refusal([&] { (void)times_on(p, small_net(), 4); }) ==
        "a.profile:3: layer \"conv_1\" has times, but the net \"\" has no layer of that name. Did "
        "you mean \"conv1\"? A profile belongs to one net; poseidon-node time --profile-out writes "
        "another's.");
}

TEST_CASE("profile: mistakes say where, what and both values") {
  CHECK(refused("layer { name: \"a\" }") ==
        "a.profile: batch is 0: say of how many images the times are, as in batch: 32.");
  CHECK(refused("batch: 1 gflop_s: -1") ==
        "a.profile:1: gflop_s is -1, it has to be above 0, or 0 where nobody knows the rate of "
        "products.");
  CHECK(refused("batch: 1\nlayer { name: \"a\" forward_ms: -2 }") ==
        "a.profile:2: layer \"a\": forward_ms is -2, it has to be 0 or more milliseconds.");
  CHECK(refused("batch: 1\nlayer { name: \"a\" backward_ms: nan }") ==
        "a.profile:2: layer \"a\": backward_ms is nan, it has to be 0 or more milliseconds.");
  CHECK(refused("batch: 1\nlayer { forward_ms: 2 }") ==
        "a.profile:2: a layer's times have no name: which layer of the net are they of?");
  CHECK(refused("batch: 1\nlayer { name: \"a\" }\nlayer { name: \"a\" }") ==
        "a.profile:3: layer \"a\" has its times here and in line 2. Delete one of the two.");
  CHECK(refused("batch: 1\nlayer { name: \"a\" forwards_ms: 2 }") ==
        "a.profile:2: LayerTime has no field \"forwards_ms\". Did you mean \"forward_ms\"?");
  CHECK(refused("batch: 1\nlayer { name: \"a\"").find("A closing brace is missing") !=
        std::string::npos);
}

TEST_CASE("profile: what is written is read back, whatever the words in it") {
  auto p = parse_profile(good, "a.profile");
  p.measured = "on \"my\" C:\\gpu\nat night";
  const test::temporary_folder folder;
  const auto back = read_profile(folder.write("p", text_of(p)));
  CHECK(back.measured == "on \"my\" C:\\gpu at night");
  CHECK(back.net == p.net);
  CHECK(back.batch == p.batch);
  REQUIRE(back.layers.size() == 2);
  CHECK(back.layers[0].forward_ms == 1.5);
  CHECK(back.layers[1].backward_ms == 0);
}

TEST_CASE("profile: a throughput is spread over the layers by their flops, which add up to it") {
  const auto p = spread_over_flops(small_net(), 4, 200, "a guess");
  CHECK(total_ms(p.layers) == doctest::Approx(20));  // 4 images at 200 a second
  // (2 x conv1's + 3 x ip1's) multiply-adds, two flops each, of four images in 20 ms
  CHECK(p.gflop_s == doctest::Approx(4 * 2 * (2.0 * 5 * 27 * 36 + 3 * 7 * 180) / 0.02 / 1e9));
  CHECK(parse_profile(text_of(p), "again").gflop_s == doctest::Approx(p.gflop_s).epsilon(1e-5));
  REQUIRE(p.layers.size() == 2);
  const auto &conv = p.layers[0], &ip = p.layers[1];
  // conv1 is 5 x 27 weights at 36 places; the first layer has no diff to compute. ip1 is 7 x 180 weights.
  CHECK(conv.backward_ms == doctest::Approx(conv.forward_ms));
  CHECK(ip.backward_ms == doctest::Approx(2 * ip.forward_ms));
  CHECK(conv.forward_ms / ip.forward_ms == doctest::Approx(5.0 * 27 * 36 / (7 * 180)));
  CHECK(refusal([] { (void)spread_over_flops(small_net(), 4, 0, ""); }) ==
        "a throughput of 0 images/s gives no times: it has to be above 0.");
}

TEST_CASE("profile: those of the zoo fit their nets and add up to the throughput they stand for") {
  struct shipped {
    std::string folder;
    double images_per_s;
    shape sample;
    std::string card = "titan_x";
  };
  for (const auto& [folder, images_per_s, sample, card] :
       {shipped{"alexnet", 1000, {3, 227, 227}}, shipped{"googlenet", 257, {3, 224, 224}},
        shipped{"vgg19", 35.5, {3, 224, 224}}, shipped{"vgg19_22k", 34.2, {3, 224, 224}},
        shipped{"inception_v3", 43.2, {3, 299, 299}}, shipped{"resnet152", 40, {3, 224, 224}},
        shipped{"alexnet", 14238.8, {3, 227, 227}, "h100"},
        shipped{"googlenet", 5478.98, {3, 224, 224}, "h100"},
        shipped{"resnet50", 5101.43, {3, 224, 224}, "h100"}}) {
    INFO(folder);
    INFO(card);
    build_options options;
    options.state.phase = ::caffe::TRAIN;
    options.sources = test::images(sample);
    const auto n = build_net(read_net("models/zoo/" + folder + "/train_val.prototxt"), options);
    const auto p = read_profile("models/zoo/" + folder + "/" + card + ".profile");
    double sum = 0;
    for (const auto& t : times_on(p, n, p.batch)) sum += t.forward + t.backward;
    CHECK(sum == doctest::Approx(1e3 * static_cast<double>(p.batch) / images_per_s).epsilon(1e-4));
    CHECK(p.measured.find(card == "h100" ? "NVIDIA H100" : "images/s") != std::string::npos);
  }
}
