#!/usr/bin/env bash
# findings/libtiff_tiles_not_in_kibibytes.sh - libtiff 4.5: without a map function, TIFFReadRGBAImage refuses uncompressed tiles that are no multiple of 1024 bytes.
#
# Seen with    Debian 12, libtiff6 and libtiff-dev 4.5.0-6+deb12u4, g++ 12.2.
# What is run  libtiff writes an RGB picture of 100 x 70 with tiles of 16 x 16 (768 bytes), 32 x 32 (3072) and 48 x 48 (6912), uncompressed, into memory. It
#              is read by TIFFReadRGBAImageOriented and by TIFFReadEncodedTile, with TIFFClientOpen's map function and without it.
# Behaviour    With it, both read all. Without it, TIFFReadRGBAImageOriented says "Invalid tile byte count for tile 0. Expected 768, got 1024" and returns 0 where a
#              tile is no multiple of 1024 bytes (the size of its buffer is rounded up to that, and compared as if it were the tile's);
#              TIFFReadEncodedTile reads every tile.
# So           whoever reads from memory gives TIFFClientOpen a map function.
# Needs        g++, apt's sources for Debian 12, some seconds. Nothing is installed in the system. Exit code: 0 as described; 1 it has changed; 77 cannot be run here.
set -euo pipefail
version=4.5.0-6+deb12u4
skip() {
  echo "cannot be run here: $*"
  exit 77
}
command -v g++ > /dev/null || skip "g++ is not installed"
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
cd "$folder"
needed=(libwebp7 liblerc4 libjbig0 libdeflate0 libjpeg62-turbo liblzma5 libzstd1 zlib1g)
apt-get download "libtiff6=$version" "libtiff-dev=$version" "${needed[@]}" > /dev/null 2>&1 || skip "libtiff $version is not to be had here"
for package in ./*.deb; do dpkg-deb --extract "$package" root; done
cat > tiles.cpp << 'CPP'
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <tiffio.h>

struct memory {
  std::vector<char> bytes;
  std::size_t at = 0;
};

memory& of(thandle_t h) { return *static_cast<memory*>(h); }

tsize_t get(thandle_t h, tdata_t to, tsize_t n) {
  auto& m = of(h);
  const auto left = static_cast<tsize_t>(m.bytes.size() - std::min(m.at, m.bytes.size()));
  n = std::min(n, left);
  std::memcpy(to, m.bytes.data() + m.at, n);
  m.at += n;
  return n;
}
tsize_t put(thandle_t h, tdata_t from, tsize_t n) {
  auto& m = of(h);
  if (m.at + n > m.bytes.size()) m.bytes.resize(m.at + n);
  std::memcpy(m.bytes.data() + m.at, from, n);
  m.at += n;
  return n;
}
toff_t seek(thandle_t h, toff_t to, int from) {
  auto& m = of(h);
  return m.at = to + (from == SEEK_CUR ? m.at : from == SEEK_END ? m.bytes.size() : 0);
}
int done(thandle_t) { return 0; }
toff_t size(thandle_t h) { return of(h).bytes.size(); }
int map(thandle_t h, tdata_t* at, toff_t* n) {
  *at = of(h).bytes.data(), *n = of(h).bytes.size();
  return 1;
}
void unmap(thandle_t, tdata_t, toff_t) {}

constexpr int width = 100, height = 70;
std::string said;

int main() {
  TIFFSetErrorHandler([](const char*, const char* format, va_list values) {
    char text[200];
    std::vsnprintf(text, sizeof text, format, values);
    said += std::string(" ") + text;
  });
  for (const int side : {16, 32, 48}) {
    memory m;
    auto* out = TIFFClientOpen("made", "w", &m, get, put, seek, done, size, nullptr, nullptr);
    TIFFSetField(out, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(out, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(out, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(out, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(out, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(out, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    TIFFSetField(out, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(out, TIFFTAG_TILEWIDTH, side);
    TIFFSetField(out, TIFFTAG_TILELENGTH, side);
    std::vector<unsigned char> tile(side * side * 3, 77);
    for (unsigned i = 0; i < TIFFNumberOfTiles(out); ++i) TIFFWriteEncodedTile(out, i, tile.data(), tile.size());
    TIFFClose(out);
    for (const bool maps : {true, false}) {
      m.at = 0, said.clear();
      auto* in = TIFFClientOpen("made", "r", &m, get, put, seek, done, size, maps ? map : nullptr, maps ? unmap : nullptr);
      std::vector<uint32_t> pixels(width * height);
      const int rgba = TIFFReadRGBAImageOriented(in, width, height, pixels.data(), ORIENTATION_TOPLEFT, 1);
      int right = 0, tiles = 0;
      for (const auto p : pixels) right += p == 0xff4d4d4d;
      for (unsigned i = 0; i < TIFFNumberOfTiles(in); ++i)
        tiles += TIFFReadEncodedTile(in, i, tile.data(), tile.size()) == static_cast<tsize_t>(tile.size());
      std::printf("%d bytes, %s: image %d, %d pixels; %d of %u tiles%s\n", side * side * 3, maps ? "map" : "no map", rgba, right, tiles,
                  TIFFNumberOfTiles(in), said.c_str());
      TIFFClose(in);
    }
  }
}
CPP
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$folder/root/lib/x86_64-linux-gnu
g++ -std=c++17 -w -I root/usr/include -I root/usr/include/x86_64-linux-gnu tiles.cpp -o tiles "$libraries/libtiff.so.6" -Wl,--allow-shlib-undefined ||
  skip "g++ does not compile against it"
seen=$(timeout 20 ./tiles)
expected="768 bytes, map: image 1, 7000 pixels; 35 of 35 tiles
768 bytes, no map: image 0, 0 pixels; 35 of 35 tiles Invalid tile byte count for tile 0. Expected 768, got 1024
3072 bytes, map: image 1, 7000 pixels; 12 of 12 tiles
3072 bytes, no map: image 1, 7000 pixels; 12 of 12 tiles
6912 bytes, map: image 1, 7000 pixels; 6 of 6 tiles
6912 bytes, no map: image 0, 0 pixels; 6 of 6 tiles Invalid tile byte count for tile 0. Expected 6912, got 7168"
echo "libtiff $version:"
echo "$seen"
[[ $seen == "$expected" ]] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
