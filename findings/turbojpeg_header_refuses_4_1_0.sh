#!/usr/bin/env bash
# findings/turbojpeg_header_refuses_4_1_0.sh - libjpeg-turbo 2.1: tjDecompressHeader3 fails for a JPEG with 4:1:0 chroma, which tjDecompress2 decodes afterwards.
#
# Seen with    Debian 12, libturbojpeg0 and libjpeg62-turbo 1:2.1.5-2, g++ 12.2.
# What is run  libjpeg writes a picture of 64 x 32 with the sampling factors 4x2 for Y, 1x1 for Cb and Cr (4:1:0), which the standard of JPEG allows and
#              TurboJPEG has no name for. On it: tjDecompressHeader3, then tjDecompress2 with the same handle; and with 2x2 (4:2:0) for comparison.
# Behaviour    4:2:0: both succeed. 4:1:0: the header's call returns -1 ("Could not determine subsampling type for JPEG image"), though it has set
#              width and height, which are right; tjDecompress2 returns 0, and all pixels are right.
# So           whoever asks for the size first takes a valid file for a damaged one; libjpeg's own interface has no such names.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=1:2.1.5-2
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
apt-get download "libturbojpeg0=$version" "libturbojpeg0-dev=$version" "libjpeg62-turbo=$version" "libjpeg62-turbo-dev=$version" > /dev/null 2>&1 ||
  skip "libjpeg-turbo $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > header.cpp << 'CPP'
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>
#include <turbojpeg.h>

constexpr int width = 64, height = 32, red = 200, green = 60, blue = 30;

int main() {
  for (const auto [h, v] : {std::pair{2, 2}, std::pair{4, 2}}) {
    jpeg_compress_struct c;
    jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&c, &bytes, &size);
    c.image_width = width, c.image_height = height, c.input_components = 3, c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    c.comp_info[0].h_samp_factor = h, c.comp_info[0].v_samp_factor = v;
    jpeg_start_compress(&c, TRUE);
    std::vector<unsigned char> row;
    for (int x = 0; x < width; ++x) row.insert(row.end(), {red, green, blue});
    for (JSAMPROW rows[] = {row.data()}; c.next_scanline < c.image_height;) jpeg_write_scanlines(&c, rows, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);

    const auto reader = tjInitDecompress();
    int w = -1, t = -1, sampling = -1, space = -1;
    const int header = tjDecompressHeader3(reader, bytes, size, &w, &t, &sampling, &space);
    std::printf("Y %dx%d: header %d %dx%d%s%s\n", h, v, header, w, t, header ? " " : "", header ? tjGetErrorStr2(reader) : "");
    std::vector<unsigned char> pixels(width * height * 3);
    const int decoded = tjDecompress2(reader, bytes, size, pixels.data(), width, 0, height, TJPF_RGB, 0);
    int wrong = 0;
    for (std::size_t i = 0; i < pixels.size(); i += 3)
      wrong += std::abs(pixels[i] - red) > 4 || std::abs(pixels[i + 1] - green) > 4 || std::abs(pixels[i + 2] - blue) > 4;
    std::printf("Y %dx%d: pixels %d, %d wrong\n", h, v, decoded, wrong);
    tjDestroy(reader);
    std::free(bytes);
  }
}
CPP
libraries=$folder/$(dirname "$(find root -name 'libturbojpeg.so.*' | head -n 1)")
g++ -std=c++17 -w -I root/usr/include -I root/usr/include/x86_64-linux-gnu header.cpp -o header "$libraries"/libturbojpeg.so.0 "$libraries"/libjpeg.so.62 \
  -Wl,-rpath,"$libraries" || skip "g++ does not compile against it"
seen=$(timeout 20 ./header)
echo "libjpeg-turbo $version:"
echo "$seen"
expected="Y 2x2: header 0 64x32
Y 2x2: pixels 0, 0 wrong
Y 4x2: header -1 64x32 tjDecompressHeader3(): Could not determine subsampling type for JPEG image
Y 4x2: pixels 0, 0 wrong"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
