#include "data/convert.hpp"

#include "data/image_store.hpp"
#include "models/caffe.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace poseidon {
namespace {

std::unique_ptr<record_writer> writer_of(const image_store& images,
                                         const std::filesystem::path& folder,
                                         const convert_options& options) {
  // float_data at worst; and room for a list of pictures of all sizes, which is only addresses.
  constexpr std::uint64_t at_least = std::uint64_t{1} << 38;
  const auto record_bytes = static_cast<std::uint64_t>(count(images.image_shape())) * 5 + 64;
  return make_database(options.kind, folder,
                       {images.size(), std::max(at_least, images.size() * record_bytes)},
                       options.replace);
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

std::vector<std::uint8_t> encoded(const image& one, datum_encoding encoding) {
  const auto stored = kind_of_picture(one.file);
  if (encoding == datum_encoding::as_the_file)
    encoding = stored == picture_kind::jpeg ? datum_encoding::jpeg : datum_encoding::png;
  const bool png = encoding == datum_encoding::png;
  if (one.as_in_file && stored == (png ? picture_kind::png : picture_kind::jpeg))
    return {one.file.begin(), one.file.end()};
  const auto p = picture_of(one);
  return png ? encode_png(p) : encode_jpeg(p);
}

::caffe::Datum datum_of(const image& one, datum_encoding encoding) {
  ::caffe::Datum d;
  d.set_channels(static_cast<std::int32_t>(one.extents[0]));
  d.set_height(static_cast<std::int32_t>(one.extents[1]));
  d.set_width(static_cast<std::int32_t>(one.extents[2]));
  d.set_label(one.label);
  if (encoding != datum_encoding::none) {
    const auto file = encoded(one, encoding);
    d.set_data(file.data(), file.size());
    d.set_encoded(true);
  } else if (one.floats.empty()) {
    d.set_data(one.bytes.data(), one.bytes.size());
    if (!one.file.empty()) d.set_encoded(false);  // Caffe says so of pixels from picture files
  } else {
    d.mutable_float_data()->Assign(one.floats.begin(), one.floats.end());
  }
  return d;
}

std::string key_of(const image_store& images, std::uint64_t n, int digits) {
  char place[24];
  std::snprintf(place, sizeof place, "%0*llu", digits, static_cast<unsigned long long>(n));
  const auto name = images.name(n);
  constexpr std::size_t longest = 500;  // LMDB takes 511 bytes
  return name.empty() ? place : (place + ("_" + name)).substr(0, longest);
}

/// The n-th image; nothing if it cannot be read and options.skipped has been told so.
std::optional<image> read(const image_store& images, std::uint64_t n,
                          const convert_options& options, image_scratch& scratch) {
  try {
    return images.get(n, scratch);
  } catch (const std::runtime_error& e) {
    if (!options.skipped) throw;
    options.skipped(e.what());
    return std::nullopt;
  }
}

}  // namespace

std::uint64_t convert(const image_store& images, const std::filesystem::path& folder,
                      const convert_options& options) {
  const auto writer = writer_of(images, folder, options);
  image_scratch scratch;
  std::string record;
  std::uint64_t written = 0;
  for (std::uint64_t n = 0; n < images.size(); ++n) {
    if (options.progress) options.progress(n);
    const auto one = read(images, n, options, scratch);
    if (!one) continue;
    if (options.warned && !one->warning.empty())
      options.warned(images.where(n) + " " + one->warning + ".");
    try {
      if (options.one_shape) require_shape(*one, images.image_shape());
      datum_of(*one, options.encoding).SerializeToString(&record);
    } catch (const std::runtime_error& e) {
      throw std::runtime_error(images.where(n) + " " + e.what() + ".");
    }
    writer->put(key_of(images, n, options.key_digits), record);
    ++written;
  }
  if (written == 0)
    throw std::runtime_error(folder.string() + ": not made: none of " +
                             std::to_string(images.size()) + " images could be read.");
  writer->finish();
  return written;
}

}  // namespace poseidon
