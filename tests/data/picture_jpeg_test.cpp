// JPEGs of every sampling of colours that libjpeg can write, and JPEGs whose end is missing.
#include "data/picture.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

// It uses FILE and does not include its header.
#include <jpeglib.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {

using file_bytes = std::vector<std::uint8_t>;

struct factors {
  int across, down;
};

struct jpeg_kind {
  J_COLOR_SPACE given = JCS_RGB, stored = JCS_YCbCr;
  int values = 3;
  std::vector<factors> sampling{};
  bool progressive = false, arithmetic = false;
  bool scan_for_each = false;  ///< of each colour
  [[nodiscard]] std::string name() const {
    std::string text = std::to_string(values) + " values, colours " + std::to_string(stored);
    for (const auto& f : sampling)
      text += ", " + std::to_string(f.across) + "x" + std::to_string(f.down);
    return text + (progressive ? ", progressive" : "");
  }
};

constexpr int height = 35, width = 37;

/// So smooth that hardly anything is lost where colours are sampled coarsely.
std::uint8_t smooth(int y, int x, int value) {
  return static_cast<std::uint8_t>(60 + y + (value == 1 ? 2 * x : x) + 20 * value);
}

file_bytes write_jpeg(const jpeg_kind& kind) {
  jpeg_compress_struct to{};
  jpeg_error_mgr errors{};
  to.err = jpeg_std_error(&errors);
  jpeg_create_compress(&to);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &bytes, &size);
  to.image_width = width;
  to.image_height = height;
  to.input_components = kind.values;
  to.in_color_space = kind.given;
  jpeg_set_defaults(&to);
  jpeg_set_colorspace(&to, kind.stored);
  jpeg_set_quality(&to, 98, TRUE);
  for (std::size_t c = 0; c < kind.sampling.size(); ++c) {
    to.comp_info[c].h_samp_factor = kind.sampling[c].across;
    to.comp_info[c].v_samp_factor = kind.sampling[c].down;
  }
  if (kind.progressive) jpeg_simple_progression(&to);
  std::array<jpeg_scan_info, 3> scans{};
  if (kind.scan_for_each) {
    for (int c = 0; c < 3; ++c) scans[static_cast<std::size_t>(c)] = {1, {c}, 0, 63, 0, 0};
    to.scan_info = scans.data();
    to.num_scans = 3;
  }
  to.arith_code = kind.arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&to, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(width * kind.values));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (int v = 0; v < kind.values; ++v)
        row[static_cast<std::size_t>(x * kind.values + v)] = smooth(y, x, v);
    JSAMPROW begin = row.data();
    jpeg_write_scanlines(&to, &begin, 1);
  }
  jpeg_finish_compress(&to);
  const std::unique_ptr<unsigned char, void (*)(void*)> freed(bytes, std::free);
  jpeg_destroy_compress(&to);
  return {bytes, bytes + size};
}

/// The blocks that libjpeg writes together have room for ten; each factor divides the largest one of its direction.
bool can_be_written(const std::vector<factors>& sampling) {
  int blocks = 0, across = 1, down = 1;
  for (const auto& f : sampling) {
    blocks += f.across * f.down;
    across = std::max(across, f.across);
    down = std::max(down, f.down);
  }
  return blocks <= 10 && std::all_of(sampling.begin(), sampling.end(), [&](const factors& f) {
           return across % f.across == 0 && down % f.down == 0;
         });
}

/// By how much the worst value differs from what was written: blue, green, red of a smooth picture.
int worst_of(const picture& p, bool inks) {
  int worst = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const int written = smooth(y, x, 2 - c), black = smooth(y, x, 3);
        const int expected = inks ? black - ((255 - written) * black >> 8) : written;
        worst = std::max(
            worst,
            std::abs(expected - p.pixels[static_cast<std::size_t>((y * width + x) * 3 + c)]));
      }
  return worst;
}

void check_reads(const jpeg_kind& kind) {
  CAPTURE(kind.name());
  const auto file = write_jpeg(kind);
  picture colour;
  CHECK(complaint([&] { colour = decode_picture(file, picture_colour::colour); }) == "");
  REQUIRE(colour.pixels.size() == std::size_t{height * width * 3});
  CHECK(worst_of(colour, kind.values == 4) <= 12);
  CHECK(colour.warning.empty());
  picture gray;
  CHECK(complaint([&] { gray = decode_picture(file, picture_colour::gray); }) == "");
  CHECK(gray.pixels.size() == std::size_t{height * width});
  CHECK(decode_picture(file, picture_colour::as_stored).channels == 3);
}

std::string refused(const file_bytes& file) {
  return complaint([&] { (void)decode_picture(file, picture_colour::colour); });
}

file_bytes without_end(const file_bytes& file) {
  return {file.begin(), file.end() - 2};
}

file_bytes with(file_bytes file, std::initializer_list<int> tail) {
  for (const int byte : tail) file.push_back(static_cast<std::uint8_t>(byte));
  return file;
}

}  // namespace

TEST_CASE("jpeg: every sampling of colours that can be written is read, whatever its name") {
  int kinds = 0;
  const auto try_all = [&](const std::vector<factors>& sampling) {
    if (!can_be_written(sampling)) return;
    for (const bool progressive : {false, true}) {
      jpeg_kind kind;
      kind.sampling = sampling;
      kind.progressive = progressive;
      check_reads(kind);
      ++kinds;
    }
  };
  for (int luma_across = 1; luma_across <= 4; ++luma_across)
    for (int luma_down = 1; luma_down <= 4; ++luma_down)
      for (int across = 1; across <= 4; ++across)
        for (int down = 1; down <= 4; ++down)
          for (const auto& red : {factors{across, down}, factors{1, 1}, factors{down, across}})
            try_all({{luma_across, luma_down}, {across, down}, red});
  CHECK(kinds > 150);
}

TEST_CASE("jpeg: inks and red, green, blue themselves may be sampled coarsely too") {
  int kinds = 0;
  for (int across = 1; across <= 4; ++across)
    for (int down = 1; down <= 4; ++down)
      for (const bool progressive : {false, true}) {
        const factors fine{across, down}, coarse{1, 1};
        for (const auto& kind :
             {jpeg_kind{JCS_CMYK, JCS_CMYK, 4, {fine, coarse, coarse, fine}, progressive},
              jpeg_kind{JCS_CMYK, JCS_YCCK, 4, {fine, coarse, coarse, fine}, progressive},
              jpeg_kind{JCS_CMYK, JCS_YCCK, 4, {fine, coarse, coarse, coarse}, progressive},
              jpeg_kind{JCS_RGB, JCS_RGB, 3, {fine, coarse, coarse}, progressive}}) {
          if (!can_be_written(kind.sampling)) continue;
          check_reads(kind);
          ++kinds;
        }
      }
  CHECK(kinds > 50);
}

TEST_CASE("jpeg: a missing end marker is a warning where no pixel is missing, and else a refusal") {
  for (const auto& [name, kind] :
       {std::pair{"sequential", jpeg_kind{}},
        {"progressive", jpeg_kind{JCS_RGB, JCS_YCbCr, 3, {}, true}},
        {"a scan for each colour", jpeg_kind{JCS_RGB, JCS_YCbCr, 3, {}, false, false, true}},
        {"gray", jpeg_kind{JCS_GRAYSCALE, JCS_GRAYSCALE, 1}}}) {
    CAPTURE(name);
    const auto whole = write_jpeg(kind);
    const auto expected = decode_picture(whole, picture_colour::colour);
    CHECK(expected.warning.empty());
    const auto endless = without_end(whole);
    for (const auto& file : {endless, with(endless, {0xff}), with(endless, {'j', 'u', 'n', 'k'}),
                             with(endless, {0, 0, 0, 0, 0, 0})}) {
      picture read;
      CHECK(complaint([&] { read = decode_picture(file, picture_colour::colour); }) == "");
      CHECK(read.pixels == expected.pixels);
      CHECK(read.warning ==
            "is a JPEG without its end marker (EOI), which may have been cut short; none of its "
            "pixels is missing, so it is read");
    }
    for (std::size_t less = 1; less < 200; ++less) {
      const file_bytes cut(endless.begin(), endless.end() - static_cast<long>(less));
      CHECK_MESSAGE(refused(cut) == "is a damaged JPEG: it is cut short", less);
    }
  }
}

TEST_CASE("jpeg: a file that ends between two scans lacks pixels") {
  for (const auto& kind : {jpeg_kind{JCS_RGB, JCS_YCbCr, 3, {}, true},
                           jpeg_kind{JCS_RGB, JCS_YCbCr, 3, {}, false, false, true}}) {
    const auto file = write_jpeg(kind);
    int scans = 0;
    for (std::size_t at = 2; at + 1 < file.size(); ++at) {
      if (file[at] != 0xff || file[at + 1] != 0xda) continue;
      if (++scans == 1) continue;
      CHECK(refused({file.begin(), file.begin() + static_cast<long>(at)}) ==
            "is a damaged JPEG: it is cut short");
    }
    CHECK(scans >= 3);
  }
}

TEST_CASE("jpeg: arithmetic coding is read, and refused without an end, for it does not say") {
  jpeg_kind kind;
  kind.arithmetic = true;
  check_reads(kind);
  CHECK(refused(without_end(write_jpeg(kind))) == "is a damaged JPEG: it is cut short");
}

TEST_CASE("jpeg: a kind that is not read is not called damaged") {
  const auto two = write_jpeg({JCS_UNKNOWN, JCS_UNKNOWN, 2});
  CHECK(refused(two).find("is a JPEG of a kind that is not read: ") == 0);
  auto twelve_bits = write_jpeg({});
  const std::array<std::uint8_t, 2> frame{0xff, 0xc0};
  auto at = std::search(twelve_bits.begin(), twelve_bits.end(), frame.begin(), frame.end());
  REQUIRE(at != twelve_bits.end());
  at[4] = 12;
  CHECK(refused(twelve_bits) == "is a JPEG of 12 bits per value; 8 are read");
}

TEST_CASE("jpeg: more scans than any picture needs are refused") {
  auto file = write_jpeg({JCS_RGB, JCS_YCbCr, 3, {}, true});
  const std::array<std::uint8_t, 2> scan{0xff, 0xda};
  const auto last = std::find_end(file.begin(), file.end(), scan.begin(), scan.end());
  const file_bytes again(last, file.end() - 2);
  file.erase(file.end() - 2, file.end());
  for (int n = 0; n < 600; ++n) file.insert(file.end(), again.begin(), again.end());
  CHECK(refused(with(file, {0xff, 0xd9})) == "is a damaged JPEG: it has more than 500 scans");
}
