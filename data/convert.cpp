#include "data/convert.hpp"

#include "data/image_store.hpp"
#include "data/leveldb_writer.hpp"
#include "data/lmdb_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "caffe.pb.h"

namespace poseidon {
namespace {

std::unique_ptr<record_writer> writer_of(const image_store& images,
                                         const std::filesystem::path& folder,
                                         const convert_options& options) {
  if (options.kind == database_kind::leveldb)
    return std::make_unique<leveldb_writer>(folder, options.replace);
  // float_data at worst; and room for a list of pictures of all sizes, which is only addresses.
  constexpr std::uint64_t at_least = std::uint64_t{1} << 38;
  const auto record_bytes = static_cast<std::uint64_t>(count(images.image_shape())) * 5 + 64;
  return std::make_unique<lmdb_writer>(
      folder, images.size(), std::max(at_least, images.size() * record_bytes), options.replace);
}

picture picture_of(const image& one) {
  picture p{one.extents[0], one.extents[1], one.extents[2], {}};
  if (one.floats.size() > 0 || (p.channels != 1 && p.channels != 3))
    throw std::runtime_error("is " + to_string(shape_of(one)) +
                             "; a picture file holds 1 or 3 channels of bytes");
  const auto pixels = static_cast<std::size_t>(p.height * p.width);
  const auto channels = static_cast<std::size_t>(p.channels);
  p.pixels.resize(one.bytes.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) p.pixels[i * channels + c] = one.bytes[c * pixels + i];
  return p;
}

::caffe::Datum datum_of(const image& one, datum_encoding encoding) {
  ::caffe::Datum d;
  d.set_channels(static_cast<std::int32_t>(one.extents[0]));
  d.set_height(static_cast<std::int32_t>(one.extents[1]));
  d.set_width(static_cast<std::int32_t>(one.extents[2]));
  d.set_label(one.label);
  if (encoding != datum_encoding::none) {
    const auto p = picture_of(one);
    const auto file = encoding == datum_encoding::png ? encode_png(p) : encode_jpeg(p);
    d.set_data(file.data(), file.size());
    d.set_encoded(true);
  } else if (one.floats.empty()) {
    d.set_data(one.bytes.data(), one.bytes.size());
  } else {
    d.mutable_float_data()->Assign(one.floats.begin(), one.floats.end());
  }
  return d;
}

std::string key_of(const image_store& images, std::uint64_t n) {
  char place[24];
  std::snprintf(place, sizeof place, "%08llu", static_cast<unsigned long long>(n));
  const auto name = images.name(n);
  constexpr std::size_t longest = 500;  // LMDB takes 511 bytes
  return name.empty() ? place : (place + ("_" + name)).substr(0, longest);
}

}  // namespace

void convert(const image_store& images, const std::filesystem::path& folder,
             const convert_options& options) {
  const auto writer = writer_of(images, folder, options);
  image_scratch scratch;
  std::string record;
  for (std::uint64_t n = 0; n < images.size(); ++n) {
    const auto one = images.get(n, scratch);
    try {
      datum_of(one, options.encoding).SerializeToString(&record);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(images.where(n) + " " + e.what() + ".");
    }
    writer->put(key_of(images, n), record);
    if (options.progress && (n + 1) % 1000 == 0) options.progress(n + 1);
  }
  writer->finish();
}

}  // namespace poseidon
