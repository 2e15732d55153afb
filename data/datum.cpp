// Reads the protobuf wire format itself: the generated class would copy every image.
#include "data/datum.hpp"

#include "models/caffe.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstring>
#include <stdexcept>

namespace poseidon {
namespace {
using google::protobuf::internal::WireFormatLite;

// Field numbers of caffe.Datum (models/caffe.proto; datum_test compares).
namespace field {
enum : int {
  channels = 1,
  height = 2,
  width = 3,
  data = 4,
  label = 5,
  float_data = 6,
  encoded = 7
};
}  // namespace field

struct raw_datum {
  std::int64_t extents[3] = {0, 0, 0};
  std::span<const std::uint8_t> bytes;
  std::int32_t label = 0;
  bool encoded = false;
};

[[noreturn]] void not_a_datum(std::size_t at, std::size_t bytes) {
  throw std::runtime_error("not a Datum, or corrupt: its fields break off at byte " +
                           std::to_string(at) + " of " + std::to_string(bytes));
}

/// One length-delimited field, in place.
bool read_bytes(google::protobuf::io::CodedInputStream& in, std::span<const std::uint8_t> record,
                std::span<const std::uint8_t>& to) {
  std::uint32_t length = 0;
  if (!in.ReadVarint32(&length)) return false;
  const auto at = static_cast<std::size_t>(in.CurrentPosition());
  if (length > record.size() - at) return false;
  to = record.subspan(at, length);
  return in.Skip(static_cast<int>(length));
}

bool read_int(google::protobuf::io::CodedInputStream& in, std::int32_t& to) {
  std::uint64_t value = 0;
  if (!in.ReadVarint64(&value)) return false;
  to = static_cast<std::int32_t>(value);
  return true;
}

bool read_packed(google::protobuf::io::CodedInputStream& in, std::span<const std::uint8_t> record,
                 std::vector<float>& floats) {
  std::span<const std::uint8_t> packed;
  if (!read_bytes(in, record, packed) || packed.size() % sizeof(float) != 0) return false;
  const auto before = floats.size();
  floats.resize(before + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(floats.data() + before, packed.data(), packed.size());
  return true;
}

bool read_float(google::protobuf::io::CodedInputStream& in, std::vector<float>& floats) {
  std::uint32_t bits = 0;
  if (!in.ReadLittleEndian32(&bits)) return false;
  floats.push_back(0);
  std::memcpy(&floats.back(), &bits, sizeof bits);
  return true;
}

bool read_field(google::protobuf::io::CodedInputStream& in, std::span<const std::uint8_t> record,
                std::uint32_t tag, raw_datum& to, std::vector<float>& floats) {
  const auto type = WireFormatLite::GetTagWireType(tag);
  const int number = WireFormatLite::GetTagFieldNumber(tag);
  const bool is_varint = type == WireFormatLite::WIRETYPE_VARINT;
  const bool is_bytes = type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  if (number >= field::channels && number <= field::width && is_varint) {
    std::int32_t value = 0;
    if (!read_int(in, value)) return false;
    to.extents[number - field::channels] = value;
    return true;
  }
  if (number == field::data && is_bytes) return read_bytes(in, record, to.bytes);
  if (number == field::label && is_varint) return read_int(in, to.label);
  if (number == field::float_data && is_bytes) return read_packed(in, record, floats);
  if (number == field::float_data && type == WireFormatLite::WIRETYPE_FIXED32)
    return read_float(in, floats);
  if (number == field::encoded && is_varint) {
    std::uint64_t value = 0;
    if (!in.ReadVarint64(&value)) return false;
    to.encoded = value != 0;
    return true;
  }
  return WireFormatLite::SkipField(&in, tag);
}

raw_datum parse(std::span<const std::uint8_t> record, std::vector<float>& floats) {
  raw_datum result;
  floats.clear();
  if (record.size() > 0x7fffffff) not_a_datum(0, record.size());
  google::protobuf::io::CodedInputStream in(record.data(), static_cast<int>(record.size()));
  while (static_cast<std::size_t>(in.CurrentPosition()) < record.size()) {
    const auto at = static_cast<std::size_t>(in.CurrentPosition());
    const auto tag = in.ReadTag();
    if (tag == 0 || !read_field(in, record, tag, result, floats)) not_a_datum(at, record.size());
  }
  return result;
}

image values_of(const raw_datum& d, const std::vector<float>& floats) {
  // Caffe takes float_data only when data is empty.
  const auto have = d.bytes.empty() ? floats.size() : d.bytes.size();
  auto left = static_cast<std::int64_t>(have);
  bool fits = left > 0;
  for (const auto extent : d.extents) {
    fits = fits && extent > 0 && left % extent == 0;
    if (fits) left /= extent;
  }
  image result{d.bytes, {}, d.label, {d.extents[0], d.extents[1], d.extents[2]}};
  if (!fits || left != 1)
    throw std::runtime_error("says it is " + to_string(shape_of(result)) + " and has " +
                             std::to_string(have) + " values");
  if (d.bytes.empty()) result.floats = floats;
  return result;
}

/// The shape fields of an encoded Datum are ignored, as in Caffe.
image decoded(const raw_datum& d, picture_colour colour, std::vector<std::uint8_t>& to) {
  const auto p = decode_picture(d.bytes, colour);
  to_planes(p, to);
  image result{to, {}, d.label, {p.channels, p.height, p.width}};
  result.file = d.bytes;
  result.as_in_file = colour == picture_colour::as_stored && p.warning.empty();
  result.warning = p.warning;
  return result;
}
}  // namespace

shape shape_of(const image& i) {
  return {i.extents.begin(), i.extents.end()};
}

image parse_datum(std::span<const std::uint8_t> record, image_scratch& scratch,
                  picture_colour colour) {
  const auto raw = parse(record, scratch.floats);
  return raw.encoded ? decoded(raw, colour, scratch.bytes) : values_of(raw, scratch.floats);
}

std::string make_datum(const shape& s, std::span<const std::uint8_t> values, std::int32_t label) {
  ::caffe::Datum d;
  d.set_channels(static_cast<std::int32_t>(s.at(0)));
  d.set_height(static_cast<std::int32_t>(s.at(1)));
  d.set_width(static_cast<std::int32_t>(s.at(2)));
  d.set_data(values.data(), values.size());
  d.set_label(label);
  return d.SerializeAsString();
}

}  // namespace poseidon
