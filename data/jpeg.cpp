// JPEG through TurboJPEG's C interface, which returns from its errors instead of jumping.
#include "data/exif.hpp"
#include "data/picture.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <turbojpeg.h>
#include <utility>

namespace poseidon {
namespace {

struct closer {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using turbo = std::unique_ptr<void, closer>;

turbo checked(tjhandle handle) {
  if (handle == nullptr) throw std::runtime_error("cannot start TurboJPEG");
  return turbo(handle);
}

/// Damage that libjpeg can skip is a warning, and Caffe trained on such files (ImageNet has some).
/// Missing pixels are an error.
bool is_fatal(tjhandle handle) {
  if (tjGetErrorCode(handle) == TJERR_FATAL) return true;
  const std::string_view text = tjGetErrorStr2(handle);
  return text.find("Premature end") != std::string_view::npos;
}

[[noreturn]] void damaged(tjhandle handle) {
  throw std::runtime_error("is a damaged JPEG: " + std::string(tjGetErrorStr2(handle)));
}

/// Inks as Adobe writes them, 255 is none; blue, green, red, or their luma in 14 bits.
picture from_inks(const picture& inks, bool to_colour) {
  auto p = empty_picture(to_colour ? 3 : 1, inks.height, inks.width);
  const auto* from = inks.pixels.data();
  auto* to = p.pixels.data();
  for (std::int64_t i = 0; i < inks.height * inks.width; ++i, from += 4, to += p.channels) {
    const int black = from[3];
    const auto mixed = [black](int ink) { return black - ((255 - ink) * black >> 8); };
    const int red = mixed(from[0]), green = mixed(from[1]), blue = mixed(from[2]);
    if (to_colour) {
      to[0] = static_cast<std::uint8_t>(blue);
      to[1] = static_cast<std::uint8_t>(green);
      to[2] = static_cast<std::uint8_t>(red);
    } else {
      *to = luma(blue, green, red);
    }
  }
  return p;
}

}  // namespace

picture decode_jpeg(std::span<const std::uint8_t> file, picture_colour colour) {
  const auto handle = checked(tjInitDecompress());
  int width = 0, height = 0, sampling = 0, space = 0;
  if (tjDecompressHeader3(handle.get(), file.data(), file.size(), &width, &height, &sampling,
                          &space) != 0 &&
      is_fatal(handle.get()))
    damaged(handle.get());
  if (width < 1 || height < 1) throw std::runtime_error("is a damaged JPEG: it ends before pixels");
  const bool has_inks = space == TJCS_CMYK || space == TJCS_YCCK;
  const bool to_colour = colour == picture_colour::colour ||
                         (colour == picture_colour::as_stored && space != TJCS_GRAY);
  auto p = empty_picture(has_inks ? 4 : to_colour ? 3 : 1, height, width);
  const int format = has_inks ? TJPF_CMYK : to_colour ? TJPF_BGR : TJPF_GRAY;
  if (tjDecompress2(handle.get(), file.data(), file.size(), p.pixels.data(), width, 0, height,
                    format, TJFLAG_LIMITSCANS) != 0 &&
      is_fatal(handle.get()))
    damaged(handle.get());
  if (has_inks) p = from_inks(p, to_colour);
  if (colour == picture_colour::as_stored) return p;
  return upright(std::move(p), orientation_of(file));
}

std::vector<std::uint8_t> encode_jpeg(const picture& p) {
  constexpr int quality = 95;
  const auto handle = checked(tjInitCompress());
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool is_colour = p.channels == 3;
  const int failed = tjCompress2(handle.get(), p.pixels.data(), static_cast<int>(p.width), 0,
                                 static_cast<int>(p.height), is_colour ? TJPF_BGR : TJPF_GRAY,
                                 &bytes, &size, is_colour ? TJSAMP_420 : TJSAMP_GRAY, quality, 0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> freed(bytes, tjFree);
  if (failed != 0)
    throw std::runtime_error("cannot become a JPEG: " + std::string(tjGetErrorStr2(handle.get())));
  return {bytes, bytes + size};
}

}  // namespace poseidon
