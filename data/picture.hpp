// data/picture.hpp
//
// Pictures as files: JPEG, PNG, WebP, TIFF, BMP, and PPM/PGM/PBM, by their first bytes. Pixels come out as OpenCV's imread
// gives them, because that is what Caffe's nets were trained on: blue first, alpha dropped, the gray
// of a JPEG its own luma, upright as the EXIF of a JPEG or PNG says (as_stored leaves it as it is) or as a TIFF's tag does.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

enum class picture_colour {
  as_stored,  ///< gray as 1 channel, colour as 3 (blue, green, red), with alpha as 4
  colour,
  gray
};

struct picture {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, channels]
  /// What is wrong with a file that was read all the same, as OpenCV does: "is a JPEG without ...". Empty: nothing.
  std::string warning{};
};

enum class picture_kind { jpeg, png, pnm, bmp, webp, tiff };
/// The kind by the first bytes; nothing for other files.
[[nodiscard]] std::optional<picture_kind> kind_of_picture(std::span<const std::uint8_t> file);
/// "JPEG", "PPM, PGM or PBM", ...
[[nodiscard]] const char* name_of(picture_kind kind);
/// Whether files with this ending (".jpg", in any case of letters) are taken for pictures in a folder.
[[nodiscard]] bool is_picture_ending(std::string ending);
/// For messages: ".jpg, .jpeg, ...".
inline constexpr const char* picture_endings =
    ".jpg, .jpeg, .png, .webp, .tif, .tiff, .bmp, .ppm, .pgm, .pbm, .pnm";

/// Errors   std::runtime_error: of an unknown kind, damaged, cut short, 16 bits per value
///          where they have to be kept, more than 2^27 pixels.
[[nodiscard]] picture decode_picture(std::span<const std::uint8_t> file, picture_colour colour);

/// PNG bytes of a picture of 1 or 3 channels.
[[nodiscard]] std::vector<std::uint8_t> encode_png(const picture& p);
/// JPEG bytes, quality 95 as OpenCV's.
[[nodiscard]] std::vector<std::uint8_t> encode_jpeg(const picture& p);

/// OpenCV's cv::resize with INTER_LINEAR on bytes, its fixed-point arithmetic included.
/// `height` and `width` are at least 1.
[[nodiscard]] picture resize(const picture& from, std::int64_t height, std::int64_t width);

/// [height, width, channels] to the [channels, height, width] of a blob.   Writes   `to`.
void to_planes(const picture& from, std::vector<std::uint8_t>& to);

// By kind; decode_picture chooses.
[[nodiscard]] picture decode_jpeg(std::span<const std::uint8_t> file, picture_colour colour);
[[nodiscard]] picture decode_png(std::span<const std::uint8_t> file, picture_colour colour);
[[nodiscard]] picture decode_pnm(std::span<const std::uint8_t> file, picture_colour colour);
[[nodiscard]] picture decode_bmp(std::span<const std::uint8_t> file, picture_colour colour);
[[nodiscard]] picture decode_webp(std::span<const std::uint8_t> file, picture_colour colour);
[[nodiscard]] picture decode_tiff(std::span<const std::uint8_t> file, picture_colour colour);

/// OpenCV's BT.601 luma in 14 bits, rounded.
[[nodiscard]] constexpr std::uint8_t luma(int blue, int green, int red) {
  return static_cast<std::uint8_t>((blue * 1868 + green * 9617 + red * 4899 + (1 << 13)) >> 14);
}

/// Errors   std::runtime_error: empty, or more than 2^27 pixels.
void require_size(std::int64_t height, std::int64_t width);

/// With room for its pixels.   Errors   as require_size().
[[nodiscard]] picture empty_picture(std::int64_t channels, std::int64_t height, std::int64_t width);

}  // namespace poseidon
