#include "data/transform.hpp"

#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace poseidon;
using namespace poseidon::test;

namespace {
::caffe::TransformationParameter crop(std::uint32_t size) {
  ::caffe::TransformationParameter p;
  p.set_crop_size(size);
  return p;
}

std::vector<float> apply(const image_transform& t, std::uint64_t sample,
                         const std::vector<std::uint8_t>& pixels) {
  std::vector<float> out(static_cast<std::size_t>(count(t.output_shape())));
  const auto& s = t.image_shape();
  t.apply(sample, {pixels, {}, 0, {s[0], s[1], s[2]}}, out);
  return out;
}

/// The corner and the mirror that make `out` of an image whose pixels tell their places.
struct place {
  int top, left;
  bool mirrored;
  auto operator<=>(const place&) const = default;
};
place place_of(const std::vector<float>& out, int columns) {
  const int first = static_cast<int>(out[0]), second = static_cast<int>(out[1]);
  const bool mirrored = second < first;
  const int size = 4;  // crop of these tests
  return {first / columns, first % columns - (mirrored ? size - 1 : 0), mirrored};
}

std::vector<std::uint8_t> numbered(std::size_t n) {
  std::vector<std::uint8_t> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<std::uint8_t>(i);
  return result;
}
}  // namespace

TEST_CASE(
    "transform: every value is (in - mean) * scale at the uncropped place, against plain loops") {
  const shape s{3, 7, 9};
  mean_image mean{s, {}};
  for (int i = 0; i < 189; ++i) mean.values.push_back(0.37f * static_cast<float>(i));
  auto spec = crop(4);
  spec.set_scale(0.25f);
  spec.set_mean_file("mean.binaryproto");
  const image_transform t(spec, mean, s, ::caffe::TEST, {});
  CHECK(t.output_shape() == shape{3, 4, 4});
  const auto pixels = made_image(5, 189);
  const auto out = apply(t, 0, pixels);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 4; ++x) {
        const auto at = static_cast<std::size_t>((c * 7 + y + 1) * 9 + x + 2);  // (7-4)/2, (9-4)/2
        CHECK(out[static_cast<std::size_t>((c * 4 + y) * 4 + x)] ==
              (static_cast<float>(pixels[at]) - mean.values[at]) * 0.25f);
      }
}

TEST_CASE(
    "transform: one mean_value is for all channels, several are one each; floats are taken as they "
    "are") {
  const shape s{2, 1, 2};
  ::caffe::TransformationParameter spec;
  spec.add_mean_value(10);
  CHECK(apply({spec, {}, s, ::caffe::TRAIN, {}}, 0, {11, 12, 13, 14}) ==
        std::vector<float>{1, 2, 3, 4});
  spec.add_mean_value(13.5f);
  spec.set_scale(2);
  CHECK(apply({spec, {}, s, ::caffe::TRAIN, {}}, 0, {11, 12, 13, 14}) ==
        std::vector<float>{2, 4, -1, 1});
  const std::vector<float> floats{10.5f, 10, 13.5f, 0};
  std::vector<float> out(4);
  image_transform(spec, {}, s, ::caffe::TRAIN, {}).apply(0, {{}, floats, 0, {2, 1, 2}}, out);
  CHECK(out == std::vector<float>{1, 0, 0, -27});
}

TEST_CASE(
    "transform: TRAIN crops reach every corner and both mirrors, TEST crops only the centre") {
  auto spec = crop(4);
  spec.set_mirror(true);
  const shape s{1, 6, 7};
  const auto pixels = numbered(42);
  std::set<place> train, test;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    train.insert(place_of(apply({spec, {}, s, ::caffe::TRAIN, {1, 0}}, n, pixels), 7));
    test.insert(place_of(apply({spec, {}, s, ::caffe::TEST, {1, 0}}, n, pixels), 7));
  }
  // (6-4+1) x (7-4+1) corners, mirrored or not: all, and no others
  CHECK(train.size() == 3 * 4 * 2);
  CHECK(train.begin()->top == 0);
  CHECK(train.rbegin()->top == 2);
  CHECK(test == std::set<place>{{1, 1, false}, {1, 1, true}});  // Caffe mirrors in TEST as well
}

TEST_CASE("transform: a mirrored image with a mean subtracts the mean at the pixel's own place") {
  const shape s{1, 1, 4};
  ::caffe::TransformationParameter spec;
  spec.set_mirror(true);
  spec.set_mean_file("m");
  const mean_image mean{s, {1, 2, 3, 4}};
  bool seen[2] = {false, false};
  for (std::uint64_t n = 0; n < 40; ++n) {
    const auto out = apply({spec, mean, s, ::caffe::TRAIN, {}}, n, {11, 22, 33, 44});
    const bool mirrored = out[0] == 40;
    seen[mirrored] = true;
    CHECK(out ==
          (mirrored ? std::vector<float>{40, 30, 20, 10} : std::vector<float>{10, 20, 30, 40}));
  }
  CHECK((seen[0] && seen[1]));
}

TEST_CASE("transform: randomness depends on seed, layer and sample, and on nothing else") {
  auto spec = crop(4);
  spec.set_mirror(true);
  const shape s{1, 12, 12};
  const auto pixels = numbered(144);
  const image_transform a(spec, {}, s, ::caffe::TRAIN, {1, 0}),
      again(spec, {}, s, ::caffe::TRAIN, {1, 0}), seed(spec, {}, s, ::caffe::TRAIN, {2, 0}),
      layer(spec, {}, s, ::caffe::TRAIN, {1, 1});
  int other_seed = 0, other_layer = 0, other_epoch = 0;
  for (std::uint64_t n = 100; n-- > 0;) {
    CHECK(apply(a, n, pixels) == apply(again, n, pixels));
    other_seed += apply(a, n, pixels) != apply(seed, n, pixels);
    other_layer += apply(a, n, pixels) != apply(layer, n, pixels);
    other_epoch += apply(a, n, pixels) != apply(a, n + 60000, pixels);
  }
  CHECK(other_seed > 90);
  CHECK(other_layer > 90);
  CHECK(other_epoch > 90);
}

TEST_CASE("transform: what does not fit the images is refused with both values") {
  const shape s{3, 24, 20};
  const auto refused = [&](const ::caffe::TransformationParameter& spec,
                           std::optional<mean_image> mean) {
    return complaint([&] { image_transform(spec, std::move(mean), s, ::caffe::TRAIN, {}); });
  };
  CHECK(refused(crop(20), {}) == "");
  CHECK(refused(crop(21), {}) ==
        "crop_size 21 is larger than the images (3x24x20). Use at most 20.");
  ::caffe::TransformationParameter spec;
  spec.add_mean_value(1);
  spec.add_mean_value(2);
  CHECK(refused(spec, {}) ==
        "2 mean_value for images of 3 channels. Give one, or one for each channel.");
  spec.set_mean_file("m");
  CHECK(refused(spec, {}).find("both given") != std::string::npos);
  spec.clear_mean_value();
  CHECK(refused(spec, mean_image{{1, 24, 20}, {}}).find("is 1x24x20, the images are 3x24x20") !=
        std::string::npos);
}

TEST_CASE("transform: a crop takes images of any size that it fits in, but a mean image does not") {
  const image_transform t(crop(2), {}, {1, 4, 4}, ::caffe::TEST, {});
  std::vector<float> out(4);
  const auto pixels = numbered(24);
  t.apply(0, {pixels, {}, 0, {1, 6, 4}}, out);
  CHECK(out == std::vector<float>{9, 10, 13, 14});  // rows from (6-2)/2, columns from (4-2)/2
  const auto refused = [&](const image_transform& by, std::array<std::int64_t, 3> extents) {
    const auto n = static_cast<std::size_t>(extents[0] * extents[1] * extents[2]);
    return complaint([&] { by.apply(0, {numbered(n), {}, 0, extents}, out); });
  };
  CHECK(refused(t, {1, 1, 24}) == "is 1x1x24, too small for crop_size 2");
  CHECK(refused(t, {2, 4, 4}) ==
        "is 2x4x4, the first record is 1x4x4; all records of a source have one shape");
  auto spec = crop(2);
  spec.set_mean_file("m");
  const image_transform with_mean(spec, mean_image{{1, 4, 4}, std::vector<float>(16)}, {1, 4, 4},
                                  ::caffe::TEST, {});
  CHECK(refused(with_mean, {1, 6, 4}) ==
        "is 1x6x4, the first record is 1x4x4; all records of a source have one shape");
}
