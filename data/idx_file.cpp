// Source   The format's description at yann.lecun.com/exdb/mnist: 0 0 type axes, big-endian
// extents, values.
#include "data/idx_file.hpp"

#include "data/fail.hpp"
#include "data/mapped_file.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <zlib.h>

namespace poseidon {
namespace {
constexpr std::uint32_t unsigned_bytes = 0x08;

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::string hex(std::uint32_t word) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", word);
  return text;
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/// Every member of the gzip file. A damaged or shortened one fails: zlib checks length and CRC.
std::vector<std::uint8_t> unpack(const std::filesystem::path& path,
                                 std::span<const std::uint8_t> packed) {
  std::vector<std::uint8_t> result;
  z_stream z{};
  if (inflateInit2(&z, 15 + 16) != Z_OK) fail(path, "zlib does not start");
  std::vector<std::uint8_t> piece(1 << 20);
  std::size_t given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (z.avail_in == 0 && given < packed.size()) {
      const auto n = std::min<std::size_t>(packed.size() - given, 1 << 30);
      z.next_in = const_cast<Bytef*>(packed.data() + given);
      z.avail_in = static_cast<uInt>(n);
      given += n;
    }
    z.next_out = piece.data();
    z.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&z, Z_NO_FLUSH);
    result.insert(result.end(), piece.data(), piece.data() + (piece.size() - z.avail_out));
    const bool more = z.avail_in > 0 || given < packed.size();
    if (status == Z_STREAM_END && more) status = inflateReset(&z);
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END)
    fail(path, std::string("damaged or truncated gzip file: ") +
                   (status == Z_BUF_ERROR ? "it ends" : "its data goes wrong") + " after " +
                   std::to_string(result.size()) + " unpacked bytes (" +
                   std::to_string(packed.size()) + " packed). Download or copy it again.");
  return result;
}
}  // namespace

namespace {
std::vector<std::uint8_t> unpacked(const std::filesystem::path& path) {
  const mapped_file file(path);
  const auto raw = file.bytes();
  return is_gzip(raw) ? unpack(path, raw) : std::vector<std::uint8_t>(raw.begin(), raw.end());
}

/// The caller has checked the first word.
idx_file parse(const std::filesystem::path& path, std::vector<std::uint8_t> content,
               std::size_t axes) {
  idx_file result;
  result.content = std::move(content);
  const std::span<const std::uint8_t> bytes = result.content;
  result.header_bytes = 4 + 4 * axes;
  if (bytes.size() < result.header_bytes)
    fail(path, "truncated IDX file: " + std::to_string(bytes.size()) +
                   " bytes, its header alone has " + std::to_string(result.header_bytes) + ".");
  std::uint64_t values = 1;
  bool too_big = false;
  for (std::size_t a = 0; a < axes; ++a) {
    const std::uint64_t extent = big_endian(bytes.subspan(4 + 4 * a));
    result.extents.push_back(static_cast<std::int64_t>(extent));
    too_big = too_big || __builtin_mul_overflow(values, extent, &values);
  }
  const auto have = bytes.size() - result.header_bytes;
  if (too_big || have != values)
    fail(path, std::string(too_big || have < values ? "truncated" : "too long") +
                   " IDX file: " + std::to_string(bytes.size()) + " bytes unpacked, its header (" +
                   std::to_string(result.extents[0]) + " records) promises " +
                   (too_big ? "more than 2^64" : std::to_string(values + result.header_bytes)) +
                   ". Download or copy it again.");
  return result;
}
}  // namespace

idx_file read_idx(const std::filesystem::path& path, std::size_t axes) {
  auto content = unpacked(path);
  const auto wanted = unsigned_bytes << 8 | static_cast<std::uint32_t>(axes);
  if (content.size() >= 4 && big_endian(content) != wanted)
    fail(path, "not an IDX file of " + std::string(axes == 1 ? "labels" : "images") +
                   ": it begins with " + hex(big_endian(content)) + ", expected " + hex(wanted) +
                   ". Were images and labels exchanged?");
  return parse(path, std::move(content), axes);
}

idx_file read_idx(const std::filesystem::path& path) {
  auto content = unpacked(path);
  const auto first = content.size() >= 4 ? big_endian(content) : 0;
  const auto axes = first & 0xff;
  if (first >> 8 != unsigned_bytes || axes == 0)
    fail(path, "not an IDX file of unsigned bytes: " +
                   (content.size() < 4 ? "it has " + std::to_string(content.size()) + " bytes"
                                       : "it begins with " + hex(first)) +
                   ", expected 0x000008 and the number of axes.");
  return parse(path, std::move(content), axes);
}

bool looks_like_idx(const std::filesystem::path& path) {
  const mapped_file file(path);
  const auto bytes = file.bytes();
  return is_gzip(bytes) || (bytes.size() >= 4 && big_endian(bytes) == (unsigned_bytes << 8 | 3));
}

}  // namespace poseidon
