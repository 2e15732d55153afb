// JPEG through libjpeg's own interface, as OpenCV uses it. TurboJPEG's wants a name for the sampling of the colours, and
// has names for six.
#include "data/exif.hpp"
#include "data/picture.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <stdexcept>
#include <utility>

// They use FILE and do not include its header.
#include <jerror.h>
#include <jpeglib.h>

namespace poseidon {
namespace {

/// libjpeg leaves from an error with a jump. What it jumps over is C alone: guarded() has nothing to destroy.
struct jpeg_errors : jpeg_error_mgr {
  std::jmp_buf out;
  std::array<char, JMSG_LENGTH_MAX> text{};
  bool ended = false;         ///< the file ended before its end marker
  bool lacks_pixels = false;  ///< bits of pixels were missing
};

[[noreturn]] void leave(j_common_ptr call) {
  auto& errors = *static_cast<jpeg_errors*>(call->err);
  errors.format_message(call, errors.text.data());
  std::longjmp(errors.out, 1);
}

/// Damage that libjpeg can skip is a warning, and Caffe trained on such files (ImageNet has some).
void take_note(j_common_ptr call, int level) {
  if (level >= 0) return;
  auto& errors = *static_cast<jpeg_errors*>(call->err);
  ++errors.num_warnings;
  errors.ended = errors.ended || errors.msg_code == JWRN_JPEG_EOF;
  errors.lacks_pixels = errors.lacks_pixels || errors.msg_code == JWRN_HIT_MARKER;
}

void print_nothing(j_common_ptr) {}

/// Each scan goes over the whole picture again, and a small file has room for thousands.
void limit_scans(j_common_ptr call) {
  constexpr int most = 500;
  if (reinterpret_cast<j_decompress_ptr>(call)->input_scan_number <= most) return;
  auto& errors = *static_cast<jpeg_errors*>(call->err);
  std::snprintf(errors.text.data(), errors.text.size(), "it has more than %d scans", most);
  std::longjmp(errors.out, 1);
}

jpeg_error_mgr* start(jpeg_errors& errors) {
  jpeg_std_error(&errors);
  errors.error_exit = leave;
  errors.emit_message = take_note;
  errors.output_message = print_nothing;
  return &errors;
}

/// False: libjpeg gave up, and errors.text says why. `calls` makes no object that has to be destroyed.
template <class Calls>
[[nodiscard]] bool guarded(jpeg_errors& errors, const Calls& calls) {
  if (setjmp(errors.out) != 0) return false;
  calls();
  return true;
}

class jpeg_reader {
 public:
  explicit jpeg_reader(std::span<const std::uint8_t> file) : file_(file) {
    from_.err = start(errors_);
    progress_.progress_monitor = limit_scans;
  }
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;
  ~jpeg_reader() { jpeg_destroy_decompress(&from_); }

  const jpeg_decompress_struct& read_header() {
    if (!guarded(errors_, [this] {
          jpeg_create_decompress(&from_);
          from_.progress = &progress_;
          jpeg_save_markers(&from_, JPEG_APP0 + 1, 0xffff);
          jpeg_mem_src(&from_, file_.data(), static_cast<unsigned long>(file_.size()));
          (void)jpeg_read_header(&from_, TRUE);
        }))
      refuse();
    if (from_.data_precision != 8) refuse_bits(from_.data_precision);
    return from_;
  }

  /// EXIF's orientation; read_header() has been called.
  [[nodiscard]] int orientation() const {
    static constexpr std::array<std::uint8_t, 6> name{'E', 'x', 'i', 'f', 0, 0};
    for (auto marker = from_.marker_list; marker != nullptr; marker = marker->next) {
      const std::span<const std::uint8_t> content(marker->data, marker->data_length);
      if (content.size() > name.size() && std::equal(name.begin(), name.end(), content.begin()))
        return orientation_of(content.subspan(name.size()));
    }
    return 1;
  }

  void read_pixels(J_COLOR_SPACE space, picture& p) {
    from_.out_color_space = space;
    const auto row_bytes = static_cast<std::size_t>(p.width * p.channels);
    if (!guarded(errors_, [&] {
          (void)jpeg_start_decompress(&from_);
          while (from_.output_scanline < from_.output_height) {
            JSAMPROW row = p.pixels.data() + from_.output_scanline * row_bytes;
            (void)jpeg_read_scanlines(&from_, &row, 1);
          }
        }))
      refuse();
    const bool whole = is_whole();
    // Behind the last pixel: what is wrong there is as if nothing were there.
    if (!guarded(errors_, [this] { (void)jpeg_finish_decompress(&from_); })) errors_.ended = true;
    if (!errors_.ended) return;
    if (!whole) throw std::runtime_error("is a damaged JPEG: it is cut short");
    p.warning =
        "is a JPEG without its end marker (EOI), which may have been cut short; none of its pixels "
        "is missing, so it is read";
  }

 private:
  /// Whether, in a file without an end, every pixel was there. Arithmetic coding does not say: zeros at its end are left out.
  [[nodiscard]] bool is_whole() const {
    if (errors_.lacks_pixels || from_.arith_code != FALSE) return false;
    for (int c = 0; c < from_.num_components; ++c) {
      if (from_.comp_info[c].quant_table == nullptr) return false;  // no scan had this colour
      if (from_.progressive_mode == FALSE) continue;
      const auto* bits = from_.coef_bits[c];  // of each coefficient, those that no scan had
      if (std::any_of(bits, bits + DCTSIZE2, [](int missing) { return missing != 0; }))
        return false;
    }
    return true;
  }
  [[noreturn]] static void refuse_bits(int bits) {
    throw std::runtime_error("is a JPEG of " + std::to_string(bits) +
                             " bits per value; 8 are read");
  }
  [[noreturn]] void refuse() const {
    const std::string why = errors_.ended ? "it is cut short" : errors_.text.data();
    switch (errors_.msg_code) {
      case JERR_BAD_PRECISION:
        refuse_bits(errors_.msg_parm.i[0]);
      case JERR_SOF_UNSUPPORTED:
      case JERR_CONVERSION_NOTIMPL:
      case JERR_FRACT_SAMPLE_NOTIMPL:
      case JERR_CCIR601_NOTIMPL:
      case JERR_NOT_COMPILED:
        throw std::runtime_error("is a JPEG of a kind that is not read: " + why);
      default:
        throw std::runtime_error("is a damaged JPEG: " + why);
    }
  }

  std::span<const std::uint8_t> file_;
  jpeg_errors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct from_{};
};

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
  p.warning = inks.warning;
  return p;
}

class jpeg_writer {
 public:
  jpeg_writer() { to_.err = start(errors_); }
  jpeg_writer(const jpeg_writer&) = delete;
  jpeg_writer& operator=(const jpeg_writer&) = delete;
  ~jpeg_writer() { jpeg_destroy_compress(&to_); }

  std::vector<std::uint8_t> write(const picture& p) {
    constexpr int quality = 95;
    const bool is_colour = p.channels == 3;
    // Three bytes a pixel of whole blocks: more than 16x16 pixels can become, at any quality.
    const auto blocks = [](std::int64_t n) { return static_cast<std::size_t>((n + 15) / 16 * 16); };
    std::vector<std::uint8_t> bytes(blocks(p.height) * blocks(p.width) * 3 + 2048);
    const auto row_bytes = static_cast<std::size_t>(p.width * p.channels);
    room_.next_output_byte = bytes.data();
    room_.free_in_buffer = bytes.size();
    room_.init_destination = [](j_compress_ptr) {};
    room_.empty_output_buffer = [](j_compress_ptr call) -> boolean {
      call->err->msg_code = JERR_CANT_SUSPEND;
      leave(reinterpret_cast<j_common_ptr>(call));
    };
    room_.term_destination = [](j_compress_ptr) {};
    if (!guarded(errors_, [&] {
          jpeg_create_compress(&to_);
          to_.dest = &room_;
          to_.image_width = static_cast<JDIMENSION>(p.width);
          to_.image_height = static_cast<JDIMENSION>(p.height);
          to_.input_components = is_colour ? 3 : 1;
          to_.in_color_space = is_colour ? JCS_EXT_BGR : JCS_GRAYSCALE;
          jpeg_set_defaults(&to_);
          jpeg_set_quality(&to_, quality, TRUE);
          jpeg_start_compress(&to_, TRUE);
          while (to_.next_scanline < to_.image_height) {
            auto* row = const_cast<JSAMPROW>(p.pixels.data() + to_.next_scanline * row_bytes);
            (void)jpeg_write_scanlines(&to_, &row, 1);
          }
          jpeg_finish_compress(&to_);
        }))
      throw std::runtime_error("cannot become a JPEG: " + std::string(errors_.text.data()));
    bytes.resize(bytes.size() - room_.free_in_buffer);
    return bytes;
  }

 private:
  jpeg_errors errors_{};
  jpeg_destination_mgr room_{};
  jpeg_compress_struct to_{};
};

}  // namespace

picture decode_jpeg(std::span<const std::uint8_t> file, picture_colour colour) {
  jpeg_reader reader(file);
  const auto& header = reader.read_header();
  const bool has_inks = header.num_components == 4;
  const bool to_colour = colour == picture_colour::colour ||
                         (colour == picture_colour::as_stored && header.num_components != 1);
  auto p = empty_picture(has_inks ? 4 : to_colour ? 3 : 1, header.image_height, header.image_width);
  const int orientation = reader.orientation();
  reader.read_pixels(has_inks ? JCS_CMYK : to_colour ? JCS_EXT_BGR : JCS_GRAYSCALE, p);
  if (has_inks) p = from_inks(p, to_colour);
  if (colour == picture_colour::as_stored) return p;
  return upright(std::move(p), orientation);
}

std::vector<std::uint8_t> encode_jpeg(const picture& p) {
  return jpeg_writer().write(p);
}

}  // namespace poseidon
