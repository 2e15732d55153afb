#include "tests/cpu/finite_difference.hpp"
#include "tests/reference/image_layers.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

hand_net convolved(const std::vector<int>& channels) {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2, 3, 4, 3});
  for (std::size_t i = 0; i < channels.size(); ++i) {
    h.layer("name: 'c" + std::to_string(i) + "' type: 'Convolution' bottom: 'x' top: 'y" +
                std::to_string(i) + "' convolution_param { num_output: " +
                std::to_string(channels[i]) + " kernel_size: 1 }",
            {{2, channels[i], 4, 3}}, {{channels[i], 3, 1, 1}, {channels[i]}});
  }
  return h;
}

/// A layer behind a convolution, and alone on the same values: does the layout matter?
void check_layouts_agree(const std::string& layer, int channels,
                         const std::vector<shape>& parameters) {
  CAPTURE(layer);
  CAPTURE(channels);
  hand_net h = convolved({channels});
  const std::string text = "name: 'l' bottom: 'y0' top: 'z' " + layer;
  h.layer(text, {{2, channels, 4, 3}}, parameters);
  running_net r(h.n, {1, true});
  r.set("x", noise(72, 1));
  r.forward();
  const auto dz = noise(static_cast<std::size_t>(24 * channels), 7);
  r.set_diff("z", dz);
  r.backward();

  hand_net alone;
  alone.all_diffs = true;
  alone.input("y0", {2, channels, 4, 3});
  alone.layer(text, {{2, channels, 4, 3}}, parameters);
  running_net a(alone.n, {1, true});
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    a.parameters[p] = r.parameters[p + 2];
    a.holders[p]->values = a.parameters[p].data();
  }
  a.set("y0", r.data("y0"));
  a.forward();
  a.set_diff("z", dz);
  a.backward();
  CHECK(deviation(r.data("z"), a.data("z")) < 1e-6);
  CHECK(deviation(r.diff("y0"), a.diff("y0")) < 1e-6);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    CHECK(deviation(r.gradient(p + 2), a.gradient(p)) < 1e-5);
}

}  // namespace

TEST_CASE("layouts: layers of channels give the same in blocked and plain layouts") {
  for (const int channels : {4, 8, 21, 32}) {
    check_layouts_agree("type: 'Scale' scale_param { bias_term: true }", channels,
                        {{channels}, {channels}});
    check_layouts_agree("type: 'Scale' scale_param { axis: 2 num_axes: 1 }", channels, {{4}});
    check_layouts_agree("type: 'Bias'", channels, {{channels}});
    check_layouts_agree("type: 'PReLU'", channels, {{channels}});
    check_layouts_agree("type: 'PReLU' prelu_param { channel_shared: true }", channels, {{}});
  }
}

TEST_CASE("layouts: Concat and Slice move whole blocks, and cut ones through the plain layout") {
  for (const auto& channels :
       std::vector<std::vector<int>>{{16, 32, 16}, {8, 24, 16}, {16, 20, 4}, {3, 5, 16}}) {
    const int all = channels[0] + channels[1] + channels[2];
    CAPTURE(all);
    hand_net h = convolved(channels);
    h.layer("name: 'cat' type: 'Concat' bottom: 'y0' bottom: 'y1' bottom: 'y2' top: 'z'",
            {{2, all, 4, 3}});
    h.layer("name: 'cut' type: 'Slice' bottom: 'z' top: 'a' top: 'b' slice_param { slice_point: " +
                std::to_string(channels[0]) + " }",
            {{2, channels[0], 4, 3}, {2, all - channels[0], 4, 3}});
    running_net r(h.n, {1, true});
    r.set("x", noise(72, 1));
    r.forward();
    CHECK(r.data("a") == r.data("y0"));
    const auto b = r.data("b"), y1 = r.data("y1"), y2 = r.data("y2");
    const auto per_image = static_cast<std::size_t>(12 * (channels[1] + channels[2]));
    const auto of_y1 = static_cast<std::size_t>(12 * channels[1]);
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t i = 0; i < per_image; ++i) {
        const float wanted =
            i < of_y1 ? y1[n * of_y1 + i] : y2[n * (per_image - of_y1) + i - of_y1];
        REQUIRE(b[n * per_image + i] == wanted);
      }
    }
    const auto da = noise(r.size(r.index("a")), 3), db = noise(r.size(r.index("b")), 4);
    r.set_diff("a", da);
    r.set_diff("b", db);
    r.backward();
    CHECK(r.diff("y0") == da);
    const auto d1 = r.diff("y1"), d2 = r.diff("y2");
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t i = 0; i < per_image; ++i) {
        const float got = i < of_y1 ? d1[n * of_y1 + i] : d2[n * (per_image - of_y1) + i - of_y1];
        REQUIRE(got == db[n * per_image + i]);
      }
    }
  }
}
